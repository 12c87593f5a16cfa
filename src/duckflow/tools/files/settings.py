"""Settings of the file tools."""

from pydantic import Field

from duckflow.state.data import Section

KB = 1024
MB = 1024 * KB


class FileSettings(Section):
    """Limits on how much a file tool reads and shows at once."""

    read_bytes: int = Field(default=256 * KB, ge=1)
    read_lines: int = Field(default=2000, ge=1)
    outlined_lines: int = Field(default=200, ge=0)
    """Lines that are shown, with an outline, of a source file that is too long to be shown whole."""
    outline_characters: int = Field(default=12_000, ge=1)
    max_file_bytes: int = Field(default=16 * MB, ge=1)
    """Bytes above which a file is never read whole into memory, but refused."""
    list_entries: int = Field(default=400, ge=1)
    found_files: int = Field(default=200, ge=1)
    grep_matches: int = Field(default=200, ge=1)
    grep_line: int = Field(default=300, ge=1)
    grep_seconds: float = Field(default=20.0, gt=0)
    deleted_lines: int = Field(default=60, ge=0)
    """Lines that a preview shows of a file to be deleted."""
    quoted_text: int = Field(default=4000, ge=0)
    """Characters of a file's current text that may be quoted in an error for the model."""
