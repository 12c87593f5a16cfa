"""Duckflow: a coding companion for the terminal."""

__version__ = "0.1.0"
DEFAULT_LANGUAGE = "en"
"""The language of whatever another one lacks."""
