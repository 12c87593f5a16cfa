"""Where shell commands run: they write in the work folder only, and see neither secrets nor the network."""
