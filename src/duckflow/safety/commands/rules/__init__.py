"""What makes a program's call dangerous, one kind of harm a file."""
