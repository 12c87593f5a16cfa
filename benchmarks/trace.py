"""How much of the program one message passes through: the model reads a file, edits it after a Gate, and answers.

usage: python -m benchmarks.trace [--typed] [--files | --functions]

The model is scripted and calls tools natively; the Gate (mode `ask`) is answered with yes, by its choice or (`--typed`)
by a line with that word. The same conversation is
held once before, so that imports and what is computed once in a process are not counted. A function counts when it has
a name of its own (no lambda, no comprehension) and is called in any thread between the message and the end of its turn;
`loop_functions` leaves out those that are called only in threads beside the event loop. `argument_checks` says how
often a tool's arguments are validated, by whatever function. The figures after it say how often functions of that name
are called; they are 0 where there is none.
"""

import argparse
import asyncio
import contextlib
import inspect
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pydantic.main

from duckflow.agent.connection import Connected
from duckflow.agent.session import begin
from duckflow.cli.build import build_conversation
from duckflow.cli.setup import Setup
from duckflow.config.settings import Settings
from duckflow.events.types import ActionStarted, Event, QuestionAsked
from duckflow.i18n.words import Words
from duckflow.llm.scripted import Scripted, ScriptedReply
from duckflow.state.action import wire_name
from duckflow.state.data import say
from duckflow.state.message import ToolCall
from duckflow.store.paths import Paths
from duckflow.tools.tool import Args

SOURCE = Path(__file__).parents[1] / "src/duckflow"
WATCHED = ("make_profile", "form_of", "read_line", "read_answer", "errand", "read_decision", "decision_schema")
MESSAGE = "Make main.py print ho instead of hi."
BEFORE, AFTER = "print('hi')\n", "print('ho')\n"
WINDOW = 200_000
SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CallCounter:
    """A profile function that counts calls of this program's functions, and checks of tools' arguments."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.in_loop: set[CodeType] = set()
        """The functions that the event loop's own thread calls."""
        self.argument_checks = 0
        self._source = f"{SOURCE}/"
        self._importing = threading.local()

    @contextlib.contextmanager
    def counting(self) -> Generator[None]:
        """Counts the calls of this thread, and of threads that begin meanwhile."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        depth: int = getattr(self._importing, "depth", 0)
        if code.co_name == "<module>":
            self._importing.depth = depth + (1 if event == "call" else -1)
        elif event == "call" and not depth:
            self._count(frame, code)

    def _count(self, frame: FrameType, code: CodeType) -> None:
        if code.co_filename.startswith(self._source):
            if _has_own_name(code) and _is_beginning(frame, code):
                self.calls[code] += 1
                if threading.current_thread() is threading.main_thread():
                    self.in_loop.add(code)
        elif code.co_filename == pydantic.main.__file__:
            self.argument_checks += _checks_arguments(frame, code)


def _has_own_name(code: CodeType) -> bool:
    """A class body is code too, but it has no fast locals."""
    return not code.co_name.startswith("<") and bool(code.co_flags & inspect.CO_OPTIMIZED)


def _is_beginning(frame: FrameType, code: CodeType) -> bool:
    """The profiler reports a coroutine that goes on as a call as well: its RESUME instruction then has an argument."""
    return not code.co_flags & SUSPENDABLE or code.co_code[frame.f_lasti + 1] == 0


def _checks_arguments(frame: FrameType, code: CodeType) -> bool:
    match code.co_name:
        case "__init__":
            return isinstance(frame.f_locals.get("self"), Args)
        case "model_validate" | "model_validate_json":
            kind = frame.f_locals.get("cls")
            return isinstance(kind, type) and issubclass(kind, Args)
        case _:
            return False


class TracedTurn(NamedTuple):
    """The calls of one turn, and the events that front ends heard of."""

    counter: CallCounter
    events: list[Event]

    def figures(self) -> dict[str, int]:
        calls = self.counter.calls
        return {
            "functions": len(calls),
            "files": len(_files(calls)),
            "loop_functions": len(self.counter.in_loop),
            "loop_files": len(_files(self.counter.in_loop)),
            "events": len(self.events),
            "actions": sum(isinstance(event, ActionStarted) for event in self.events),
            "argument_checks": self.counter.argument_checks,
            **{name: sum(calls[code] for code in calls if code.co_name == name) for name in WATCHED},
        }

    def by_file(self) -> Iterator[str]:
        files = Counter(code.co_filename for code in self.counter.calls)
        for name, functions in files.most_common():
            calls = sum(count for code, count in self.counter.calls.items() if code.co_filename == name)
            yield f"{functions:5} functions {calls:6} calls  {_short(name)}"

    def by_function(self) -> Iterator[str]:
        for code, calls in self.counter.calls.most_common():
            yield f"{calls:6}  {_short(code.co_filename)}:{code.co_firstlineno} {code.co_qualname}"


def _files(codes: Iterable[CodeType]) -> set[str]:
    return {code.co_filename for code in codes}


def _short(file: str) -> str:
    return str(Path(file).relative_to(SOURCE))


def _script() -> list[ScriptedReply]:
    edits = [{"old": BEFORE, "new": AFTER}]
    return [
        ScriptedReply("I look at it first.", calls=(_call("file_ops.read_file", path="main.py"),)),
        ScriptedReply("Now I change it.", calls=(_call("file_ops.edit_file", path="main.py", edits=edits),)),
        ScriptedReply("It is done: main.py prints ho."),
    ]


def _call(operation: str, **args: Any) -> ToolCall:
    return ToolCall(call_id=f"call_{operation}", name=wire_name(operation), arguments=json.dumps(args))


async def hold_turn(top: Path, typed: bool) -> TracedTurn:
    """One conversation of one message in a folder of its own."""
    folder, home = top / "work", top / "home"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(BEFORE, encoding="utf-8")
    given = {"safety": {"mode": "ask"}, "language": "en", "memory": {"summaries": False}}
    setup = Setup(Settings.model_validate(given), Paths(home, home, home), folder, Words("en"), home=top / "user")
    session = begin(home / "session.db", "session", folder, "en")
    model = Scripted(_script(), window=WINDOW, native=True)

    async def connect(_: bool) -> Connected:
        return Connected(model, say("model.chosen.flag"))

    built = build_conversation(setup, session, connect)
    turn = TracedTurn(CallCounter(), [])

    def hear(_: int, event: Event) -> None:
        turn.events.append(event)
        if isinstance(event, QuestionAsked) and typed:
            built.conversation.take("yes")
        elif isinstance(event, QuestionAsked):
            built.conversation.answer(event.question.question_id, "", "yes")

    built.conversation.hear(hear)
    try:
        with turn.counter.counting():
            await built.conversation.say(MESSAGE)
    finally:
        await built.close()
        session.close()
    if (folder / "main.py").read_text(encoding="utf-8") != AFTER:
        raise SystemExit("The turn ended without the edit, so its trace says nothing.")
    return turn


def trace(typed: bool = False) -> TracedTurn:
    """Each conversation has an event loop of its own: threads that the first one left waiting would not be profiled."""
    with tempfile.TemporaryDirectory() as top:
        asyncio.run(hold_turn(Path(top) / "first", typed))
        return asyncio.run(hold_turn(Path(top) / "second", typed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typed", action="store_true", help="the yes is a line that somebody types")
    parser.add_argument("--files", action="store_true", help="print each file with its functions and calls")
    parser.add_argument("--functions", action="store_true", help="print each function with its calls")
    options = parser.parse_args()
    turn = trace(options.typed)
    for line in [*(turn.by_file() if options.files else ()), *(turn.by_function() if options.functions else ())]:
        print(line)
    print(json.dumps(turn.figures()))


if __name__ == "__main__":
    main()
