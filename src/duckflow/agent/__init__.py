"""The loop in which model and tools take turns, the chat, the dispatcher, and the session that owns the state."""
