"""Files with mixed columns: read, encode, adapt, and write predictions; the work behind the command line."""
