"""The forms in which Decisions travel between the program and a model: native tool calls, or JSON."""
