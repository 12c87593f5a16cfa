"""What an endpoint was seen to accept, remembered between runs."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.state.json_fields import as_table, read_json
from duckflow.whole_file import write_whole

FORMATS: tuple[str, ...] = ("strict", "schema", "object", "text")
"""How JSON is asked for: a schema that binds, a schema that guides, any JSON object, words in the prompt only."""
TOOLS = ("", "native", "json")
"""Whether tools are called: not known, seen or listed to be so, or not."""
LIMITS = ("max_tokens", "max_completion_tokens", "")

LIMIT_TOO_LARGE = r"(?s)max_?(completion_|output_?)?tokens.{0,120}(too large|at most|exceed|less than|maximum)"


class Abilities(NamedTuple):
    """Which optional parts of a request an endpoint takes for one model."""

    format: str = "strict"
    reply_limit: str = "max_tokens"
    tools: str = ""
    wire: str = "chat"
    lacks: frozenset[str] = frozenset()
    """The parts that it has refused, as the wire calls them; `effort high` is one effort; `pictures` it cannot see."""

    def without(self, *parts: str) -> "Abilities":
        return self._replace(lacks=self.lacks | set(parts))

    def with_simpler_format(self, formats: Sequence[str]) -> "Abilities | None":
        later = formats[formats.index(self.format) + 1 :] if self.format in formats else ()
        return self._replace(format=later[0]) if later else None

    def with_other_limit(self, answer: str, limits: Sequence[str]) -> "Abilities":
        other = next((limit for limit in limits if limit != self.reply_limit), "")
        known = self.reply_limit == "max_completion_tokens" or (other and other in answer)
        return self._replace(reply_limit=other if known and not re.search(LIMIT_TOO_LARGE, answer) else "")


class AbilityBook:
    """Remembers abilities in a small file. A file that cannot be read or written is as good as none."""

    def __init__(self, path: Path | None = None, days: float = 30.0, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._seconds = days * 86_400
        self._now = now

    def recall(self, where: str, model: str, default: Abilities) -> Abilities:
        entry = as_table(self._read().get(f"{where} {model}"))
        learned = entry.get("learned")
        if not isinstance(learned, int | float) or not 0 <= self._now() - learned <= self._seconds:
            return default
        form, limit, tools = entry.get("format"), entry.get("reply_limit"), entry.get("tools", "")
        wire, lacks = entry.get("wire", default.wire), entry.get("lacks")
        if form not in FORMATS or limit not in LIMITS or tools not in TOOLS or not isinstance(wire, str):
            return default
        parts = frozenset(map(str, cast("list[Any]", lacks))) if isinstance(lacks, list) else frozenset[str]()
        return Abilities(form, limit, tools or default.tools, wire, parts)

    def learn(self, where: str, model: str, abilities: Abilities) -> None:
        if self._path is None:
            return
        entries = self._read()
        entries[f"{where} {model}"] = abilities._asdict() | {
            "lacks": sorted(abilities.lacks),
            "learned": int(self._now()),
        }
        with contextlib.suppress(OSError):
            write_whole(self._path, json.dumps(entries, indent=1))

    def _read(self) -> dict[str, Any]:
        with contextlib.suppress(OSError):
            return as_table(read_json(self._path.read_bytes())) if self._path else {}
        return {}
