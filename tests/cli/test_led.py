"""Headless for programs: answers of a shape, and conversations led by lines of JSON."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.ui.headless_input import read_led_line
from tests.cli.shell import Shell
from tests.journeys.drawn import png
from tests.journeys.plans import PROPOSE, SNAKE, run_step
from tests.journeys.story import act, decide, respond

SCHEMA = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}}, "count": {"type": "integer"}},
    "required": ["files", "count"],
    "additionalProperties": False,
}
FITTING = {"files": ["a.py"], "count": 1}


@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_answer_has_the_wished_shape(tmp_path: Path, language: str) -> None:
    """The English case passes the schema on the command line, the Japanese one in a file."""
    shell = Shell(tmp_path)
    wrong, fenced = json.dumps({"files": "a.py"}), f"Here:\n```json\n{json.dumps(FITTING)}\n```"
    model = shell.script(decide(respond("no json")), decide(respond(wrong)), decide(respond(fenced)))
    ask = ("-p", "which files?", "-m", model, "--lang", language, "--json-schema")
    if language == "en":
        done = shell.run(*ask, json.dumps(SCHEMA), stdin="")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == FITTING
        return
    (shell.work / "schema.json").write_text(json.dumps(SCHEMA))
    told = json.loads(shell.run(*ask, "schema.json", "--output-format", "json", stdin="").stdout)
    assert told["structured"] == FITTING and told["usage"]["calls"] == 3


def test_an_answer_that_never_fits_is_a_failure(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    model = shell.script(*[decide(respond("no json"))] * 3)
    done = shell.run("-p", "x", "-m", model, "--json-schema", json.dumps(SCHEMA), stdin="")
    assert done.returncode == 1 and done.stdout == "" and "does not fit" in done.stderr


@pytest.mark.parametrize("schema", ["{", "missing.json", '{"type": 7}', '{"$ref": "http://127.0.0.1:9/x"}'])
def test_an_invalid_schema_is_refused(tmp_path: Path, schema: str) -> None:
    shell = Shell(tmp_path)
    done = shell.run("-p", "x", "-m", shell.script(), "--json-schema", schema, stdin="")
    assert done.returncode == 2 and "--json-schema" in done.stderr and "Traceback" not in done.stderr


class Led:
    """A conversation in a process, led line by line."""

    def __init__(self, shell: Shell, *replies: Any) -> None:
        line = ("-m", shell.script(*replies), "--input-format", "stream-json", "--output-format", "stream-json")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duckflow", *line],
            cwd=shell.work,
            env=shell.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def tell(self, **line: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def until(self, kind: str) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:
            told = json.loads(line)
            if told["type"] == kind:
                return told
        raise AssertionError(f"no {kind}")


def test_another_program_leads_a_conversation_and_answers_its_gate(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write = decide(act("file_ops.write_file", path="a.py", content="print(1)\n"), respond("Here it is."))
    led = Led(shell, write, decide(respond("And again.")))
    led.tell(type="user", message={"role": "user", "content": [{"type": "text", "text": "create a.py"}]})
    question = led.until("question")["question"]
    assert question["gate"]["impacts"][0]["path"] == "a.py"
    led.tell(type="answer", question_id=question["question_id"], text="はい、お願いします")
    assert led.until("taken")["meaning"] == "answer"
    assert led.until("turn_ended")["outcome"] == "done" and (shell.work / "a.py").exists()
    assert led.until("result")["result"] == "Here it is."
    led.tell(type="nonsense")
    assert "nonsense" in led.until("error")["error"]
    led.tell(type="user", text="again")
    assert led.until("turn_ended")["turn"] == 2
    assert led.until("result")["result"] == "And again."
    assert led.process.stdin and led.process.stdout
    led.process.stdin.close()
    # A turn has one result, and nothing came after it.
    assert led.process.stdout.read() == "" and led.process.wait(60) == 0


def test_a_gate_that_nobody_answers_any_more_is_refused(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write = decide(act("file_ops.write_file", path="a.py", content="x\n"), respond("Here it is."))
    led = Led(shell, write, decide(respond("It was not written.")))
    led.tell(type="user", text="create a.py")
    led.until("question")
    assert led.process.stdin
    led.process.stdin.close()
    assert led.until("result")["outcome"] == "gate"
    assert led.process.wait(60) == 3 and not (shell.work / "a.py").exists()


def test_a_line_that_needs_no_turn_has_a_result_too(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write = decide(act("file_ops.write_file", path="a.py", content="x\n"), respond("Here it is."))
    led = Led(shell, write)
    led.tell(type="user", text="create a.py")
    for wish, there in (("create a.py", True), ("undo that, please", False), ("/redo", True)):
        if wish != "create a.py":
            led.tell(type="user", text=wish)
        led.tell(type="answer", question_id=led.until("question")["question"]["question_id"], text="yes")
        result = led.until("result")
        assert (result["outcome"], (shell.work / "a.py").exists()) == ("done", there)
        assert ("a.py" in result["result"]) == (wish != "create a.py"), "what was told is the answer"
    led.tell(type="user", text="/nonsense")
    result = led.until("result")
    assert result["outcome"] == "usage" and "/nonsense" in result["why"]
    assert led.process.stdin
    led.process.stdin.close()
    assert led.process.wait(60) == 2


@pytest.mark.parametrize(("pause", "cancel"), [("pause it", "cancel the job"), ("一時停止して", "ジョブを中止して")])
def test_a_word_to_a_job_has_a_result(tmp_path: Path, pause: str, cancel: str) -> None:
    shell = Shell(tmp_path)
    language = "en" if pause.isascii() else "ja"
    shell.write_config(f'language = "{language}"\n[safety]\nmode = "full-auto"\n')
    long_task = {"json": {"tasks": [act("shell.run", command="sleep 600")]}}
    led = Led(shell, PROPOSE, {"json": SNAKE}, run_step(1), long_task)
    for wish, outcome in (("make a snake game", "pending_user"), ("yes", "deferred")):
        led.tell(type="user", text=wish)
        result = led.until("result")
        assert result["outcome"] == outcome, result
    for wish, told in ((pause, ("Paused", "一時停止")), (cancel, ("Cancelled", "中止"))):
        led.tell(type="user", text=wish)
        result = led.until("result")
        assert result["outcome"] == "done" and any(word in result["result"] for word in told), result
    assert led.process.stdin
    led.process.stdin.close()
    assert led.process.wait(60) == 0


def test_an_undo_in_words_is_a_success_without_a_person(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write = decide(act("file_ops.write_file", path="a.py", content="x\n"), respond("Here it is."))
    model = shell.script(write)
    shell.run("-p", "create a.py", "-m", model, "--mode", "auto-edit", stdin="")
    assert (shell.work / "a.py").exists()
    done = shell.run("-c", "-p", "undo that, please", "-m", model, "--mode", "auto-edit", stdin="")
    assert done.returncode == 0 and "a.py" in done.stdout and not (shell.work / "a.py").exists()


@pytest.mark.parametrize(
    ("line", "kind"),
    [("", None), ("{", "unreadable"), ('{"type": "user"}', "unreadable"), ('{"type": "interrupt"}', "interrupt")],
)
def test_a_line_of_the_leading_program_is_read(line: str, kind: str | None) -> None:
    order = read_led_line(line)
    assert (order.kind if order else None) == kind


def test_pictures_come_with_a_message_in_both_forms(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    first, second = (base64.b64encode(png(8, size)).decode() for size in (1, 2))
    led = Led(shell, decide(respond("Two ducks."), step="PLANNING"))
    content = [
        {"type": "text", "text": "what are these?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": first}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{second}"}},
    ]
    led.tell(type="user", message={"role": "user", "content": content})
    told = [led.until("message_added")["message"] for _ in range(3)]
    assert [one["pictures"][0]["height"] for one in told if one["pictures"]] == [1, 2]
    assert led.until("turn_ended")["outcome"] == "done"
    assert led.process.stdin
    led.process.stdin.close()
    assert led.process.wait(60) == 0
