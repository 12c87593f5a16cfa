"""Content of an editor's prompt besides its words."""

from pathlib import Path
from typing import Any

from duckflow.editor.session import read_prompt
from duckflow.events.views import Attachment


def test_pictures_are_taken_unchanged_and_audio_is_refused() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "image", "mimeType": "image/png", "data": "aG8=", "uri": "file:///work/a.png"},
        {"type": "audio", "data": "aGk="},
    ]
    prompt = read_prompt(blocks, Path("/work"))
    assert prompt.attachments == (Attachment("picture-1", data="aGk="), Attachment("a.png", data="aG8="))
    assert (prompt.text, prompt.refused) == ("what is this?", ("audio",))
