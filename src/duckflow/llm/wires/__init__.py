"""The wires: protocols for requests to endpoints and replies from them, one file each."""
