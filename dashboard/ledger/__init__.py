"""The truth: what was meant, tried, taken and told. Knows SQL, no vendor and no Flask."""
