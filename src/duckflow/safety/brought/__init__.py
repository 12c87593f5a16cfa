"""Programs that come with a work folder. They are taken from a copy of the folder, which is made before the user is
asked about them."""
