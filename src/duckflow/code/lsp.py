"""A language server on its standard streams, asked for definitions, references and diagnostics. No question waits
longer for the server than its caller says."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote

from duckflow.programs.launch import AT_ONCE, Launch
from duckflow.programs.process import ProcessTree
from duckflow.rpc import GONE, METHOD_NOT_FOUND, Message, Peer, RpcError
from duckflow.state.data import as_table

LONGEST = 64 * 1024 * 1024
PATIENCE_SECONDS = 2.0
ERROR = 1
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32", "utf-16"]},
    "workspace": {"configuration": True, "workspaceFolders": True, "symbol": {"dynamicRegistration": False}},
    "textDocument": {
        "synchronization": {"didSave": True},
        "definition": {"dynamicRegistration": False},
        "references": {"dynamicRegistration": False},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": True},
    },
}


class CodePlace(NamedTuple):
    """A place in a file of the folder. Lines count from 1, columns from 0."""

    path: str
    line: int
    column: int


class Diagnostic(NamedTuple):
    """A message of a checker or a language server about a line of code."""

    path: str
    line: int
    message: str
    error: bool = True


class LanguageServer:
    """A language server, started by `start`. An RpcError or a TimeoutError from any question means that there is no
    answer."""

    def __init__(self, folder: Path, language: str) -> None:
        self._folder = folder.resolve()
        self._language = language
        self._process: asyncio.subprocess.Process | None = None
        self._launch: Launch | None = None
        self._reading: asyncio.Task[None] | None = None
        self._peer = Peer(self._send, self._answer, self._hear, cancelled="$/cancelRequest")
        self._opened: dict[str, int] = {}
        self._published: dict[str, tuple[int | None, list[Diagnostic]]] = {}
        self._told = asyncio.Event()
        self._able: dict[str, Any] = {}

    async def start(self, launch: Launch, seconds: float, options: dict[str, Any] | None = None) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process, self._launch = await launch.spawn(pipe, pipe, asyncio.subprocess.DEVNULL), launch
        self._reading = asyncio.create_task(self._read())
        root = _address(self._folder)
        params = {
            # Inside a sandbox processes have other numbers.
            "processId": None,
            "rootUri": root,
            "workspaceFolders": [{"uri": root, "name": self._folder.name}],
            "capabilities": CAPABILITIES,
            "initializationOptions": options or {},
        }
        async with asyncio.timeout(seconds):
            answer = as_table(await self._peer.call("initialize", params))
        self._able = as_table(answer.get("capabilities"))
        self._peer.notify("initialized")

    def show(self, path: str, text: str) -> None:
        """Sends the server the present text of a file."""
        version = self._opened[path] = self._opened.get(path, 0) + 1
        document_version = {"uri": self._uri(path), "version": version}
        if version == 1:
            document = {**document_version, "languageId": self._language, "text": text}
            self._peer.notify("textDocument/didOpen", {"textDocument": document})
            return
        self._peer.notify(
            "textDocument/didChange", {"textDocument": document_version, "contentChanges": [{"text": text}]}
        )
        self._peer.notify("textDocument/didSave", {"textDocument": {"uri": self._uri(path)}})

    async def definitions(self, name: str, seconds: float) -> list[CodePlace]:
        """Returns the places that define exactly this name. Servers also return similar names, which are left out."""
        async with asyncio.timeout(seconds):
            answer = await self._peer.call("workspace/symbol", {"query": name})
        symbols = map(as_table, cast("list[Any]", answer)) if isinstance(answer, list) else ()
        return self._places([symbol.get("location") for symbol in symbols if symbol.get("name") == name])

    async def definition(self, place: CodePlace, seconds: float) -> list[CodePlace]:
        return await self._asked("definition", place, seconds)

    async def references(self, place: CodePlace, seconds: float) -> list[CodePlace]:
        return await self._asked("references", place, seconds, {"context": {"includeDeclaration": False}})

    async def diagnostics(self, path: str, seconds: float) -> list[Diagnostic]:
        """Asks the server for diagnostics. If the server does not answer such questions, waits for the diagnostics that
        it publishes for this version of the file."""
        async with asyncio.timeout(seconds):
            while "diagnosticProvider" not in self._able:
                version, diagnostics = self._published.get(path, (0, list[Diagnostic]()))
                if version == self._opened.get(path):
                    return diagnostics
                self._told.clear()
                await self._told.wait()
            document = {"textDocument": {"uri": self._uri(path)}}
            report = as_table(await self._peer.call("textDocument/diagnostic", document))
            return _diagnostics(path, report.get("items"))

    async def aclose(self) -> None:
        """Asks the server to end, then ends it."""
        process, launch = self._process, self._launch
        if process is None or launch is None:
            return
        with contextlib.suppress(RpcError, TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                await self._peer.call("shutdown")
        self._peer.notify("exit")
        self._peer.close("the server was ended")
        if process.stdin:
            process.stdin.close()
        ProcessTree(launch, process.pid).end()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        launch.close()
        if self._reading:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _asked(
        self, what: str, place: CodePlace, seconds: float, extra: dict[str, Any] | None = None
    ) -> list[CodePlace]:
        position = {"line": place.line - 1, "character": place.column}
        params = {"textDocument": {"uri": self._uri(place.path)}, "position": position, **(extra or {})}
        async with asyncio.timeout(seconds):
            answer = await self._peer.call(f"textDocument/{what}", params)
        return self._places(cast("list[Any]", answer) if isinstance(answer, list) else [answer])

    def _places(self, answer: Iterable[Any]) -> list[CodePlace]:
        """Returns the places that lie in the folder. A server may also name places outside it, or none."""
        places = list[CodePlace]()
        for location in map(as_table, answer):
            uri = str(location.get("uri") or location.get("targetUri") or "")
            start = as_table(as_table(location.get("range") or location.get("targetSelectionRange")).get("start"))
            path = Path(unquote(uri.removeprefix("file://")))
            if uri.startswith("file://") and path.is_relative_to(self._folder):
                line, column = int(start.get("line", 0)) + 1, int(start.get("character", 0))
                places.append(CodePlace(str(path.relative_to(self._folder)), line, column))
        return places

    def _uri(self, path: str) -> str:
        return _address(self._folder / path)

    async def _answer(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "workspace/configuration":
                return [None] * len(cast("list[Any]", params.get("items") or []))
            case "workspace/workspaceFolders":
                return [{"uri": _address(self._folder), "name": self._folder.name}]
            case "client/registerCapability":
                registrations = map(as_table, cast("list[Any]", params.get("registrations") or []))
                if any(registration.get("method") == "textDocument/diagnostic" for registration in registrations):
                    self._able["diagnosticProvider"] = True
                    self._told.set()
                return None
            case "client/unregisterCapability" | "window/workDoneProgress/create":
                return None
            case "window/showMessageRequest" | "workspace/diagnostic/refresh":
                return None
            case _:
                raise RpcError(METHOD_NOT_FOUND, method)

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method != "textDocument/publishDiagnostics":
            return
        path = Path(unquote(str(params.get("uri", "")).removeprefix("file://")))
        if path.is_relative_to(self._folder):
            name = str(path.relative_to(self._folder))
            # A server that names no version means the latest text that it was sent.
            version = params.get("version", self._opened.get(name))
            self._published[name] = version, _diagnostics(name, params.get("diagnostics"))
            self._told.set()

    def _send(self, message: Message) -> None:
        stdin = self._process.stdin if self._process else None
        if stdin is None or stdin.is_closing():
            raise RpcError(GONE, "the server does not listen any more")
        message_bytes = json.dumps(message, separators=(",", ":")).encode()
        stdin.write(b"Content-Length: %d\r\n\r\n" % len(message_bytes) + message_bytes)

    async def _read(self) -> None:
        assert self._process and self._process.stdout
        unread_bytes = bytearray()
        while len(unread_bytes) < LONGEST and (received_bytes := await self._process.stdout.read(AT_ONCE)):
            unread_bytes += received_bytes
            while message := _next_message(unread_bytes):
                self._peer.take_line(message)
                await asyncio.sleep(0)
        self._peer.close("the server has ended")


def _next_message(unread: bytearray) -> bytes:
    """Removes and returns the first message; empty bytes while the message is incomplete."""
    header_end = unread.find(b"\r\n\r\n")
    if header_end < 0:
        return b""
    length_match = re.search(rb"(?i)content-length: *(\d+)", unread[:header_end])
    body_length = int(length_match[1]) if length_match else 0
    if len(unread) < header_end + 4 + body_length:
        return b""
    message = bytes(unread[header_end + 4 : header_end + 4 + body_length])
    del unread[: header_end + 4 + body_length]
    return message


def _diagnostics(path: str, answer: Any) -> list[Diagnostic]:
    items = cast("list[Any]", answer) if isinstance(answer, list) else []
    diagnostics = list[Diagnostic]()
    for diagnostic_fields in map(as_table, items):
        start = as_table(as_table(diagnostic_fields.get("range")).get("start"))
        message = " ".join(str(diagnostic_fields.get("message", "")).split())
        diagnostics.append(
            Diagnostic(path, int(start.get("line", 0)) + 1, message, diagnostic_fields.get("severity", ERROR) == ERROR)
        )
    return diagnostics


def _address(path: Path) -> str:
    return "file://" + quote(str(path))
