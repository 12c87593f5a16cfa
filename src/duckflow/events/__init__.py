"""What happened: frozen events, how they change the state, and the two ports to the outside."""
