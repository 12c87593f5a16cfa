"""What of the conversation goes into a prompt."""
