"""A model server on 127.0.0.1 that says what it is told to: Decisions in order, other replies by what they are for."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.journeys.story import decide, respond

PIECE = 200
SLOW_PIECE = 8
SLOW_SECONDS = 0.02
NOTHING_MORE = json.dumps(decide(respond("That is all."), step="REVIEW"))
FIELDS = {"actions": "decision", "steps": "plan", "tasks": "tasks", "causes": "report"}


class Talker:
    """Keeps no request, so that it can go on for a long time."""

    def __init__(self) -> None:
        self._decisions: deque[str] = deque()
        self._others: dict[str, str] = {}
        self._slow = ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                text, slow = outer.reply(_kind(asked))
                try:
                    _stream(self, text, slow)
                except OSError:
                    # Whoever asked has gone: interrupted.
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def decisions(self, decisions: Iterable[dict[str, Any]]) -> None:
        self._decisions = deque(json.dumps(decision) for decision in decisions)

    def expect(self, kind: str, reply: dict[str, Any]) -> None:
        self._others[kind] = json.dumps(reply)

    def slow(self, decision: str) -> None:
        """Lets the next Decision come slowly."""
        self._slow = decision

    def reply(self, kind: str) -> tuple[str, bool]:
        if kind != "decision":
            return self._others.get(kind, "one line of text\n"), False
        if self._slow:
            text, self._slow = self._slow, ""
            return text, True
        return self._decisions.popleft() if self._decisions else NOTHING_MORE, False

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _kind(asked: dict[str, Any]) -> str:
    """Returns the procedure that wants the reply: its schema tells. Only a Decision is asked for with tools."""
    if asked.get("tools"):
        return "decision"
    schema = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return next((kind for field, kind in FIELDS.items() if field in schema.get("properties", {})), "text")


def _stream(handler: BaseHTTPRequestHandler, text: str, slow: bool) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.end_headers()
    size = SLOW_PIECE if slow else PIECE
    for start in range(0, len(text), size):
        delta = {"choices": [{"index": 0, "delta": {"content": text[start : start + size]}, "finish_reason": None}]}
        handler.wfile.write(f"data: {json.dumps(delta)}\n\n".encode())
        if slow:
            time.sleep(SLOW_SECONDS)
    usage = {"prompt_tokens": 900, "completion_tokens": len(text) // 4}
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    handler.wfile.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
