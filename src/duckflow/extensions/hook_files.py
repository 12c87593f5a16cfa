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
from duckflow.state.phrase import Phrase, say
from duckflow.whole_text import parse_json

LONGEST_FILE = 1_000_000
LONGEST_SECONDS = 600.0
EXACT = re.compile(r"[\w|, ]*")
CONDITION = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


class Hook(NamedTuple):
    """One program that is told of one event."""

    event: str
    matcher: str
    command: str
    arguments: tuple[str, ...] | None
    """Where it is started without a shell."""
    seconds: float
    source: str
    """The file it stands in; empty: Duckflow's own settings."""
    folder: Path
    condition: str = ""
    waits: bool = True
    """Whether its answer is waited for."""
    brought: bool = False
    """The work folder brought it."""

    @property
    def shown(self) -> str:
        return " ".join([self.command, *(self.arguments or ())])

    def matches(self, names: tuple[str, ...], subject: str) -> bool:
        """A matcher of plain words names them exactly; any other one is a pattern that fits somewhere."""
        if found := CONDITION.fullmatch(self.condition):
            pattern = found[2].replace(":*", "*")
            if found[1] not in names or not (fnmatchcase(subject, pattern) or fnmatchcase(subject, f"*/{pattern}")):
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
        """For the agreement about a hook of the work folder."""
        file = Path(self.source).relative_to(self.folder)
        about = [f"if {self.condition}"] if self.condition else []
        about += [f"timeout {self.seconds:g}", *([] if self.waits else ["async"])]
        command = self.command if self.arguments is None else json.dumps([self.command, *self.arguments])
        return BroughtProgram(f"hook {self.event} {self.matcher} {file}", f"{command} ({', '.join(about)})")

    def digest(self) -> str:
        """Changes with what a hook of the user's own says and where it stands."""
        told = json.dumps([*self[:5], self.source, str(self.folder), self.condition])
        return hashlib.sha256(told.encode()).hexdigest()


class FoundHooks(NamedTuple):
    """All hooks, and what could not be read or is not run."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[Phrase, ...] = ()


def find_hooks(settings: HookSettings, home: Path | None, project: Path, trusted: bool) -> FoundHooks:
    """`trusted`: what the folder brings counts too. A command that stands there twice for one event runs once."""
    if not settings.enabled:
        return FoundHooks()
    problems: list[Phrase] = []
    hooks = list(_hooks_of(settings.groups(), "", project, settings, problems))
    files = [(home / name, False) for name in HOME_HOOKS] if settings.others and home and home != project else []
    files += [(project / name, True) for name in PROJECT_HOOKS] if settings.others and trusted else []
    for path, brought in files:
        if path.is_file():
            hooks += (hook._replace(brought=brought) for hook in _read(path, project, settings, problems))
    alone = {(hook.event, hook.matcher, hook.shown): hook for hook in reversed(hooks)}
    return FoundHooks(tuple(reversed(alone.values())), tuple(problems))


def _read(path: Path, project: Path, settings: HookSettings, problems: list[Phrase]) -> Iterator[Hook]:
    try:
        given = parse_json(read_plain(path, LONGEST_FILE).decode("utf-8-sig"))
    except (OSError, ValueError) as problem:
        problems.append(say("hook.bad_file", file=str(path), reason=str(problem)))
        return
    settled = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    groups = settled.get("hooks")
    if settled.get("disableAllHooks") is True or groups is None:
        return
    if not isinstance(groups, dict):
        problems.append(say("hook.bad_file", file=str(path), reason="hooks"))
        return
    yield from _hooks_of(cast("dict[str, Any]", groups), str(path), project, settings, problems)


def _hooks_of(
    groups: Mapping[str, Any], source: str, project: Path, settings: HookSettings, problems: list[Phrase]
) -> Iterator[Hook]:
    where = source or "[hooks]"
    for event, listed in groups.items():
        if event not in EVENTS:
            problems.append(say("hook.other_event", event=str(event)[:60], file=where))
            continue
        for group in _dicts(listed):
            for one in _dicts(group.get("hooks")):
                command, kind = one.get("command"), one.get("type", "command")
                if kind != "command" or not isinstance(command, str) or not command.strip():
                    problems.append(say("hook.other_kind", event=event, kind=str(kind)[:60], file=where))
                    continue
                arguments, seconds, matcher = one.get("args"), one.get("timeout"), group.get("matcher")
                given = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else settings.seconds
                words = tuple(map(str, cast("list[Any]", arguments))) if isinstance(arguments, list) else None
                yield Hook(
                    event,
                    matcher.strip() if isinstance(matcher, str) else "",
                    command,
                    words,
                    min(given, LONGEST_SECONDS),
                    source,
                    project,
                    str(one.get("if") or ""),
                    one.get("async") is not True,
                )


def _dicts(value: Any) -> list[dict[str, Any]]:
    listed = cast("list[Any]", value) if isinstance(value, list | tuple) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
