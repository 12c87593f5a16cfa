"""`duckflow doctor`: every problem with its fix, and an exit code that says whether a conversation would work."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cli.shell import Shell

WAIT = "[llm]\nlocal_first_byte_seconds = 2\nfirst_byte_seconds = 2\n"


class Clinic(BaseHTTPRequestHandler):
    """Answers by the name of the model that is asked for."""

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match asked["model"]:
            case "slow":
                threading.Event().wait(20)
            case "locked":
                self._say(401, "application/json", '{"error": {"message": "bad key"}}')
            case "page":
                self._say(200, "text/html", "<html>welcome</html>")
            case _:
                chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]})
                self._say(200, "text/event-stream", f"data: {chunk}\n\ndata: [DONE]\n\n")

    def _say(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def clinic() -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Clinic)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1", "OPENAI_API_KEY": "sk-hunter2"}
    server.shutdown()
    server.server_close()


def test_doctor_is_content_with_a_model_that_answers(bare: Shell, clinic: dict[str, str]) -> None:
    bare.write_config(WAIT + '[safety]\nmode = "plan"\n')
    done = bare.run("doctor", "-m", "duck", **clinic)
    assert done.returncode == 0, done.stdout
    for hint in ("openai:duck answers", "OPENAI_API_KEY", 'safety.mode = "plan" (from ', "git", "utf-8", "GB free"):
        assert hint in done.stdout
    assert "✗" not in done.stdout and "hunter2" not in done.stdout + done.stderr
    assert "問題ありません" in bare.run("doctor", "-m", "duck", "--lang", "ja", **clinic).stdout


@pytest.mark.parametrize(
    ("model", "what", "fix"),
    [
        ("locked", "refused the key", "Check OPENAI_API_KEY"),
        ("slow", "sent nothing", "another model"),
        ("page", "not a model", "Check the address"),
    ],
)
def test_a_model_that_does_not_answer_comes_with_its_fix(
    bare: Shell, clinic: dict[str, str], model: str, what: str, fix: str
) -> None:
    bare.write_config(WAIT)
    done = bare.run("doctor", "-m", model, **clinic)
    assert done.returncode == 5
    lines = done.stdout.splitlines()
    place = next(number for number, line in enumerate(lines) if "✗" in line)
    assert what in lines[place] and "→" in lines[place + 1] and fix in lines[place + 1]
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "hint"),
    [
        (("-m", "duck"), {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "No server answers"),
        (("-m", "openai:x"), {}, "OPENAI_API_KEY"),
        (("-m", "nowhere:x"), {}, "nowhere"),
        (("-m", "openai:x"), {"OPENAI_API_KEY": "sk with spaces"}, "Copy it again"),
    ],
)
def test_without_a_usable_model_doctor_says_why(
    bare: Shell, arguments: tuple[str, ...], environment: dict[str, str], hint: str
) -> None:
    done = bare.run("doctor", *arguments, **environment)
    assert done.returncode == 5 and hint in done.stdout and "sk with" not in done.stdout


def test_a_broken_config_does_not_keep_it_from_looking_at_the_rest(bare: Shell) -> None:
    bare.write_config("not toml [")
    found = json.loads(bare.run("doctor", "--json", "-m", bare.script()).stdout)
    assert found[0]["state"] == "bad" and str(bare.config) in found[0]["what"]
    assert {one["part"] for one in found} == {"settings", "machine", "terminal", "model"}
    assert bare.run("doctor", "-m", bare.script()).returncode == 1


def test_a_home_that_cannot_be_written_is_reported(bare: Shell) -> None:
    done = bare.run("doctor", "-m", bare.script(), DUCKFLOW_HOME="/dev/null")
    assert done.returncode == 1 and "DUCKFLOW_HOME" in done.stdout and "Traceback" not in done.stderr
    unset = bare.run("doctor", "--json", DUCKFLOW_HOME=None, HOME="/dev/null")
    assert unset.returncode == 1 and not unset.stderr
    assert {found["part"] for found in json.loads(unset.stdout)} == {"settings", "machine", "terminal", "model"}


def test_a_half_downloaded_model_is_reported(bare: Shell) -> None:
    folder = bare.home / "cache/models"
    folder.mkdir(parents=True)
    (folder / ".SmolLM2-135M-Instruct.Q4_1.gguf.partial").write_bytes(b"x" * 9_836_243)
    done = bare.run("doctor", "-m", bare.script())
    assert "only 10 % has been downloaded" in done.stdout and "duckflow models pull smollm2-135m" in done.stdout


@pytest.mark.parametrize(("language", "ways"), [("en", "a provider's key"), ("ja", "プロバイダーのキー")])
def test_where_nothing_is_set_up_doctor_names_every_way_to_a_model(bare: Shell, language: str, ways: str) -> None:
    done = bare.run("doctor", "--lang", language)
    _, _, advice = done.stdout.partition("✗ ")
    assert done.returncode == 5 and "  ✗ " not in advice
    for hint in (ways, "duckflow init", "OPENAI_API_KEY", "Ollama", "duckflow models pull"):
        assert hint in advice
    assert "pip install" not in advice, "the runtime is here, as the lines above say"
