"""A web server on loopback that behaves as badly as it is told to, and the seam by which a page is fetched from it."""

import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from duckflow.tools.web.address import Network

PUBLIC = "93.184.215.14"
"""What names lead to in these stories: an address that is checked like any other; only the last hop goes here."""

Answer = Callable[[socket.socket, str], None]


class WebServer:
    """Answers each connection as set for its path, and keeps the requests."""

    def __init__(self, answers: Mapping[str, Answer], tls: ssl.SSLContext | None = None) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.hosts: list[str] = []
        self.dialled: list[str] = []
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def network(self, **names: Sequence[str]) -> Network:
        """Leads every name to a public address unless another is given; that address leads to this server."""

        async def resolve(host: str, port: int) -> Sequence[str]:
            return names.get(host.replace(".", "_"), [PUBLIC])

        return Network(resolve, self.dial)

    def dial(self, address: str, port: int) -> tuple[str, int]:
        self.dialled.append(address)
        return "127.0.0.1", self.port

    def __enter__(self) -> "WebServer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ended.set()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                if not (piece := connection.recv(65536)):
                    return
                head += piece
            lines = head.decode().split("\r\n")
            path = lines[0].split()[1]
            self.asked.append(path)
            self.hosts += [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
            with connection:
                self.answers[path.partition("?")[0]](connection, path)


def page(body: bytes | str, kind: str = "text/html; charset=utf-8", status: str = "200 OK", more: str = "") -> Answer:
    data = body.encode() if isinstance(body, str) else body

    def answer(connection: socket.socket, path: str) -> None:
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n{more}\r\n"
        connection.sendall(head.encode() + data)

    return answer


def redirect(location: str) -> Answer:
    return page("", status="302 Found", more=f"location: {location}\r\n")


def drip(piece: bytes, seconds: float, first: bytes = b"", server: "list[WebServer] | None" = None) -> Answer:
    """Sends something every moment, without an end."""

    def answer(connection: socket.socket, path: str) -> None:
        connection.sendall(first)
        with suppress(OSError):
            while server is None or not server or not server[0].ended.wait(seconds):
                connection.sendall(piece)

    return answer
