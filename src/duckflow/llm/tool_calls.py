"""Tool calls and thoughts as they come in over the wire, in pieces or whole."""

import json
import os
from typing import Any, cast

from duckflow.llm.json_fields import as_table
from duckflow.llm.provider import CallDelta
from duckflow.state.message import ToolCall

KNOWN = ("index", "id", "type", "function")


class CallCollector:
    """Puts the pieces of a reply's calls together, by their index, or by their ids where that is always the same."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._places: dict[Any, int] = {}

    def take(self, given: Any) -> list[CallDelta]:
        """What these pieces add."""
        pieces = [as_table(one) for one in cast("list[Any]", given)] if isinstance(given, list) else []
        return [self._piece(piece, number) for number, piece in enumerate(pieces) if piece]

    def _piece(self, piece: dict[str, Any], number: int) -> CallDelta:
        index, call_id = piece.get("index"), str(piece.get("id") or "")
        function = as_table(piece.get("function"))
        name, arguments = str(function.get("name") or ""), function.get("arguments")
        place = self._places.get(number if index is None else index)
        if place is None or (name and self._is_another(self._calls[place], call_id)):
            place = self._places[number if index is None else index] = len(self._calls)
            own = f"call_{os.urandom(4).hex()}"
            self._calls.append({"id": "", "own": own, "name": "", "arguments": [], "extra": {}})
        call = self._calls[place]
        begins = bool(name) and not call["name"]
        call["id"], call["name"] = call["id"] or call_id, call["name"] or name
        text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        call["arguments"].append(text)
        call["extra"] |= {key: value for key, value in piece.items() if key not in KNOWN and value is not None}
        return CallDelta(text, name if begins else "")

    @staticmethod
    def _is_another(call: dict[str, Any], call_id: str) -> bool:
        """Whether a piece with a name begins a new call: by its id, or, without any, as the last one is whole."""
        if call_id and call["id"]:
            return call["id"] != call_id
        return not call_id and not call["id"] and _is_whole(call["arguments"])

    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(
                call_id=one["id"] or one["own"],
                name=one["name"] or "unnamed",
                arguments="".join(one["arguments"]),
                extra=one["extra"],
            )
            for one in self._calls
        )


def _is_whole(pieces: list[str]) -> bool:
    try:
        json.loads("".join(pieces))
    except (ValueError, RecursionError):
        return False
    return True


THOUGHTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
PHASE = "phase"
"""What a text of a reply is: the answer, or a remark on the way."""
GROWING = ("text", "summary", "data")


class ThoughtCollector:
    """Keeps what a model thought under the names it came by: some endpoints want it back with the calls."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}

    def take(self, said: dict[str, Any]) -> str:
        """The text that this piece adds; one that comes under two names is told once."""
        texts = {name: said[name] for name in THOUGHTS if isinstance(said.get(name), str) and said[name]}
        for name, text in texts.items():
            self.fields[name] = self.fields.get(name, "") + text
        if said.get(PHASE):
            self.fields[PHASE] = said[PHASE]
        details = said.get(DETAILS)
        for piece in cast("list[Any]", details) if isinstance(details, list) else []:
            self._detail(as_table(piece))
        return next(iter(texts.values()), "")

    def _detail(self, piece: dict[str, Any]) -> None:
        kept: list[dict[str, Any]] = self.fields.setdefault(DETAILS, [])
        same = next((one for one in kept if one.get("index") == piece.get("index") is not None), None)
        if same is None or same.get("type") != piece.get("type"):
            kept.append(dict(piece))
            return
        for name, value in piece.items():
            grows = name in GROWING and isinstance(value, str) and isinstance(same.get(name), str)
            same[name] = same[name] + value if grows else value if value is not None else same.get(name)
