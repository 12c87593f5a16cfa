"""Secrets reach the model only when the user was asked, whatever way they would take."""

import logging
import os
from pathlib import Path

import pytest

from duckflow.cli.run import Log
from duckflow.events.types import Noticed
from duckflow.state.question import Answer
from duckflow.store.paths import Paths
from tests.journeys.story import Story, act, decide, respond

YES = Answer(choice="yes")
END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
ENV = "NAME=duck\nDB_PASSWORD=hidden-value\nHOST=hidden.example\n"


def go_on(*actions: dict[str, object], step: str = "EXECUTION"):
    return decide(*actions, step=step, next_step="continue")


def told(story: Story) -> str:
    """All that the model was sent and all that is kept; what only runs over the user's screen is not."""
    kept = [str(event) for event in story.events if event.journaled]
    return "\n".join([*(story.prompt(number) for number in range(len(story.model.requests))), *kept])


def hidden(story: Story) -> list[int]:
    return [int(one.what.values["count"]) for one in story.all(Noticed) if one.what.key == "secret.hidden"]


@pytest.mark.parametrize("mode", ["auto-edit", "full-auto"])
@pytest.mark.parametrize("path", [".env", "notes.txt"])
async def test_a_failed_edit_does_not_quote_it(
    tmp_path: Path, mode: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "duckflow")
    edit = act("file_ops.edit_file", path=path, old="something else", new="x")
    story = Story(tmp_path, [go_on(edit), END], mode=mode)
    (story.folder / ".env").write_text(ENV)
    (story.folder / "notes.txt").symlink_to(".env")
    assert await story.tell("edit it") == "gate", "asked before it is told whether the edit fits"
    assert "does not occur" not in told(story) and "NAME=duck" not in told(story)
    assert "hidden-value" not in told(story) + caplog.text


async def test_a_link_to_a_secret_is_read_through_the_gate_only(tmp_path: Path) -> None:
    read = go_on(act("file_ops.read_file", path="notes.txt"), step="PLANNING")
    story = Story(tmp_path, [read, END], mode="full-auto")
    (story.folder / ".env").write_text(ENV)
    (story.folder / "notes.txt").symlink_to(".env")
    assert await story.tell("read it") == "gate"
    assert "hidden-value" not in told(story)


@pytest.mark.parametrize("pattern", ["hidden", "nowhere"])
async def test_a_search_leaves_them_out_and_says_so_whether_they_fit_or_not(tmp_path: Path, pattern: str) -> None:
    search = go_on(act("file_ops.grep", pattern=pattern), step="PLANNING")
    story = Story(tmp_path, [search, END], mode="full-auto")
    (story.folder / "deploy").mkdir()
    (story.folder / "deploy" / ".env").write_text(ENV)
    (story.folder / "a.py").write_text("hidden = 1\n")
    await story.tell("look")
    assert "hidden-value" not in told(story)
    assert "not searched, because they look like secrets: deploy/.env" in story.prompt()
    assert ("a.py\n1:hidden = 1" in story.prompt()) == (pattern == "hidden")


@pytest.mark.parametrize("command", ["cat .env", "head -1 < .env", "tail deploy/key.pem"])
async def test_a_command_that_reads_one_is_asked_for_in_full_auto(tmp_path: Path, command: str) -> None:
    story = Story(tmp_path, [go_on(act("shell.run", command=command)), END], mode="full-auto")
    (story.folder / ".env").write_text(ENV)
    assert await story.tell("look") == "gate"
    assert "hidden-value" not in told(story)


@pytest.mark.parametrize("action", [act("shell.run", command="cat .env"), act("file_ops.read_file", path=".env")])
async def test_after_a_yes_it_is_shown(tmp_path: Path, action: dict[str, object]) -> None:
    story = Story(tmp_path, [go_on(action), END], mode="full-auto")
    (story.folder / ".env").write_text(ENV)
    story.answers = [YES]
    assert await story.tell("look") == "pending_user"
    assert "DB_PASSWORD=hidden-value" in story.prompt() and not hidden(story)


READABLE = {"sandbox": {"shown": [".env"]}}
"""The user's settings let commands read the file, which is covered otherwise."""


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn hidden .",
        "grep -r '' . --include='.e*'",
        "for f in .e*; do nl $f; done",
        "python3 -c \"print(open('.en'+'v').read().split())\"",
        "f=.en; diff /dev/null ${f}v",
    ],
)
async def test_what_another_command_prints_of_it_is_hidden_and_told(tmp_path: Path, command: str) -> None:
    story = Story(tmp_path, [go_on(act("shell.run", command=command)), END], settings=READABLE)
    (story.folder / ".env").write_text(ENV)
    (story.folder / "a.py").write_text("hidden = 1\n")
    await story.tell("look")
    assert "hidden-value" not in told(story)
    if not story.questions:
        assert hidden(story) and "[Hidden as •••, as it looks like a secret: " in story.prompt()


@pytest.mark.parametrize("command", ["cp .env x.txt", "mv .env x.txt", "ln .env x.txt"])
async def test_a_copy_under_another_name_is_no_way_around(tmp_path: Path, command: str) -> None:
    replies = [go_on(act("shell.run", command=command)), go_on(act("file_ops.read_file", path="x.txt")), END]
    story = Story(tmp_path, replies, settings=READABLE)
    (story.folder / ".env").write_text(ENV)
    await story.tell("look")
    assert "hidden-value" not in told(story)
    assert story.questions or "DB_PASSWORD=•••" in story.prompt()


KEY = "AKIAABCDEFGHIJKLMNOP"


async def test_what_looks_like_a_key_is_hidden_in_any_file(tmp_path: Path) -> None:
    read = go_on(act("file_ops.read_file", path="a.py"), step="PLANNING")
    story = Story(tmp_path, [read, END], mode="ask", language="ja")
    (story.folder / "a.py").write_text(f"region = 'x'\nkey = '{KEY}'\n")
    (story.folder / "b.py").write_text(f"key = '{KEY}'\n")
    await story.tell("@b.py と a.py を見て")
    assert KEY not in told(story)
    assert "region = 'x'\nkey = '•••'" in story.prompt() and "1 か所を ••• で隠しました" in story.prompt()
    assert hidden(story) == [1, 1]


async def test_what_hides_a_secret_is_not_written_in_its_place(tmp_path: Path) -> None:
    text = f"region = 'x'\nkey = '{KEY}'\n"
    replies = [
        go_on(act("file_ops.read_file", path="a.py"), step="PLANNING"),
        go_on(act("file_ops.write_file", path="a.py", content="region = 'y'\nkey = '•••'\n")),
        go_on(act("file_ops.edit_file", path="a.py", old="region = 'x'", new="region = 'y'")),
        END,
    ]
    story = Story(tmp_path, replies, mode="full-auto")
    (story.folder / "a.py").write_text(text)
    await story.tell("change the region")
    assert (story.folder / "a.py").read_text() == text.replace("'x'", "'y'")


async def test_a_token_in_the_address_of_a_remote_is_hidden(tmp_path: Path) -> None:
    story = Story(tmp_path, [go_on(act("shell.run", command="cat remotes.txt")), END], mode="full-auto")
    (story.folder / "remotes.txt").write_text("origin https://me:abc123def456@git.example/x.git (fetch)\n")
    await story.tell("look")
    assert "abc123def456" not in told(story) and "https://me:•••@git.example" in story.prompt()


async def test_the_record_and_the_log_are_for_their_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("duckflow.log", "duckflow.old.log"):
        (home / name).write_text("older\n")
        (home / name).chmod(0o644)
    old = os.umask(0o022)
    root = logging.getLogger()
    handlers, hooks = root.handlers[:], (logging.raiseExceptions,)
    root.handlers.clear()
    try:
        Log(Paths(home, home, home)).start()
        story = Story(tmp_path, [decide(respond("ok"))], mode="full-auto")
        await story.tell("hello")
        story.session.close()
        (home / "s.db").chmod(0o644)
        story = Story(tmp_path, [decide(respond("ok"))], mode="full-auto")
        await story.tell("hello again")
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        (logging.raiseExceptions,) = hooks
        os.umask(old)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in home.rglob("*") if path.is_file()}
    assert modes["duckflow.log"] == modes["duckflow.old.log"] == modes["s.db"] == "0o600"
    assert set(modes.values()) == {"0o600"}, modes
