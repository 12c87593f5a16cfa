"""A small server of the Model Context Protocol at an address of this machine, for tests."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

TOOL: dict[str, Any] = {
    "name": "add",
    "description": "Adds",
    "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}},
}
META = "io.modelcontextprotocol/protocolVersion"


class HttpServer:
    """A server for tests. `habit` says how it answers; `seen` holds the headers and messages that came."""

    def __init__(self, habit: str = "json") -> None:
        self.habit = habit
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.url = ""
        self.token = "fresh"
        self.tools = [TOOL]
        self.change = asyncio.Event()
        """Set, the list of tools becomes longer; `tells`: that is told before the stream breaks off."""
        self.tells = True
        self.listeners = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                headers = {
                    key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines) if key
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                verb = first.split()[0]
                message = json.loads(body) if body and body[:1] == b"{" else body.decode()
                self.seen.append((verb, headers, message))
                if b"subscriptions/listen" in body:
                    await self._tell_changes(writer, message)
                    break
                writer.write(self._answer(verb, first.split()[1], headers, message))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def _tell_changes(self, writer: asyncio.StreamWriter, message: Any) -> None:
        """Streams an acknowledgement, and a change when it is asked to; then it breaks off."""
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}}
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        self.listeners += 1
        wanted = message["params"]["notifications"]
        writer.write(event("notifications/subscriptions/acknowledged", {"notifications": wanted, **meta}))
        await writer.drain()
        await self.change.wait()
        self.change.clear()
        self.tools = [*self.tools, {**TOOL, "name": f"more{len(self.tools)}"}]
        if self.tells:
            writer.write(event("notifications/tools/list_changed", meta))

    def _answer(self, verb: str, path: str, headers: dict[str, str], message: Any) -> bytes:
        if path == "/token":
            return reply(200, json.dumps({"access_token": self.token, "expires_in": 3600}))
        if self.habit == "login" and headers.get("authorization") != "Bearer fresh":
            return reply(401, "")
        if self.habit == "rights" and "tools/call" in str(message):
            return reply(403, "", 'www-authenticate: Bearer error="insufficient_scope", scope="files:write"\r\n')
        if self.habit == "older":
            return events("event: endpoint\ndata: /messages?id=1\n\n") if verb == "GET" else reply(405, "")
        if verb == "GET":
            return self._stream(headers) if self.habit == "broken" else reply(405, "")
        if verb == "DELETE" or "id" not in message:
            return reply(202, "")
        result, error = self._result(message, headers)
        answer = {"jsonrpc": "2.0", "id": message["id"], **({"error": error} if error else {"result": result})}
        if self.habit == "broken" and message["method"] == "tools/call":
            self._late = answer
            return events("id: e1\nretry: 50\ndata: \n\n")
        if self.habit in ("stream", "broken"):
            return events(f"event: message\ndata: {json.dumps(answer)}\n\n", "mcp-session-id: s1\r\n")
        return reply(200, json.dumps(answer), "mcp-session-id: s1\r\n")

    def _stream(self, headers: dict[str, str]) -> bytes:
        if headers.get("last-event-id") != "e1":
            return reply(405, "")
        return events(f"id: e2\ndata: {json.dumps(self._late)}\n\n")

    def _result(self, message: dict[str, Any], headers: dict[str, str]) -> tuple[Any, Any]:
        method, params = message["method"], message.get("params", {})
        if self.habit == "stateless":
            if method == "initialize":
                return None, {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}}
            if params["_meta"][META] != "2026-07-28" or headers.get("mcp-method") != method:
                return None, {"code": -32602, "message": "no version"}
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "h"},
                }, None
            case "server/discover":
                return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}, None
            case "tools/list":
                return {"tools": self.tools}, None
            case "tools/call" if self.habit == "stateless" and "inputResponses" not in params:
                ask: dict[str, Any] = {
                    "method": "elicitation/create",
                    "params": {"message": "Sure?", "requestedSchema": {}},
                }
                return {"resultType": "input_required", "inputRequests": {"sure": ask}, "requestState": "s"}, None
            case "tools/call":
                given = params["arguments"]
                told = params.get("inputResponses", {}).get("sure", {}).get("action", "")
                return {"content": [{"type": "text", "text": f"{given['a'] + given['b']}{told}"}]}, None
            case _:
                return None, {"code": -32601, "message": "unknown"}


def reply(status: int, body: str, more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body.encode())}\r\n{more}\r\n"
    )
    return head.encode() + body.encode()


def event(method: str, params: dict[str, Any]) -> bytes:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params})}\n\n".encode()


def events(body: str, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body.encode())}\r\n{more}\r\n"
    return head.encode() + body.encode()


@asynccontextmanager
async def serving(habit: str) -> AsyncGenerator[HttpServer]:
    server = HttpServer(habit)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    try:
        yield server
    finally:
        listening.close()
