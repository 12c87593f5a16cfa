"""Facts about models that are known without asking: windows, prices, abilities.

The figures are in `models.json` (from models.dev, MIT, July 2026): by provider and model [window, longest reply,
dollars per million tokens of input, output, cache read and cache write, flags: t tools, v sees pictures, r reasons, s
keeps to a schema]."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.llm.endpoints import KNOWN, SERVERS
from duckflow.llm.settings import LlmSettings, Price
from duckflow.state.data import as_table
from duckflow.whole_file import write_whole
from duckflow.whole_text import read_json

FORMATS: tuple[str, ...] = ("strict", "schema", "object", "text")
"""Ways to ask for JSON: a strict schema, a schema as a guide, any JSON object, only words in the prompt."""
TOOLS = ("", "native", "json")
"""Values of `Abilities.tools`. Empty: it is not known whether native tool calls work. `native`: they work. `json`: they
do not work, so JSON is used."""
LIMITS = ("max_tokens", "max_completion_tokens", "")

LIMIT_TOO_LARGE = r"(?s)max_?(completion_|output_?)?tokens.{0,120}(too large|at most|exceed|less than|maximum)"


class Abilities(NamedTuple):
    """The optional parts of a request that an endpoint takes for one model."""

    format: str = "strict"
    reply_limit: str = "max_tokens"
    tools: str = ""
    wire: str = "chat"
    lacks: frozenset[str] = frozenset()
    """The parts of a request that the endpoint has refused, under the names that the wire gives them. `effort high` is
    one level of effort; `pictures` means that the model cannot see."""

    def without(self, *parts: str) -> "Abilities":
        return self._replace(lacks=self.lacks | set(parts))

    def with_simpler_format(self, formats: Sequence[str]) -> "Abilities | None":
        simpler_formats = formats[formats.index(self.format) + 1 :] if self.format in formats else ()
        return self._replace(format=simpler_formats[0]) if simpler_formats else None

    def with_other_limit(self, answer: str, limits: Sequence[str]) -> "Abilities":
        other_limit = next((limit for limit in limits if limit != self.reply_limit), "")
        takes_other = self.reply_limit == "max_completion_tokens" or (other_limit and other_limit in answer)
        return self._replace(reply_limit=other_limit if takes_other and not re.search(LIMIT_TOO_LARGE, answer) else "")


class AbilityBook:
    """Remembers in a small file what each endpoint can do. An unusable file counts as missing."""

    def __init__(self, path: Path | None = None, days: float = 30.0, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._seconds = days * 86_400
        self._now = now

    def recall(self, where: str, model: str, default: Abilities) -> Abilities:
        entry = as_table(self._read().get(f"{where} {model}"))
        learned_at = entry.get("learned")
        if not isinstance(learned_at, int | float) or not 0 <= self._now() - learned_at <= self._seconds:
            return default
        format_name, limit, tools = entry.get("format"), entry.get("reply_limit"), entry.get("tools", "")
        wire, missing_parts = entry.get("wire", default.wire), entry.get("lacks")
        if format_name not in FORMATS or limit not in LIMITS or tools not in TOOLS or not isinstance(wire, str):
            return default
        parts = (
            frozenset(map(str, cast("list[Any]", missing_parts)))
            if isinstance(missing_parts, list)
            else frozenset[str]()
        )
        return Abilities(format_name, limit, tools or default.tools, wire, parts)

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


TABLE = Path(__file__).with_name("models.json")
DEFAULT_WINDOW = 32_768

OLLAMA_WINDOW = 4_096
"""The tokens that Ollama gives to a model by default. Ollama cuts longer prompts silently."""

SERVED_WINDOW = 131_072
"""The largest window that is assumed for a local server, because such a server seldom gives a model all the context
that the model supports."""

LISTED_AS = {endpoint.name: endpoint.listed_as for endpoint in KNOWN if endpoint.listed_as}
"""Names of endpoints in the table of models, where they differ from Duckflow's own names."""

DATED = r"[-@](latest|preview|\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4}|\d{4,8})$"
"""Matches the end of a model's name if it is a date, or a version named by a date."""

Row = tuple[int, int, float | None, float | None, float | None, float | None, str]


class Facts(NamedTuple):
    """Facts about one model. If `known` is False, the facts are guessed from similar names, without a price."""

    name: str = ""
    window: int = DEFAULT_WINDOW
    longest_reply: int = 0
    price: Price | None = None
    flags: str = ""
    known: bool = False

    def has(self, flag: str) -> bool | None:
        """Says whether the model has the ability of this flag; None when that is not known."""
        return True if flag in self.flags else False if self.known else None


@cache
def facts_of(endpoint: str, model: str) -> Facts:
    """Returns the facts about a model, or a guess from models whose names begin alike. The result is cached: a turn
    asks a dozen times, and a guess compares the name with every model of the table."""
    rows, name = models_of(endpoint), model
    while name not in rows and (shorter_name := re.sub(DATED, "", name)) != name:
        name = shorter_name
    if name in rows:
        facts = _facts(name, rows[name])
    else:
        facts = _guessed(rows, model) or _guessed(_all_models(), model) or Facts(model)
    if endpoint == "ollama":
        return facts._replace(window=OLLAMA_WINDOW)
    return facts._replace(window=min(facts.window, SERVED_WINDOW)) if endpoint in SERVERS else facts


def models_of(endpoint: str) -> dict[str, Row]:
    """Returns the models that an endpoint is known to have, with their facts."""
    return _table().get(LISTED_AS.get(endpoint, endpoint), {})


def nearest_names(wanted: str, endpoints: Iterable[str], most: int = 3) -> list[str]:
    """Returns names such as `openai:gpt-5-mini` that look like the wanted one, nearest first. If none does, it returns
    models of the family that the wanted name begins with, such as `anthropic:claude-sonnet-5` for `claude`."""
    import difflib

    endpoints = list(endpoints)

    spellings: dict[str, str] = {}
    for endpoint in endpoints:
        for model in models_of(endpoint):
            spellings[f"{endpoint}:{model}"] = f"{endpoint}:{model}"
            spellings.setdefault(model, f"{endpoint}:{model}")
    wanted = wanted.lower()
    wanted_spellings = (wanted.replace("/", ":", 1), wanted, wanted.rpartition("/")[2])
    near_groups = (
        difflib.get_close_matches(text, spellings, n=most, cutoff=0.8) for text in dict.fromkeys(wanted_spellings)
    )
    near_names = list(dict.fromkeys(spellings[spelling] for group in near_groups for spelling in group))
    return (near_names or _family(re.split("[:/]", wanted, maxsplit=1)[-1], endpoints))[:most]


def _family(wanted: str, endpoints: Iterable[str]) -> list[str]:
    """Returns one model that calls tools for each endpoint that has some of this name's family: its usual model, or
    else its last. Endpoints that serve their own models come before those that serve other people's."""
    usual_models = {endpoint.name: endpoint.model for endpoint in KNOWN}
    name = _plain(wanted)
    while name:
        names: list[str] = []
        for endpoint in endpoints:
            rows = models_of(endpoint)
            models = [model for model in rows if f"-{name}-" in f"-{_plain(model)}-" and "t" in rows[model][6]]
            if models:
                usual_model = usual_models.get(endpoint, "")
                names.append(f"{endpoint}:{usual_model if usual_model in models else models[-1]}")
        if names:
            return sorted(names, key=lambda near_name: "/" in near_name)
        name = name.rpartition("-")[0]
    return []


def price_of(settings: LlmSettings, endpoint: str, model: str) -> Price | None:
    """Returns the user's own price, else the listed price; None if neither is known. Local servers are free."""
    names = (f"{endpoint}:{model}", f"{endpoint}/{model}", model)
    set_price = next((settings.prices[name] for name in names if name in settings.prices), None)
    return set_price or facts_of(endpoint, model).price or (Price() if endpoint in SERVERS else None)


def _facts(name: str, row: Row) -> Facts:
    window, reply, prompt, output, cached_price, written_price, flags = row
    price = (
        None
        if prompt is None
        else Price(input=prompt, output=output or 0.0, cached=cached_price, written=written_price)
    )
    return Facts(name, window, reply, price, flags, known=True)


def _guessed(rows: dict[str, Row], model: str) -> Facts | None:
    """Guesses facts from the models that share the longest beginning with this name, cut at dashes: their median
    window, and the abilities that all of them have."""
    name = _plain(model)
    while name:
        similar_rows = [row for other_name, row in rows.items() if f"{_plain(other_name)}-".startswith(f"{name}-")]
        if similar_rows:
            flags = set(similar_rows[0][6]).intersection(*(row[6] for row in similar_rows))
            return Facts(
                model,
                sorted(row[0] for row in similar_rows)[(len(similar_rows) - 1) // 2],
                flags="".join(sorted(flags)),
            )
        name = name.rpartition("-")[0]
    return None


def _plain(model: str) -> str:
    return re.sub(r"[.:_]", "-", model.rpartition("/")[2].lower())


def _all_models() -> dict[str, Row]:
    return {name: row for rows in _table().values() for name, row in rows.items()}


@cache
def _table() -> dict[str, dict[str, Row]]:
    table: dict[str, dict[str, Row]] = json.loads(TABLE.read_text("utf-8"))
    return table
