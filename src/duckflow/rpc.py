"""JSON-RPC 2.0 between two sides, one message a line. Both sides may send requests and notifications, and cancel their
requests."""

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from duckflow.whole_text import read_json

log = logging.getLogger(__name__)

Message = dict[str, Any]
Params = Mapping[str, Any]
Answer = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""A function that carries out a request of the other side. If it raises an RpcError, the other side gets the error."""
Told = Callable[[str, dict[str, Any]], None]
METHOD_NOT_FOUND, BAD_PARAMS, INTERNAL, GONE = -32601, -32602, -32603, -32000
CANCELLED = "notifications/cancelled"


class RpcError(Exception):
    """The other side refused a request, or cannot be reached any more."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def line_of(message: Message, default: Callable[[Any], Any] | None = None) -> bytes:
    """Encodes a message as a line. `default` turns a value that JSON does not know into one that it does."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=default)
    # A model may stream half a surrogate pair, which cannot be written as UTF-8.
    return text.encode("utf-8", "replace") + b"\n"


class Peer:
    """One end of the connection. `send` hands a message to the transport, which calls `take` with every message that
    comes."""

    def __init__(
        self,
        send: Callable[[Message], None],
        answer: Answer,
        told: Told,
        cancelled: str = CANCELLED,
    ) -> None:
        """`told` gets the notifications; `cancelled` is the method by which this protocol cancels a request."""
        self._send = send
        self._answer = answer
        self._told = told
        self._cancelled = cancelled
        self._numbers = itertools.count(1)
        self._waiting: dict[int | str, asyncio.Future[Any]] = {}
        self._answering: dict[int | str, asyncio.Task[None]] = {}
        self._gone = ""

    async def request(self, method: str, params: Params | None = None, number: int | None = None) -> Any:
        """Sends a request and returns the result. If this call is cancelled, the other side is told so."""
        number = number or self.next_number()
        try:
            return await self.call(method, params, number)
        except asyncio.CancelledError:
            if method != "initialize" and not self._gone:
                self.notify(self._cancelled, {"requestId": number, "reason": "cancelled"})
            raise

    def call(self, method: str, params: Params | None = None, number: int | None = None) -> asyncio.Future[Any]:
        """Sends a request at once. The caller need not wait for the result. A caller that stops waiting cancels
        nothing."""
        number = number or self.next_number()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        answer.add_done_callback(lambda _: self._waiting.pop(number, None))
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            if self._gone:
                raise RpcError(GONE, self._gone)
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})})
        except RpcError as problem:
            self.fail(number, problem)
        return answer

    def next_number(self) -> int:
        """Returns a number for a request whose number must be known before it is sent."""
        return next(self._numbers)

    def notify(self, method: str, params: Params | None = None) -> None:
        try:
            self._send({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})
        except (OSError, RpcError) as problem:
            log.info("%s was not told: %s", method, problem)

    def take_line(self, line: bytes) -> None:
        """Takes a line. A line that is no JSON is ignored."""
        self.take(read_json(line))

    def take(self, message: Any) -> None:
        """Takes a message. A value that is no message is ignored: some servers print other things as well."""
        if not isinstance(message, dict):
            return
        fields = cast("Message", message)
        method, number, params = fields.get("method"), fields.get("id"), fields.get("params")
        table = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        if isinstance(method, str) and isinstance(number, int | str):
            self._answering[number] = asyncio.create_task(self._reply(number, method, table))
        elif method == self._cancelled:
            if task := self._answering.get(cast("int | str", table.get("requestId"))):
                task.cancel()
        elif isinstance(method, str):
            self._hear(method, table)
        elif isinstance(number, int | str):
            self._settle(number, fields)

    def fail(self, number: int | str, problem: RpcError) -> None:
        """Ends a request with this error, because the transport could not send it."""
        if (answer := self._waiting.get(number)) and not answer.done():
            answer.set_exception(problem)

    def close(self, why: str) -> None:
        """Ends the connection: requests that wait for an answer fail, and answers in progress are cancelled."""
        self._gone = self._gone or why
        for number in list(self._waiting):
            self.fail(number, RpcError(GONE, why))
        for task in self._answering.values():
            task.cancel()

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        try:
            self._told(method, params)
        except (TypeError, ValueError, AttributeError, KeyError) as problem:
            log.warning("%s makes no sense: %s", method, problem, exc_info=True)

    def _settle(self, number: int | str, fields: Message) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        error: Any = fields.get("error")
        if isinstance(error, dict):
            details = cast("dict[str, Any]", error)
            code = details.get("code")
            problem = RpcError(
                code if isinstance(code, int) else INTERNAL, str(details.get("message", "")), details.get("data")
            )
            answer.set_exception(problem)
        else:
            answer.set_result(fields.get("result"))

    async def _reply(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        reply: Message = {"jsonrpc": "2.0", "id": number}
        try:
            reply["result"] = await self._answer(method, params)
        except RpcError as problem:
            data_field = {} if problem.data is None else {"data": problem.data}
            reply["error"] = {"code": problem.code, "message": problem.message, **data_field}
        except asyncio.CancelledError:
            return
        except Exception as problem:
            log.exception("a request broke off: %s", method)
            reply["error"] = {"code": INTERNAL, "message": type(problem).__name__}
        finally:
            self._answering.pop(number, None)
        try:
            self._send(reply)
        except (OSError, RpcError) as problem:
            log.info("%s was not answered: %s", method, problem)
