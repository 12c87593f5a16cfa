"""Tries claims: are the tests of a change red without it, is new code reached, was every change asked for."""
