"""Sessions that version 1 of the journal recorded go on with today's program: conversation, plan of record, undo."""

import json
import os
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest

from duckflow.commands.audit import audit_lines, list_audit
from duckflow.events.types import TurnUndone
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from tests.journeys.story import Story, decide, respond

RECORDED = Path(__file__).parents[1] / "store/recorded"
OWNER = "420, 0, 0"
both_forms = pytest.mark.parametrize("recorded", ["native", "json"])
either_model = pytest.mark.parametrize("native", [True, False], ids=["native-model", "json-model"])


def unpack(top: Path, name: str) -> None:
    """The work folder, the journal and what undo kept, as the older program left them."""
    saved: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    folder, home = top / "work", top / "home"
    undo = Paths(home, home, home).undo_of(folder)
    for made in (folder, undo):
        made.mkdir(parents=True)
    for file, text in saved["files"].items():
        (folder / file).write_text(text)
        (folder / file).chmod(0o644)
    with sqlite3.connect(home / "s.db") as journal:
        journal.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT, body TEXT, crc INTEGER)")
        for number, (kind, body) in enumerate(saved["journal"], 1):
            text = body.replace("@FOLDER@", str(folder))
            check = zlib.crc32(text.encode(), zlib.crc32(kind.encode()))
            journal.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (number, kind, text, check))
        journal.execute("PRAGMA user_version=1")
    with sqlite3.connect(undo / "undo-3.sqlite") as kept:
        kept.executescript("\n".join(saved["undo"]).replace(OWNER, f"420, {os.getuid()}, {os.getgid()}"))


def resumed(top: Path, recorded: str, native: bool) -> Story:
    unpack(top, recorded)
    return Story(top, [decide(respond("It is 2."))], mode="ask", native=native)


@both_forms
@either_model
async def test_the_conversation_goes_on(tmp_path: Path, recorded: str, native: bool) -> None:
    story = resumed(tmp_path, recorded, native)
    state = story.session.state
    assert (state.turn, state.five.constraints) == (3, ["Do not touch other files"])
    assert [message.text for message in state.messages if message.role == "user"] == [
        "Set the price to 2 and write it down. Do not touch other files.",
        "Now delete the notes",
        "値段はいくらですか",
    ]
    assert await story.tell("And now?") == "done"
    request = story.model.requests[0].messages
    sent = "\n".join(message.whole for message in request)
    for words in (
        "return 2",
        "price is 2 now",
        "python3 shop.py",
        "see notes.md",
        "値段は 2 です",
        "Shall I keep notes.md?",
    ):
        assert words in sent, words
    if native:
        calls = [call for message in request for call in message.calls]
        results = {message.answers for message in request if message.role == "tool"}
        assert {call.name for call in calls} >= {"file_ops_read_file", "file_ops_edit_file", "shell_run"}
        assert results == {call.call_id for call in calls}, "no call is sent without its result"
        edit = next(call for call in calls if call.name == "file_ops_edit_file")
        assert json.loads(edit.arguments)["edits"] == [{"old": "return 1\n", "new": "return 2\n"}]


@both_forms
async def test_the_record_says_what_each_call_was_about(tmp_path: Path, recorded: str) -> None:
    story = resumed(tmp_path, recorded, native=True)
    lines = audit_lines(list_audit(story.chat.record()), Words("en"))
    heads = [line.partition("  ")[2] for line in lines if line[0] in "✓✗…"]
    assert "file_ops.read_file shop.py" in heads and any(line.startswith("shell.run python3 shop.py") for line in heads)


@both_forms
async def test_what_was_done_is_taken_back(tmp_path: Path, recorded: str) -> None:
    story = resumed(tmp_path, recorded, native=True)
    outcome = await story.chat.undo.restore(back=True)
    assert sorted(outcome.changed) == ["notes.md", "price.txt", "shop.py"]
    assert "return 1" in (story.folder / "shop.py").read_text()
    assert not (story.folder / "notes.md").exists()
    assert story.all(TurnUndone)[0].turn == 1


@both_forms
async def test_what_was_asked_and_answered_is_still_shown(tmp_path: Path, recorded: str) -> None:
    """Gates and Duck Calls had events of their own; the record and an exported document show them as before."""
    unpack(tmp_path, recorded)
    add_duck_call(tmp_path / "home/s.db")
    story = Story(tmp_path, [decide(respond("It is 2."))], mode="ask")
    assert not story.chat.questions and not story.session.state.pending_gate
    audit = await story.chat.run_command("/audit 50")
    assert audit.count("    answer: yes") == 3 and "    answer: no: keep it" in audit
    assert "duck_call" in audit and "why: It goes in circles" in audit and "answer: by hand" in audit
    await story.chat.run_command("/export out.md")
    document = (story.folder / "out.md").read_text()
    assert document.count("- ? **May I?** → yes") == 2 and "- ? **May I?** → no" in document
    assert "- 🦆 **It goes in circles** → instruct: by hand" in document


def add_duck_call(journal: Path) -> None:
    """As the older program wrote one into its record."""
    title = {"key": "talk.said", "values": {"text": "It goes in circles"}, "texts": {}}
    question: dict[str, Any] = {
        "question_id": "ask_1",
        "kind": "duck_call",
        "title": title,
        "details": [],
        "choices": [],
    }
    answer = {"choice": "instruct", "text": "by hand"}
    rows: list[tuple[str, dict[str, Any]]] = [
        ("duck_called", {"at": 1.0, "question": question, "reason": "STAGNATION", "severity": "medium"}),
        ("duck_answered", {"at": 2.0, "question_id": "ask_1", "answer": answer, "effect": "instruct"}),
    ]
    with sqlite3.connect(journal) as db:
        for kind, event in rows:
            text = json.dumps(event)
            check = zlib.crc32(text.encode(), zlib.crc32(kind.encode()))
            db.execute("INSERT INTO events (kind, body, crc) VALUES (?, ?, ?)", (kind, text, check))
