"""The loop: a turn, the chat, the dispatcher, and the session that owns the state."""
