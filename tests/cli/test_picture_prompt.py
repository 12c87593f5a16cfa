"""`duckflow -p` with a picture: real processes, real HTTP."""

import base64
import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.test_headless import Server, impatient_shell, status, stream
from tests.journeys.drawn import png


@pytest.fixture
def server() -> "Server":
    return Server()


def ask(shell: Shell, server: Server, model: str, *more: str) -> "tuple[int, str, str]":
    (shell.work / "shot.png").write_bytes(png(80, 60))
    try:
        done = shell.run("-p", "what is in @shot.png?", "-m", model, *more, **server.variables)
    finally:
        server.close()
    return done.returncode, done.stdout, done.stderr


def test_a_picture_is_sent_shown_as_a_line_and_answered(tmp_path: Path, server: Server) -> None:
    server.replies = [stream("A duck.")]
    code, out, err = ask(impatient_shell(tmp_path), server, "gpt-4o")
    assert (code, out) == (0, "A duck.\n") and "picture: shot.png (PNG, 80×60, " in err
    messages = json.loads(server.bodies[0])["messages"]
    [parts] = [one["content"] for one in messages if isinstance(one["content"], list)]
    assert parts[1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(png(80, 60)).decode()}"


def test_a_picture_is_not_sent_to_a_model_that_is_known_not_to_see(tmp_path: Path, server: Server) -> None:
    code, out, err = ask(impatient_shell(tmp_path), server, "gpt-3.5-turbo", "--lang", "ja")
    assert (code, out) == (2, "") and "gpt-3.5-turbo は画像に対応していません" in err and server.bodies == []


def test_a_model_that_refuses_pictures_is_reported(tmp_path: Path, server: Server) -> None:
    server.replies = [status(400, json.dumps({"error": {"message": "image input is not supported by this model"}}))]
    code, _, err = ask(impatient_shell(tmp_path), server, "some-new-model")
    assert code == 1 and "some-new-model cannot see pictures" in err and len(server.bodies) == 1
