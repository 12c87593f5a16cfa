"""What a shell command really runs, and whether that only reads, must be asked about, or is dangerous."""
