"""How requests travel to endpoints and replies come back, one file a wire."""
