"""Front ends for people: the console, and headless output."""
