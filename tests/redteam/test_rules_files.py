"""AGENTS.md is sent unasked with every request, but a secret in its place is not."""

import os
from pathlib import Path

import pytest

from tests.journeys.story import Story, act, decide, respond

SECRET = "PASSWORD=hunter2-of-the-pond\nAPI_KEY=sk-0123456789abcdefghij\n"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", "src/AGENTS.md", "src/CLAUDE.md"])
@pytest.mark.parametrize("way", ["link", "link of a link", "hard link", "folder"])
async def test_a_secret_file_in_the_place_of_rules_reaches_no_request(tmp_path: Path, name: str, way: str) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src/app.py").write_text("one = 1\n")
    (work / ".env").write_text(SECRET)
    place = work / name
    match way:
        case "link":
            place.symlink_to(os.path.relpath(work / ".env", place.parent))
        case "link of a link":
            (work / "notes").symlink_to(".env")
            place.symlink_to(os.path.relpath(work / "notes", place.parent))
        case "hard link":
            place.hardlink_to(work / ".env")
        case _:
            (work / "secrets").mkdir()
            (work / "secrets/.env").write_text(SECRET)
            place.symlink_to(os.path.relpath(work / "secrets/.env", place.parent))
    look = decide(act("file_ops.read_file", path="src/app.py"), next_step="continue")
    story = Story(tmp_path, [look, decide(respond("ok"))])
    await story.tell("look")
    sent = "".join(message.whole for request in story.model.requests for message in request.messages)
    assert "hunter2" not in sent and "sk-0123456789" not in sent
    await story.close()
