"""Tables: files of rows and columns, read, encoded, adapted and written back; the work behind the command line."""
