"""The language in the user's file, found without reading the rest: even a file that cannot be read is told of in it."""

import re
from pathlib import Path

LANGUAGE = re.compile(r"^\s*language\s*=\s*[\"'](\w+)[\"']", re.M)
TABLE = re.compile(r"^\s*\[", re.M)


def language_in(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = LANGUAGE.search(TABLE.split(text, 1)[0])
    return found[1] if found else ""
