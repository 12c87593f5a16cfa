"""Turns actions into an editor's tool calls, with a kind, places, a diff and a result."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.files import read_plain
from duckflow.state.action import Action, ActionResult, Effect, StepKind
from duckflow.state.changes import read_diff
from duckflow.state.data import shorten
from duckflow.state.question import GateRequest
from duckflow.view.items import ActionItem, OutputItem

Update = dict[str, Any]
KINDS: dict[str, str] = {"read": "read", "search": "search", "edit": "edit", "run": "execute"}
BY_EFFECT: dict[str, str] = {"read": "read", "write": "edit", "run": "execute", "network": "fetch", "plan": "think"}
BY_CHANGE = {"create": "edit", "edit": "edit", "move": "move", "delete": "delete", "folder": "edit"}
PATHS = ("path", "source", "target")
LONGEST_TITLE = 160
LONGEST_ARGUMENT = 2000
LONGEST_RESULT = 20_000
LARGEST_FILE = 400_000
OUTPUT_SECONDS = 0.5
"""Seconds between two updates of a command's output. There is a pause because each update carries all of the output."""
SIGNS = ("+", "-", " ")
NAMING = re.compile(r"--- (?:a/|/dev/null)|\+\+\+ (?:b/|/dev/null)|@@ -|\\ ")
"""Matches the lines of a diff that only say which file and which lines a hunk belongs to."""


def text_content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def fenced(text: str) -> str:
    """Returns the text in a Markdown fence that is longer than any fence in it."""
    tick_count = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * tick_count}\n{plain(text)}\n{'`' * tick_count}"


def hunks(diff: str, root: Path) -> Iterator[Update]:
    """Yields the hunks of a unified diff, each with its lines before and after. All other lines follow as one text."""
    other_lines = list[str]()
    for (path, is_hunk), group in groupby(read_diff(diff), lambda line: (line.path, line.sign in SIGNS)):
        lines = list(group)
        if is_hunk:
            old_text = "".join(f"{line.text}\n" for line in lines if line.sign != "+")
            yield _diff(root / path, old_text or None, "".join(f"{line.text}\n" for line in lines if line.sign != "-"))
        else:
            other_lines += (line.text for line in lines if line.text and not NAMING.match(line.text))
    if other_lines:
        yield text_content(fenced("\n".join(other_lines)))


def _diff(path: Path, old: str | None, new: str) -> Update:
    return {"type": "diff", "path": str(path), "oldText": old, "newText": new}


class ToolCalls:
    """Turns the actions of a conversation and its jobs into tool calls of an editor. `root` is the editor's path of the
    work folder."""

    def __init__(self, root: Path, words: Words) -> None:
        self._root = root
        self._words = words
        self._open: set[str] = set()
        """Ids of calls that wait or run."""
        self._asked: list[ActionItem] = []
        self._before: dict[str, dict[str, str | None]] = {}
        self._told_at = 0.0
        self._own: dict[str, str] = {}
        """Ids of the calls for commands that the user runs, by command."""
        self._named: dict[str, str] = {}

    def draw(self, item: ActionItem, live: bool) -> list[Update]:
        match item.state:
            case "asked":
                self._asked += [] if item.answer else [item]
                return []
            case "running":
                return self._start(item, live)
            case "left":
                return [_change(item.id, status="failed")] if self._close(item.id) else []
            case _:
                return self._finish(item, item.result) if item.result else []

    def wait_for_yes(self, gate: GateRequest) -> list[Update]:
        """Shows the calls that a Gate (a question before a risky action) asks about as pending."""
        kind, asked_items, self._asked = gate_kind(gate) if len(gate.action_ids) == 1 else "other", self._asked, []
        return [self._begin(item, kind, "pending") for item in asked_items]

    def _start(self, item: ActionItem, live: bool) -> list[Update]:
        """Shows a call as running; an action that only talks is not shown."""
        args = item.action.args if item.action else {}
        if item.doing is None:
            self._named |= {item.id: own_call} if (own_call := self._own.pop(str(args.get("command")), "")) else {}
            return []
        kind = call_kind(item.step_kind, item.effect)
        if live and kind == "edit":
            self._before[item.id] = _texts(self._root, _paths(args))
        if item.id in self._open:
            return [_change(item.id, status="in_progress")]
        return [self._begin(item, kind, "in_progress")]

    def output(self, item: OutputItem) -> list[Update]:
        """Shows the end of a command's output so far."""
        call = item.action or next(reversed(self._own.values()), "")
        if call not in self._open or item.over or time.monotonic() - self._told_at < OUTPUT_SECONDS:
            return []
        self._told_at = time.monotonic()
        return [_change(call, content=[text_content(fenced(item.tail))])]

    def _finish(self, item: ActionItem, result: ActionResult) -> list[Update]:
        call = self._named.pop(item.id, item.id)
        if not self._close(call):
            return []
        content: list[Update] = []
        if result.ok:
            asked_changes = [change for change in hunks(item.diff, self._root) if change["type"] == "diff"]
            content = self._changes(call, result.changed) or asked_changes
        summary, output = plain(self._words.phrase(result.for_user)), _cut(result.for_model)
        is_run = result.effect in ("run", "")
        status = "completed" if result.ok else "failed"
        fields = {
            "status": status,
            "content": [*content, text_content(f"{summary}\n{fenced(output)}" if is_run else summary)],
        }
        if result.changed:
            fields["locations"] = [{"path": str(self._root / path)} for path in result.changed]
        return [_change(call, **fields, rawOutput={"text": output})]

    def own_command(self, command: str) -> list[Update]:
        """Shows a command that the user runs. It is shown at once, because the journal gets it only when it has
        ended."""
        action = Action(operation="shell.run", args={"command": command}, reasoning=command, subject="command")
        self._own[command] = action.action_id
        item = ActionItem(action.action_id, 0, 0.0, action.operation, "running", action)
        return [self._begin(item, "execute", "in_progress")]

    def job_started(self, job: str, name: str) -> list[Update]:
        return [_call(job, f"⚙ {name}", "think", "in_progress")]

    def job_ended(self, job: str, well: bool, summary: str) -> list[Update]:
        return [_change(job, status="completed" if well else "failed", content=[text_content(summary)])]

    def _close(self, call: str) -> bool:
        """Closes a call, and says whether it was open."""
        was_open = call in self._open
        self._open.discard(call)
        return was_open

    def _begin(self, item: ActionItem, kind: str, status: str) -> Update:
        self._open.add(item.id)
        action = item.action or Action(operation=item.operation, reasoning=item.operation)
        worker_prefix = f"⚙ {item.job_name}: " if item.job else ""
        places = [_place(self._root / path, action.args) for path in _paths(action.args)]
        args = {name: _short(value) for name, value in action.args.items()}
        return _call(item.id, worker_prefix + call_title(action), kind, status) | {
            "locations": places,
            "rawInput": args,
        }

    def _changes(self, call: str, changed: tuple[str, ...]) -> list[Update]:
        """Returns the changed files as diffs between the text before the call and the present text."""
        texts_before = self._before.pop(call, {})
        texts_after = _texts(self._root, [path for path in changed if path in texts_before])
        return [
            _diff(self._root / path, texts_before[path], new_text)
            for path, new_text in texts_after.items()
            if new_text is not None
        ]


def call_kind(kind: StepKind, effect: Effect | Literal[""]) -> str:
    return KINDS.get(kind) or BY_EFFECT.get(effect, "other")


def gate_kind(gate: GateRequest) -> str:
    if gate.commands:
        return "execute"
    return BY_CHANGE[gate.impacts[0].change] if gate.impacts else "other"


def call_title(action: Action) -> str:
    """Returns the title of a call; for a command that is the command itself."""
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
    """Returns texts of files that are small enough for a diff; None for a file that does not exist."""
    texts: dict[str, str | None] = {}
    for path in paths:
        try:
            within = None if path.startswith("/") else root
            texts[path] = read_plain(root / path, LARGEST_FILE, within=within).decode("utf-8")
        except FileNotFoundError:
            texts[path] = None
        except (OSError, ValueError):
            continue
    return texts
