"""What an endpoint was seen to accept, remembered between runs."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.llm.json_fields import as_table

FORMATS = ("strict", "schema", "object", "text")
"""How JSON is asked for: a schema that binds, a schema that guides, any JSON object, words in the prompt only."""
TOOLS = ("", "native", "json")
"""Whether tools are called: not known, seen or listed to be so, or not."""
WIRES = ("chat", "responses")
OPTIONAL = ("stream_usage", "temperature", "effort", "thoughts", "user_after_tool", "pictures")
LIMITS = ("max_tokens", "max_completion_tokens", "")

FORMAT_NAMED = r"response.?format|json.?schema|json.?object|json mode|structured.output|grammar|guided"
SCHEMA_NAMED = r"schema"
LIMIT_NAMED = r"max_(completion_)?tokens"
LIMIT_TOO_LARGE = r"(?s)max_(completion_)?tokens.{0,120}(too large|at most|exceed|less than|maximum)"
TOOLS_NAMED = r"\btools?\b|tool.?(use|call|choice)|function.?call|\bfunctions\b"
THOUGHTS_NAMED = r"reasoning_(content|details)|['\"`]reasoning['\"`]"
RESPONSES_NAMED = r"v1/responses|responses api"
REQUEST_REFUSED = (400, 404, 405, 415, 422, 500, 501)


class Abilities(NamedTuple):
    """Which optional parts of a request an endpoint takes for one model."""

    format: str = "strict"
    stream_usage: bool = True
    reply_limit: str = "max_tokens"
    temperature: bool = True
    tools: str = ""
    effort: bool = True
    thoughts: bool = True
    """Takes back what the model thought."""
    user_after_tool: bool = True
    """A user may speak right after a result; else it is said at the end of the result."""
    wire: str = "chat"
    pictures: bool = True
    """It did not refuse any so far."""

    def without_named(self, status: int, answer: str, sent: Collection[str]) -> "Abilities | None":
        """Without the part of the request that the refusal names; None when it names none of those that were sent."""
        if status not in REQUEST_REFUSED:
            return None
        answer = answer.lower()
        if self.wire == "chat" and re.search(RESPONSES_NAMED, answer):
            return self._replace(wire="responses")
        if self.wire == "responses" and status in (404, 405, 501) and "model" not in answer:
            return self._replace(wire="chat")
        if "stream_options" in sent and re.search(r"stream_options|include_usage", answer):
            return self._replace(stream_usage=False)
        if self.reply_limit in sent and re.search(LIMIT_NAMED, answer):
            return self._replace(reply_limit=self._other_limit(answer))
        if "temperature" in sent and "temperature" in answer:
            return self._replace(temperature=False)
        if {"reasoning_effort", "reasoning"} & set(sent) and self.effort and "effort" in answer:
            return self._replace(effort=False)
        if self.thoughts and re.search(THOUGHTS_NAMED, answer):
            return self._replace(thoughts=False)
        if self.user_after_tool and re.search(r"after role.{0,3}tool", answer):
            return self._replace(user_after_tool=False)
        if "tools" in sent and re.search(TOOLS_NAMED, answer):
            return self._replace(tools="json")
        if re.search(FORMAT_NAMED, answer) or (status != 500 and re.search(SCHEMA_NAMED, answer)):
            return self.with_simpler_format(sent)
        return None

    def with_simpler_format(self, sent: Collection[str]) -> "Abilities | None":
        """What a refusal that names nothing may have meant: tools that were never seen to work, or the format."""
        if "tools" in sent and not self.tools:
            return self._replace(tools="json")
        if not {"response_format", "text"} & set(sent):
            return None
        return self._replace(format=FORMATS[FORMATS.index(self.format) + 1])

    def _other_limit(self, answer: str) -> str:
        other = "max_completion_tokens" if self.reply_limit == "max_tokens" else "max_tokens"
        known = self.reply_limit == "max_completion_tokens" or other in answer
        return other if known and not re.search(LIMIT_TOO_LARGE, answer) else ""


class AbilityBook:
    """Remembers abilities in a small file. A file that cannot be read or written is as good as none."""

    def __init__(self, path: Path | None = None, days: float = 30.0, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._seconds = days * 86_400
        self._now = now

    def recall(self, where: str, model: str, default: Abilities) -> Abilities:
        entry = as_table(self._read().get(_entry_name(where, model)))
        learned = entry.get("learned")
        if not isinstance(learned, int | float) or not 0 <= self._now() - learned <= self._seconds:
            return default
        form, limit, tools = entry.get("format"), entry.get("reply_limit"), entry.get("tools", "")
        wire = entry.get("wire", default.wire)
        if form not in FORMATS or limit not in LIMITS or tools not in TOOLS or wire not in WIRES:
            return default
        taken = {name: entry.get(name) is not False for name in OPTIONAL}
        return Abilities(form, reply_limit=limit, tools=tools or default.tools, wire=wire, **taken)

    def learn(self, where: str, model: str, abilities: Abilities) -> None:
        if self._path is None:
            return
        entries = self._read()
        entries[_entry_name(where, model)] = abilities._asdict() | {"learned": int(self._now())}
        draft = self._path.with_name(f".{self._path.name}.{os.urandom(4).hex()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(entries, indent=1), "utf-8")
            draft.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            entries: Any = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", entries) if isinstance(entries, dict) else {}


def _entry_name(where: str, model: str) -> str:
    return f"{where} {model}"
