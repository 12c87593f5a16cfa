"""Undo, redo and diff per turn: what Duckflow and its commands did to the files of the work folder."""
