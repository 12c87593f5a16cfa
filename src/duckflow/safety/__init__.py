"""Protection of the user's files, machine and secrets: paths, risk, modes, the sandbox, and undo."""
