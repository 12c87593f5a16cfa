"""Settings of undo."""

from pydantic import Field

from duckflow.state.noun import Section

MB = 1024 * 1024


class UndoSettings(Section):
    """What is kept so that it can be brought back, and for how long. What is not kept is said."""

    enabled: bool = True
    """Without it changes and commands run even where nothing can be kept, such as on a full disk."""
    largest_file_mb: int = Field(default=50, ge=0)
    """Larger files are not copied, so what happens to them cannot be undone; that is said."""
    copied_mb: int = Field(default=300, ge=0)
    """At most this much is copied before one command or one change."""
    files: int = Field(default=100_000, ge=0)
    """In a folder with more files (ignored ones not counted) commands cannot be undone."""
    watched_files: int = Field(default=10_000, ge=0)
    """Of the ignored files as many are watched, so that a change to them can be told."""
    kept_turns: int = Field(default=100, ge=1)
    kept_mb: int = Field(default=1000, ge=1)
    """Of a work folder; the oldest turns are forgotten first."""
    diff_lines: int = Field(default=400, ge=0)
    compared_files: int = Field(default=200, ge=0)
    """A preview counts the lines of as many files; the others are named."""
