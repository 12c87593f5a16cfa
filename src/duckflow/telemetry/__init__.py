"""Traces of turns for whoever runs a collector; nothing of it is loaded elsewhere."""
