"""Settings of the file tools."""

from duckflow.state.noun import Section

KB = 1024
MB = 1024 * KB


class FileSettings(Section):
    """How much a tool reads and shows at once."""

    read_bytes: int = 256 * KB
    read_lines: int = 2000
    outlined_lines: int = 200
    """Of a source file that is too long to be shown whole: so many lines follow its outline."""
    outline_characters: int = 12_000
    max_file_bytes: int = 16 * MB
    """Larger files are never read whole into memory: they are refused."""
    list_entries: int = 400
    found_files: int = 200
    grep_matches: int = 200
    grep_line: int = 300
    grep_seconds: float = 20.0
    diff_lines: int = 1_000_000
    """What is written is shown whole before it is asked for."""
    deleted_lines: int = 60
    """So much is shown of a file that would be deleted."""
    quoted_text: int = 4000
    """Characters of a file's current text that may stand in an error for the model."""
