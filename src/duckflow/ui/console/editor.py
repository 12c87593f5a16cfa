"""The user's own editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from duckflow.ui.console.keyboard import cooked


def edit_text(text: str) -> str:
    """What the text is after the user has edited it; the same text when there is no editor that works."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposed.txt"
        file.write_text(text, encoding="utf-8")
        try:
            with cooked():
                subprocess.run([*shlex.split(editor), str(file)], check=True)
        except (OSError, ValueError, subprocess.CalledProcessError):
            return text
        return file.read_text(encoding="utf-8", errors="replace")
