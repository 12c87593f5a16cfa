"""An endpoint that sends its key back, in an error or in a reply: no file and no trace holds it afterwards."""

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond
from tests.llm.fake_endpoint import Answer, Exchange, FakeEndpoint, says, sends

KEY = 'pond7"reed\\duck9-of-the-lake'
"""A key in no known form, which JSON spells in another way."""
CONFIG = '[llm]\ntries = 1\n[llm.endpoints.pond]\nbase_url = "{url}"\nkey_env = "POND_KEY"\n'
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)


def refuses(status: int, body: str, **headers: str) -> Answer:
    def answer(exchange: Exchange) -> None:
        exchange.body(body, status, headers)

    return answer


def ends_with(*events: Any) -> Answer:
    return sends(*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def thinks(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"reasoning_content": text, "content": ""}}]}


def replies(*actions: dict[str, Any]) -> str:
    return json.dumps(decide(*actions, step="PLANNING"))


ECHOES: dict[str, Answer] = {
    "an error's message": refuses(401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}})),
    "an error, escaped": refuses(400, f'{{"error": {{"message": "bad key {ESCAPED}"}}}}'),
    "an error that is no JSON": refuses(400, f"<html><title>Bearer {KEY}</title></html>"),
    "an error behind a long text": refuses(422, json.dumps({"detail": "x" * 225 + KEY})),
    "headers of an error": refuses(400, "{}", **{"x-request-id": KEY, "www-authenticate": f"Bearer {KEY}"}),
    "a redirect": refuses(302, "", location=f"http://127.0.0.1:9/{KEY}"),
    "an error within a reply": ends_with({"error": {"message": f"no quota for {KEY}", "code": 402}}),
    "a reply": says(replies(respond(f"your key is {KEY}"))),
    "a reply in pieces": says(*replies(respond(f"your key is {KEY}, yes"))),
    "plain words": says(f"I was given {KEY}."),
    "a thought": ends_with(thinks(f"they use {KEY}"), {"choices": [{"delta": {"content": replies(respond("ok"))}}]}),
    "a call's path": says(replies(act("file_ops.read_file", path=f"notes/{KEY}.txt"), respond("done"))),
    "a call's command": says(replies(act("shell.run", command=f"echo '{KEY}'"), respond("done"))),
    "the model's name": ends_with(
        {"model": KEY, "id": KEY, "choices": [{"delta": {"content": replies(respond("ok"))}}]}
    ),
    "usage": says(replies(respond("ok")), usage={"prompt_tokens": 3, "completion_tokens": 1, "note": KEY}),
}


class Collected(ThreadingHTTPServer):
    """Collects traces."""

    def __init__(self) -> None:
        self.raw = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                outer.raw += self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.end_headers()

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def collected() -> Generator[Collected]:
    server = Collected()
    yield server
    server.shutdown()
    server.server_close()


def spelled(data: bytes) -> bool:
    return any(key.encode() in data for key in (KEY, json.dumps(KEY)[1:-1], json.dumps(json.dumps(KEY)[1:-1])[1:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_is_said_back_is_stored_nowhere(tmp_path: Path, echo: str, collected: Collected) -> None:
    shell = Shell(tmp_path)
    with FakeEndpoint(ECHOES[echo], models=[{"id": "m"}]) as endpoint:
        shell.write_config(CONFIG.format(url=endpoint.url))
        shell.run(
            *("-p", "hello", "-m", "pond:m"),
            POND_KEY=KEY,
            DUCKFLOW_LOG="DEBUG",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collected.server_address[1]}",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
        )
        assert any(f"Bearer {KEY}" in seen.get("authorization", "") for seen in endpoint.headers_seen)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".db" for path in files)
    assert [path.name for path in files if spelled(path.read_bytes())] == []
    assert not spelled(collected.raw)
