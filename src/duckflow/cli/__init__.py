"""The command line: fast to start, and the only place where objects are built."""
