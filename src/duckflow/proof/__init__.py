"""Tries the claims of a turn: do its tests fail without the change, is new code reached, was every change asked for."""
