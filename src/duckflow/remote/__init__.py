"""Conversations over a socket, for front ends in other processes."""
