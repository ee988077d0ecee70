"""One file a page: parse, one read or one action, show."""
