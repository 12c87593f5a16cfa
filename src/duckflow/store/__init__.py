"""Everything that stays on disk: the journal of each session, and the places of all files."""
