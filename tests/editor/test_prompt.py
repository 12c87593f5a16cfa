"""What comes from an editor beside the words."""

from pathlib import Path
from typing import Any

from duckflow.editor.session import read_prompt
from duckflow.events.views import Attachment


def test_pictures_come_as_they_are_and_what_is_heard_does_not() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "image", "mimeType": "image/png", "data": "aG8=", "uri": "file:///work/a.png"},
        {"type": "audio", "data": "aGk="},
    ]
    prompt = read_prompt(blocks, Path("/work"))
    assert prompt.attachments == (Attachment("picture-1", data="aGk="), Attachment("a.png", data="aG8="))
    assert (prompt.text, prompt.refused) == ("what is this?", ("audio",))
