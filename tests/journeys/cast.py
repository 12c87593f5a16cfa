"""A cast: one model that plays the conversation and each of its agents by a script of its own."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from duckflow.llm.provider import Chunk, Request
from duckflow.llm.scripted import WINDOW, Line, Scripted
from tests.journeys.calling import script_of
from tests.journeys.story import Story, act, decide, respond

NAMED = re.compile(r"(?:You are the agent|あなたはエージェント) ([\w-]+-\d+)")


class Cast:
    """Tells who is asked by what the request says; `parts` hold what each was asked."""

    model = "scripted"
    window = WINDOW
    takes_pictures: bool | None = True
    least_price = 0.0

    def __init__(self, main: Sequence[Line], agents: Mapping[str, Sequence[Line]], native: bool = True) -> None:
        self.takes_tools = native
        parts = {"": main, **agents} if main else agents
        self.parts = {name: script_of(lines, native) for name, lines in parts.items()}
        self.together = 0
        """How many were asked at the same time, at most."""
        self._asked = 0

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        found = NAMED.search("\n".join(message.text for message in request.messages if message.role == "user"))
        self._asked += 1
        self.together = max(self.together, self._asked)
        try:
            async for chunk in self.part(found[1] if found else "").stream(request):
                yield chunk
        finally:
            self._asked -= 1

    def part(self, name: str) -> Scripted:
        if name not in self.parts:
            self.parts[name] = script_of(self.lines(name), self.takes_tools)
        return self.parts[name]

    def lines(self, name: str) -> Iterable[Line]:
        """The script of somebody who was not expected."""
        raise KeyError(name)

    def forgo_tools(self) -> None:
        self.takes_tools = False

    async def aclose(self) -> None:
        pass

    def sizes(self, name: str = "") -> list[int]:
        """The characters of every request of one of them, tools and all."""
        asked = self.parts[name].requests
        return [sum(len(one.whole) for one in each.messages) + len(str(each.tools)) for each in asked]

    def asked(self, name: str = "", number: int = -1) -> str:
        return "\n".join(message.whole for message in self.parts[name].requests[number].messages)


def on_stage(top: Path, main: Sequence[Line], agents: Mapping[str, Sequence[Line]], **other: Any) -> tuple[Story, Cast]:
    """A story whose model is such a cast."""
    cast = Cast(main, agents, native=other.pop("native", True))
    story = other.pop("story", Story)(top, [], **other)
    story.provider = cast
    return story, cast


def calls(*actions: dict[str, Any]) -> dict[str, Any]:
    """A reply with nothing but calls."""
    return {"rationale": "I do it.", "actions": list(actions)}


def hand(task: str, kind: str = "explore", **args: Any) -> dict[str, Any]:
    return act("agent.run", task=task, kind=kind, **args)


def reading(path: str, first: int = 1, last: int = 0) -> dict[str, Any]:
    return act("file_ops.read_file", path=path, start_line=first, end_line=last)


def two_askers(lines: int = 60) -> Cast:
    """Two agents of the conversation want to write a file each, and both ask."""
    main: list[Line] = [
        calls(hand("Write the price", "work"), hand("Write the name", "work")),
        decide(respond("Both are done."), step="PLANNING"),
    ]
    price = act("file_ops.write_file", path="price.py", content="PRICE = 1\n" * lines)
    name = act("file_ops.write_file", path="name.py", content="NAME = 'duck'\n" * lines)
    ends = decide(respond("It is there."))
    return Cast(main, {"work-1": [calls(price), ends], "work-2": [calls(name), ends]})
