"""`@file` in a message: the file's text goes along, so that it need not be asked for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.safety.secrets import secret_name, secret_text
from duckflow.safety.workspace import Workspace

MENTION = re.compile(r'(?<!\S)[@＠](?:"([^"\n]+)"|(\S+))')
PUNCTUATION = ".,;:!?)]}'\"、。，．！？」』）"
LARGEST_BYTES = 16_000
MOST = 8


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A text file of the work folder."""

    path: str
    text: str


def mentioned(message: str, folder: str) -> Iterator[Mentioned]:
    """What may go along: small text files inside the folder. What looks like a secret, or is large, has to be read by
    the model itself, which asks first or takes a part of it."""
    found = [one[1] or one[2].rstrip(PUNCTUATION) for one in MENTION.finditer(message)]
    if not found:
        return
    for path in list(dict.fromkeys(found))[:MOST]:
        try:
            workspace = Workspace(Path(folder))
            data = workspace.read_bytes(path, LARGEST_BYTES)
            text = data.decode("utf-8")
        except (OSError, ToolError, UnicodeDecodeError):
            continue
        if "\0" not in text and not secret_name(path) and not secret_text(text):
            yield Mentioned(path, text)
