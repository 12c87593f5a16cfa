"""Every text people read, in English and Japanese."""
