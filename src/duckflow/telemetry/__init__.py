"""Traces of turns for users who run a collector. It is loaded only then."""
