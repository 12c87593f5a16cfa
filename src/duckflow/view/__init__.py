"""Turns the events of a session into items, in the same way for all front ends: each front end draws the items."""
