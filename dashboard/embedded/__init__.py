"""A PostgreSQL that the command starts by itself, for the demo, the tests and the measurements."""
