"""Programs that a work folder brings: a copy of the folder as of the user's yes, and how they run."""
