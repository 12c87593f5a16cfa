"""The sandbox that shell commands run in: they write in the work folder only, and see neither secrets nor the
network."""
