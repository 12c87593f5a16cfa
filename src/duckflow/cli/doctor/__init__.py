"""`duckflow doctor`: what is set up, what is not, and how to fix it."""
