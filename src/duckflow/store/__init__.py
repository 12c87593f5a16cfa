"""What stays on disk: the journal of each session, and where things lie."""
