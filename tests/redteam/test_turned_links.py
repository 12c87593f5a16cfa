"""A link that is turned while a question is open: the reads of the same reply look again where it leads."""

import asyncio
from pathlib import Path

import pytest

from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
LINE = "NICK=correct horse battery staple"


def read(path: str) -> dict[str, object]:
    return act("file_ops.read_file", path=path)


def search(path: str) -> dict[str, object]:
    return act("file_ops.grep", pattern="o", path=path)


class Turning(Story):
    """While the user is asked, somebody turns the links; then the user says yes."""

    def answer(self, question: Question) -> Answer:
        for name, target in (("link", ".env"), ("other", ".env"), ("folder", "kept")):
            (self.folder / name).unlink()
            (self.folder / name).symlink_to(target)
        return Answer(choice="yes")


@pytest.mark.parametrize("mode", ["ask", "auto-edit", "auto", "full-auto"])
@pytest.mark.parametrize(
    "actions",
    [
        [read("link"), read("other"), read("secrets.json")],
        [read("link"), read("secrets.json")],
        [read("secrets.json"), read("link"), read("other")],
        [search("link"), search("other"), read("secrets.json")],
        [act("file_ops.list_files", path="."), read("link"), read("secrets.json")],
        [read("folder/.env"), read("secrets.json")],
        [search("folder/.env"), read("notes.txt"), read("secrets.json")],
    ],
)
async def test_a_yes_to_one_secret_file_gives_no_other_one(
    tmp_path: Path, actions: list[dict[str, object]], mode: str
) -> None:
    story = Turning(tmp_path, [decide(*actions, step="EXECUTION", next_step="continue"), END, END], mode=mode)
    (story.folder / "notes.txt").write_text("notes\n")
    (story.folder / ".env").write_text(f"{LINE}\n")
    (story.folder / "secrets.json").write_text("{}\n")
    for name, text in (("plain", "notes\n"), ("kept", f"{LINE}\n")):
        (story.folder / name).mkdir()
        (story.folder / name / ".env").write_text(text)
    for name, target in (("link", "notes.txt"), ("other", "notes.txt"), ("folder", "plain")):
        (story.folder / name).symlink_to(target)
    asking = asyncio.create_task(story.tell("read it"))
    await asking
    assert story.questions, "the user is asked about what is named"
    assert LINE not in "".join(story.prompt(number) for number in range(len(story.model.requests)))
