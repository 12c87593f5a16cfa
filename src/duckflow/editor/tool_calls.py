"""Actions as an editor sees them: tool calls with a kind, places, a diff, and what came of them."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from duckflow.events.types import ActionFinished, ActionStarted, OutputStreamed
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.action import Action, Effect, StepKind
from duckflow.state.job import Job
from duckflow.state.noun import shorten
from duckflow.state.question import GateRequest

Update = dict[str, Any]
KINDS: dict[str, str] = {"read": "read", "search": "search", "edit": "edit", "run": "execute"}
BY_EFFECT: dict[str, str] = {"read": "read", "write": "edit", "run": "execute", "network": "fetch", "plan": "think"}
BY_CHANGE = {"create": "edit", "edit": "edit", "move": "move", "delete": "delete", "folder": "edit"}
PATHS = ("path", "source", "target")
LONGEST_TITLE = 160
LONGEST_ARGUMENT = 2000
LONGEST_RESULT = 20_000
LARGEST_FILE = 400_000
SHOWN_OUTPUT = 8_000
OUTPUT_SECONDS = 0.5
"""An update carries all that is shown of a command's output, so they come no closer to each other than this."""
FILE = re.compile(r"--- a/(?P<path>.*)")


def text_content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def fenced(text: str) -> str:
    """As it is, whatever it holds."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}\n{plain(text)}\n{'`' * ticks}"


def hunks(diff: str, root: Path) -> Iterator[Update]:
    """The places of a unified diff, each with its lines before and after; what is no diff comes as a text."""
    path, old, new, other = "", list[str](), list[str](), list[str]()
    for line in [*diff.split("\n"), "@@"]:
        if path and (old or new) and line.startswith(("@@", "--- a/", "rename from ", "… ")):
            yield _diff(root / path, _joined(old) if old else None, _joined(new))
            old, new = [], []
        if found := FILE.fullmatch(line):
            path = found["path"]
        elif path and line[:1] in ("+", "-", " ") and not line.startswith("+++ b/"):
            old += [line[1:]] if line[0] in "- " else []
            new += [line[1:]] if line[0] in "+ " else []
        elif line and not line.startswith(("@@", "+++ b/", "\\ ")):
            other.append(line)
    if other:
        yield text_content(fenced("\n".join(other)))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _diff(path: Path, old: str | None, new: str) -> Update:
    return {"type": "diff", "path": str(path), "oldText": old, "newText": new}


class ToolCalls:
    """Every action of a conversation and of its jobs; `root` is the work folder as the editor calls it."""

    def __init__(self, root: Path, words: Words) -> None:
        self._root = root
        self._words = words
        self._open: dict[str, str] = {}
        """Calls that wait or run, with the job they belong to."""
        self._decided: dict[str, Action] = {}
        self._before: dict[str, dict[str, str | None]] = {}
        self._asked_for: dict[str, list[Update]] = {}
        self._at_work: dict[str, str] = {}
        self._output: dict[str, str] = {}
        self._told_at = 0.0
        self._jobs: dict[str, str] = {}
        self._own: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def know(self, jobs: Iterable[Job]) -> None:
        self._jobs |= {job.job_id: job.name for job in jobs}

    def job_name(self, job_id: str) -> str:
        return self._jobs.get(job_id, job_id)

    def decided(self, actions: Iterable[Action]) -> None:
        self._decided = {action.action_id: action for action in actions}

    def asked(self, gate: GateRequest, job: str) -> list[Update]:
        """Calls that wait for a yes."""
        alone = len(gate.action_ids) == 1
        if alone:
            changes = hunks(gate.file_diff, self._root)
            self._asked_for[gate.action_ids[0]] = [one for one in changes if one["type"] == "diff"]
        told: list[Update] = []
        for call, operation in zip(gate.action_ids, gate.operations, strict=True):
            action = self._decided.get(call) or Action(operation=operation, reasoning=operation)
            told.append(self._begin(call, action, gate_kind(gate) if alone else "other", "pending", job))
        return told

    def started(self, event: ActionStarted, live: bool) -> list[Update]:
        """Nothing for what only talks."""
        action, call = event.action, event.action.action_id
        if event.doing is None:
            self._named |= {call: own} if (own := self._own.pop(str(action.args.get("command")), "")) else {}
            return []
        kind = call_kind(event.step_kind, event.effect)
        if live and kind == "edit":
            self._before[call] = _texts(self._root, _paths(action.args))
        self._at_work[event.job] = call
        if call in self._open:
            return [_change(call, status="in_progress")]
        return [self._begin(call, action, kind, "in_progress", event.job)]

    def output(self, event: OutputStreamed) -> list[Update]:
        """The end of what a command has printed so far."""
        call = self._at_work.get(event.job)
        if call is None:
            return []
        self._output[call] = (self._output.get(call, "") + event.text)[-SHOWN_OUTPUT:]
        if time.monotonic() - self._told_at < OUTPUT_SECONDS:
            return []
        self._told_at = time.monotonic()
        return [_change(call, content=[text_content(fenced(self._output[call]))])]

    def finished(self, event: ActionFinished) -> list[Update]:
        result = event.result
        call = self._named.pop(result.action_id, result.action_id)
        if self._open.pop(call, None) is None:
            return []
        self._output.pop(call, None)
        if self._at_work.get(event.job) == call:
            del self._at_work[event.job]
        changes, asked_for = self._changes(call, result.changed), self._asked_for.pop(call, [])
        content = (changes or asked_for) if result.ok else []
        said, told = plain(self._words.phrase(result.for_user)), _cut(result.for_model)
        ran = result.effect in ("run", "")
        status = "completed" if result.ok else "failed"
        what = {"status": status, "content": [*content, text_content(f"{said}\n{fenced(told)}" if ran else said)]}
        if result.changed:
            what["locations"] = [{"path": str(self._root / path)} for path in result.changed]
        return [_change(call, **what, rawOutput={"text": told})]

    def own_command(self, command: str) -> list[Update]:
        """One that the user runs; it goes on the record when it has ended."""
        action = Action(operation="shell.run", args={"command": command}, reasoning=command, subject="command")
        self._own[command] = self._at_work[""] = action.action_id
        return [self._begin(action.action_id, action, "execute", "in_progress", "")]

    def job_started(self, job: Job) -> list[Update]:
        self._jobs[job.job_id] = job.name
        return [_call(job.job_id, f"⚙ {job.name}", "think", "in_progress")]

    def job_ended(self, job_id: str, well: bool, summary: str) -> list[Update]:
        return [_change(job_id, status="completed" if well else "failed", content=[text_content(summary)])]

    def turn_ended(self) -> list[Update]:
        """What still seems to wait or to run was interrupted."""
        left = [call for call, job in self._open.items() if not job]
        for call in left:
            del self._open[call]
        self._at_work.pop("", None)
        return [_change(call, status="failed") for call in left]

    def _begin(self, call: str, action: Action, kind: str, status: str, job: str) -> Update:
        self._open[call] = job
        whose = f"⚙ {self.job_name(job)}: " if job else ""
        places = [_place(self._root / path, action.args) for path in _paths(action.args)]
        args = {name: _short(value) for name, value in action.args.items()}
        return _call(call, whose + call_title(action), kind, status) | {"locations": places, "rawInput": args}

    def _changes(self, call: str, changed: tuple[str, ...]) -> list[Update]:
        """What the files were and are."""
        before = self._before.pop(call, {})
        after = _texts(self._root, [path for path in changed if path in before])
        return [_diff(self._root / path, before[path], new) for path, new in after.items() if new is not None]


def call_kind(kind: StepKind, effect: Effect | Literal[""]) -> str:
    return KINDS.get(kind) or BY_EFFECT.get(effect, "other")


def gate_kind(gate: GateRequest) -> str:
    if gate.commands:
        return "execute"
    return BY_CHANGE[gate.impacts[0].change] if gate.impacts else "other"


def call_title(action: Action) -> str:
    """A command is its own title."""
    subject = plain(action.about).partition("\n")[0]
    if "command" in action.args:
        return shorten(subject, LONGEST_TITLE) or action.operation
    return shorten(f"{action.operation.rpartition('.')[2]} {subject}".strip(), LONGEST_TITLE)


def _call(call: str, title: str, kind: str, status: str) -> Update:
    return {"sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": kind, "status": status}


def _change(call: str, **what: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, **what}


def _paths(args: Mapping[str, Any]) -> list[str]:
    return [value for name in PATHS if isinstance(value := args.get(name), str) and value]


def _place(path: Path, args: Mapping[str, Any]) -> Update:
    line = args.get("start_line")
    return {"path": str(path)} | ({"line": line} if isinstance(line, int) and line > 0 else {})


def _short(value: Any) -> Any:
    return value[:LONGEST_ARGUMENT] if isinstance(value, str) else value


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_RESULT else f"{text[:LONGEST_RESULT]}\n…"


def _texts(root: Path, paths: Iterable[str]) -> dict[str, str | None]:
    """Texts that are not too large to be shown as a diff; nothing for a file that is not there."""
    texts: dict[str, str | None] = {}
    for path in paths:
        try:
            if (root / path).stat().st_size <= LARGEST_FILE:
                texts[path] = (root / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            texts[path] = None
        except (OSError, ValueError):
            continue
    return texts
