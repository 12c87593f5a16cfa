"""Programs that come with a work folder: the copy of the folder from which they run, made before the user's yes."""
