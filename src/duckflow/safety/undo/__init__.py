"""Undo, redo and diff per turn, for everything that Duckflow and its commands did to the files of the work folder."""
