"""Programs that a work folder brings: the copy of the folder from the moment of the user's yes, and how they run."""
