"""The same conversations in a browser: one more front end of the port, locked to who has the address."""
