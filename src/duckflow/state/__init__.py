"""The data types that the whole program shares: plain data, no I/O."""
