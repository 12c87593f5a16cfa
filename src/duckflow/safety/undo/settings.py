"""Settings of undo."""

from pydantic import Field

from duckflow.state.data import Section

MB = 1024 * 1024


class UndoSettings(Section):
    """Limits on the copies that undo makes and keeps. People are told which changes cannot be undone because of a
    limit."""

    enabled: bool = True
    """True if undo is on. Without undo, changes and commands run even where nothing can be kept, such as on a full
    disk."""
    largest_file_mb: int = Field(default=50, ge=0)
    """The largest file that is copied. Changes of larger files cannot be undone, and people are told so."""
    copied_mb: int = Field(default=300, ge=0)
    """The largest amount of data that is copied before one command or one change."""
    files: int = Field(default=100_000, ge=0)
    """The largest number of files (ignored ones not counted) in a folder where commands can be undone."""
    watched_files: int = Field(default=10_000, ge=0)
    """The number of ignored files that are watched, so that people can be told about changes to them."""
    kept_turns: int = Field(default=100, ge=1)
    kept_mb: int = Field(default=1000, ge=1)
    """The largest amount of data that is kept for a work folder; the oldest turns are forgotten first."""
    diff_lines: int = Field(default=400, ge=0)
    compared_files: int = Field(default=200, ge=0)
    """The number of files whose lines a preview counts; the others are only named."""
