"""`--output-format stream-json` keeps to its published schema, and says in words what it says by key."""

import json
from pathlib import Path
from typing import Any, cast

import fastjsonschema
import pytest

from duckflow.ui.stream_lines import VERSION, stream_schema
from tests.cli.shell import Shell
from tests.cli.test_led import Led
from tests.journeys.story import act, decide, respond

PUBLISHED = Path(__file__).parents[2] / "docs/stream-json.schema.json"
STORY = (
    decide(act("file_ops.write_file", path="a.py", content="print(1)\n"), next_step="continue"),
    decide(act("shell.run", command="cat a.py"), next_step="continue"),
    decide(respond("Here it is.")),
)


def phrases(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        inner = [phrase for item in table.values() for phrase in phrases(item)]
        return [table, *inner] if {"key", "values", "texts"} <= table.keys() else inner
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [phrase for item in items for phrase in phrases(item)]


def test_the_published_schema_matches_the_code() -> None:
    assert json.loads(PUBLISHED.read_text()) == json.loads(json.dumps(stream_schema())), (
        "python -m duckflow.ui.stream_lines > docs/stream-json.schema.json"
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("language", "done"), [("en", "reated"), ("ja", "作成")])
def test_every_line_keeps_to_the_schema(tmp_path: Path, language: str, done: str) -> None:
    shell = Shell(tmp_path)
    model = shell.script(*STORY)
    ask = ("-p", "create a.py", "-m", model, "--mode", "full-auto", "--output-format", "stream-json")
    lines = [json.loads(line) for line in shell.run(*ask, "--lang", language).stdout.splitlines()]
    check = fastjsonschema.compile(stream_schema())
    for line in lines:
        check(line)
    first, last = lines[0], lines[-1]
    assert first["type"] == "session" and first["version"] == VERSION and first["language"] == language
    assert last["type"] == "result" and last["session_id"] == first["session_id"] and last["files_changed"] == ["a.py"]
    found = [phrase for line in lines for phrase in phrases(line)]
    assert found and all(phrase["text"] for phrase in found)
    written = next(line for line in lines if line["type"] == "action_finished")
    assert done in written["result"]["for_user"]["text"]


def test_a_line_that_a_leader_gets_keeps_to_the_schema(tmp_path: Path) -> None:
    led, check = Led(Shell(tmp_path), *STORY), fastjsonschema.compile(stream_schema())
    assert check(led.until("session"))["version"] == VERSION
    led.tell(type="user", text="create a.py")
    question = check(led.until("question"))["question"]
    led.tell(type="answer", question_id=question["question_id"], text="hmm, perhaps")
    taken = check(led.until("taken"))
    assert taken["meaning"] == "unclear" and all(phrase["text"] for phrase in taken["told"])
    led.tell(type="answer", question_id=question["question_id"], choice="yes")
    assert check(led.until("taken"))["meaning"] == "answer"
    led.tell(type="nonsense")
    check(led.until("error"))
    assert led.process.stdin
    led.process.stdin.close()
    check(led.until("result"))
    led.process.wait(60)
