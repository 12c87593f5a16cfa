"""A real HTTP server on loopback that gives scripted answers, good or bad ones."""

import json
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, cast

SECONDS = 10.0


class Exchange(BaseHTTPRequestHandler):
    """One connection, with shorthands for the parts of an answer."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave together: two small writes would wait for each other's acknowledgement.
    wbufsize = -1

    @property
    def endpoint(self) -> "FakeEndpoint":
        return cast("FakeEndpoint", self.server)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.endpoint.paths.append(self.path)
        if not self.endpoint.lists:
            self.body({"error": {"message": "Not found"}}, 404)
        elif not self._refused():
            page = self.endpoint.pages.get(self.path, self.endpoint.page)
            self.body(page or {"object": "list", "data": self.endpoint.models})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        self.endpoint.paths.append(self.path)
        self.endpoint.received.append(json.loads(raw))
        self.endpoint.headers_seen.append({name.lower(): value for name, value in self.headers.items()})
        self.endpoint.asked.set()
        if self._refused():
            return
        try:
            self.endpoint.next_answer()(self)
        except (BrokenPipeError, ConnectionResetError):
            self.endpoint.disconnected.set()
            self.close_connection = True

    def _refused(self) -> bool:
        """Refuses a wrong path before a wrong key, as providers do."""
        key = self.endpoint.key
        if not key or (self.path.startswith("/v1/") and self.headers["authorization"] == f"Bearer {key}"):
            return False
        wrong_path = not self.path.startswith("/v1/")
        message = "Not found" if wrong_path else "Incorrect API key provided"
        self.body({"error": {"message": message}}, 404 if wrong_path else 401)
        return True

    def body(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin(self, kind: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def piece(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, value: Any) -> None:
        self.piece(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode())

    def end(self) -> None:
        self.piece(b"")

    def hang_up(self) -> None:
        self.close_connection = True

    def wait_for_disconnect(self) -> None:
        self.wfile.flush()
        readable, _, _ = select.select([self.connection], [], [], SECONDS)
        if readable and self.connection.recv(1) == b"":
            self.endpoint.disconnected.set()
        self.close_connection = True


Answer = Callable[[Exchange], None]


class FakeEndpoint(ThreadingHTTPServer):
    """Gives the answers in order, repeats the last one, and records the requests it received."""

    daemon_threads = True

    def __init__(
        self, *answers: Answer, models: Sequence[Mapping[str, Any]] = (), page: str = "", key: str = ""
    ) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.received: list[dict[str, Any]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.models = list(models)
        self.page = page
        self.pages: dict[str, Any] = {}
        """What it shows under single paths."""
        self.key = key
        self.lists = True
        """False if it has no list of models at any path."""
        self.asked = threading.Event()
        self.disconnected = threading.Event()
        self._answers = list(answers)
        self._lock = threading.Lock()
        self._connections = 0
        self._left = threading.Condition()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def get_request(self) -> tuple[socket.socket, Any]:
        accepted = super().get_request()
        with self._left:
            self._connections += 1
        return accepted

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._left:
            self._connections -= 1
            self._left.notify_all()

    def left_by_all_but(self, number: int) -> bool:
        """Says whether at most this many connections are still open after a while."""
        with self._left:
            return self._left.wait_for(lambda: self._connections <= number, SECONDS / 2)

    def next_answer(self) -> Answer:
        with self._lock:
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def __enter__(self) -> "FakeEndpoint":
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def chunk(text: str = "", finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def says(*texts: str, finish: str = "stop", usage: Mapping[str, Any] | None = None) -> Answer:
    """Answers with a well-formed stream."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for text in texts:
            exchange.event(chunk(text))
        exchange.event(chunk(finish=finish))
        if usage is not None:
            exchange.event({"choices": [], "usage": dict(usage)})
        exchange.event("[DONE]")
        exchange.end()

    return answer


def sends(*events: Any, done: bool = True) -> Answer:
    """Answers with a stream of exactly these events."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for event in events:
            exchange.event(event)
        if done:
            exchange.event("[DONE]")
        exchange.end()

    return answer


def refuses(status: int, message: str = "", headers: Mapping[str, str] | None = None, **error: Any) -> Answer:
    return lambda exchange: exchange.body({"error": {"message": message, **error}}, status, headers)


def bodies(value: Any, status: int = 200) -> Answer:
    return lambda exchange: exchange.body(value, status)


def breaks_off(*texts: str) -> Answer:
    """Sends half a stream and closes the connection."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for text in texts:
            exchange.event(chunk(text))
        exchange.hang_up()

    return answer


def falls_silent(*texts: str) -> Answer:
    """Sends this text and then nothing, with the connection left open."""

    def answer(exchange: Exchange) -> None:
        if texts:
            exchange.begin()
        for text in texts:
            exchange.event(chunk(text))
        exchange.wait_for_disconnect()

    return answer


def refuses_field(field: str, message: str, otherwise: Answer) -> Answer:
    """Answers 400 to requests that have a field, and normally to the others."""

    def answer(exchange: Exchange) -> None:
        if field in exchange.endpoint.received[-1]:
            refuses(400, message)(exchange)
        else:
            otherwise(exchange)

    return answer


def formats_sent(endpoint: FakeEndpoint) -> list[str]:
    """Returns the format for JSON that each request asked for."""
    asked: list[str] = []
    for body in endpoint.received:
        form = cast("dict[str, Any]", body.get("response_format", {}))
        strict = cast("dict[str, Any]", form.get("json_schema", {})).get("strict")
        asked.append(str(form.get("type", "text")) + ("!" if strict else ""))
    return asked
