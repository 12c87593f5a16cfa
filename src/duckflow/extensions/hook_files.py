"""Hooks as they are written down: in the settings, and in the files that users have for other assistants."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.extensions.places import EVENTS, HOME_HOOKS, PROJECT_HOOKS, HookSettings
from duckflow.safety.brought.agreements import BroughtProgram
from duckflow.safety.files import read_plain
from duckflow.state.data import Phrase, say
from duckflow.whole_text import parse_json

LONGEST_FILE = 1_000_000
LONGEST_SECONDS = 600.0
EXACT = re.compile(r"[\w|, ]*")
CONDITION = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


class Hook(NamedTuple):
    """A program of the user or the work folder that Duckflow runs at one kind of event, such as a tool call."""

    event: str
    matcher: str
    command: str
    arguments: tuple[str, ...] | None
    """The arguments, if the hook is started without a shell."""
    seconds: float
    source: str
    """The file in which the hook was found; empty for Duckflow's own settings."""
    folder: Path
    condition: str = ""
    waits: bool = True
    """True if Duckflow waits for the hook's answer."""
    brought: bool = False
    """True if the work folder brought the hook."""

    @property
    def shown(self) -> str:
        return " ".join([self.command, *(self.arguments or ())])

    def matches(self, names: tuple[str, ...], subject: str) -> bool:
        """Says whether the hook is for this tool. A matcher of plain words names tools exactly; any other matcher is a
        pattern that may match any part of the name."""
        if condition := CONDITION.fullmatch(self.condition):
            pattern = condition[2].replace(":*", "*")
            if condition[1] not in names or not (fnmatchcase(subject, pattern) or fnmatchcase(subject, f"*/{pattern}")):
                return False
        if self.matcher in ("", "*") or not names:
            return True
        if EXACT.fullmatch(self.matcher):
            return any(word.strip() in names for word in re.split(r"[|,]", self.matcher))
        try:
            return any(re.search(self.matcher, name) for name in names)
        except re.error:
            return False

    @property
    def program(self) -> BroughtProgram:
        """Returns the hook as a program to which the user must agree, since the work folder brought it."""
        file = Path(self.source).relative_to(self.folder)
        details = [f"if {self.condition}"] if self.condition else []
        details += [f"timeout {self.seconds:g}", *([] if self.waits else ["async"])]
        command = self.command if self.arguments is None else json.dumps([self.command, *self.arguments])
        return BroughtProgram(f"hook {self.event} {self.matcher} {file}", f"{command} ({', '.join(details)})")

    def digest(self) -> str:
        """Returns a digest that changes when a hook of the user's own changes its text or its place."""
        text = json.dumps([*self[:5], self.source, str(self.folder), self.condition])
        return hashlib.sha256(text.encode()).hexdigest()


class FoundHooks(NamedTuple):
    """All hooks, and the problems with those that could not be read or are not run."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[Phrase, ...] = ()


def find_hooks(settings: HookSettings, home: Path | None, project: Path, trusted: bool) -> FoundHooks:
    """Finds all hooks; with `trusted` also those of the folder. A command that is listed twice for one event runs
    once."""
    if not settings.enabled:
        return FoundHooks()
    problems: list[Phrase] = []
    hooks = list(_hooks_of(settings.groups(), "", project, settings, problems))
    files = [(home / name, False) for name in HOME_HOOKS] if settings.others and home and home != project else []
    files += [(project / name, True) for name in PROJECT_HOOKS] if settings.others and trusted else []
    for path, is_of_project in files:
        if path.is_file():
            hooks += (hook._replace(brought=is_of_project) for hook in _read(path, project, settings, problems))
    hooks_by_key = {(hook.event, hook.matcher, hook.shown): hook for hook in reversed(hooks)}
    return FoundHooks(tuple(reversed(hooks_by_key.values())), tuple(problems))


def _read(path: Path, project: Path, settings: HookSettings, problems: list[Phrase]) -> Iterator[Hook]:
    try:
        content = parse_json(read_plain(path, LONGEST_FILE).decode("utf-8-sig"))
    except (OSError, ValueError) as problem:
        problems.append(say("hook.bad_file", file=str(path), reason=str(problem)))
        return
    content_fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    groups = content_fields.get("hooks")
    if content_fields.get("disableAllHooks") is True or groups is None:
        return
    if not isinstance(groups, dict):
        problems.append(say("hook.bad_file", file=str(path), reason="hooks"))
        return
    yield from _hooks_of(cast("dict[str, Any]", groups), str(path), project, settings, problems)


def _hooks_of(
    groups: Mapping[str, Any], source: str, project: Path, settings: HookSettings, problems: list[Phrase]
) -> Iterator[Hook]:
    source_name = source or "[hooks]"
    for event, event_groups in groups.items():
        if event not in EVENTS:
            problems.append(say("hook.other_event", event=str(event)[:60], file=source_name))
            continue
        for group in _dicts(event_groups):
            for hook_entry in _dicts(group.get("hooks")):
                command, kind = hook_entry.get("command"), hook_entry.get("type", "command")
                if kind != "command" or not isinstance(command, str) or not command.strip():
                    problems.append(say("hook.other_kind", event=event, kind=str(kind)[:60], file=source_name))
                    continue
                arguments, seconds, matcher = hook_entry.get("args"), hook_entry.get("timeout"), group.get("matcher")
                limit = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else settings.seconds
                words = tuple(map(str, cast("list[Any]", arguments))) if isinstance(arguments, list) else None
                yield Hook(
                    event,
                    matcher.strip() if isinstance(matcher, str) else "",
                    command,
                    words,
                    min(limit, LONGEST_SECONDS),
                    source,
                    project,
                    str(hook_entry.get("if") or ""),
                    hook_entry.get("async") is not True,
                )


def _dicts(value: Any) -> list[dict[str, Any]]:
    values = cast("list[Any]", value) if isinstance(value, list | tuple) else []
    return [cast("dict[str, Any]", entry) for entry in values if isinstance(entry, dict)]
