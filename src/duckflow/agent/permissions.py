"""Rules for actions that the user has allowed not only once, but for a session or for good."""

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from itertools import repeat, takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from duckflow.errors import UsageError
from duckflow.i18n.answer_scope import named_in
from duckflow.safety.commands.verdict import ProjectTool
from duckflow.safety.environment import HARMLESS_VARIABLE
from duckflow.safety.ignore_rules import Wildcard
from duckflow.safety.path_names import escaped, shown_line
from duckflow.state.action import RUN_COMMAND
from duckflow.state.data import FrozenData, Phrase, say
from duckflow.state.question import FileImpact
from duckflow.whole_file import write_whole

ANY = "*"
"""The pattern that covers every call of a tool, for tools whose calls name neither files nor commands."""
FILE_TOOLS = "file_ops."
EDITS = "file_ops.edits"
"""The operation name of rules about files that are written or edited, by whichever tool. Moving and deleting have rules
of their own."""


CODE = "code"
"""The kind of a rule for code that an interpreter runs (trial runs of the project, programs in a line), as far as it
stays in the sandbox and undo takes it back."""
LISTED = ", "


class Permission(FrozenData):
    """A rule that allows one operation, on files that match the pattern or with commands that begin with it."""

    operation: str
    pattern: str
    said: str = ""
    """The description that a server's tool had when it was allowed."""
    kind: str = ""
    """The purpose of the tool, in a rule for one of the project's own tools. The pattern is then the tool's name, and
    the rule covers every plain call of it that runs in the sandbox without network."""
    plan: str = ""
    """The plan for whose own work the rule holds, if any. The pattern then lists the files that its steps change."""

    def covers(
        self, operation: str, impacts: Iterable[FileImpact], command: str, by_name: bool = False, description: str = ""
    ) -> bool:
        """Says whether this rule allows everything that the action would do. With `by_name` a rule counts only if it
        names exactly this file, not if it covers a kind of file."""
        impacts = tuple(impacts)
        if self.operation not in (operation, _subject(operation, impacts)) or description != self.said or self.kind:
            return False
        if command:
            if command == self.pattern:
                return True
            inner_call = _unwrapped(command) if _plain(command) else ""
            return inner_call == self.pattern or (not _stands_alone(self.pattern) and _task(inner_call) == self.pattern)
        paths = [impact.path for impact in impacts]
        if not paths:
            return self.pattern == ANY
        patterns = self.pattern.split(LISTED) if self.plan else [self.pattern]
        if by_name:
            # The question about a plan does not say which of its files make code run later.
            return not self.plan and all(escaped(path) in patterns for path in paths)
        return all(any(map(Wildcard.matches, map(Wildcard, patterns), repeat(path))) for path in paths)

    def covers_tool(self, operation: str, tool: ProjectTool) -> bool:
        return operation == self.operation and (self.kind, self.pattern) == tool

    @property
    def told(self) -> str:
        """Returns the pattern as people read it. A mark at its end shows that more words may follow."""
        allows_more_words = self.operation == RUN_COMMAND and not self.kind and not _stands_alone(self.pattern)
        return f"{self.pattern} …" if allows_more_words else self.pattern

    def shown(self) -> str:
        """Returns the rule in a line that people read."""
        return f"{self.operation} {self.told}" + (f" ({self.kind})" if self.kind else "")

    def begins(self, scope: str) -> Phrase:
        """Returns the message for the user that the rule takes effect."""
        if self.kind:
            return say(f"permission.{self.sort}_given.{scope}", tool=self.pattern)
        if self.operation == EDITS:
            return say(f"permission.edits_given.{'plan' if self.plan else scope}", pattern=self.pattern)
        return say(f"permission.given.{scope}", rule=self.shown())

    def describe(self) -> Phrase:
        values = {**self.model_dump(exclude_defaults=True), "pattern": self.told}
        return say(f"permission.{self.sort or 'rule'}", **values)

    @property
    def sort(self) -> str:
        """Returns the sort of a rule, part of a message's key; empty if the rule needs no special sentence."""
        if self.kind:
            return CODE if self.kind == CODE else "tool"
        return "edits" if self.operation == EDITS else ""

    def as_named(self, about: str, language: str) -> "Permission":
        """Returns the rule as the user meant it: a user who names only a kind of file means it in every folder."""
        name = self.pattern.rpartition("/")[2]
        kind = name.removeprefix("*").casefold()
        names = named_in(about, language)
        names_kind = names and all(kind in (f".{word.lstrip('*.')}", *FILE_KINDS.get(word, ())) for word in names)
        if self.operation != EDITS or not names_kind or not name.startswith("*."):
            return self
        return self.model_copy(update={"pattern": f"**/{name}"})


SECRET_FILES = Permission(operation="shell.secrets", pattern=ANY)
"""The rule that commands may read the project's secret files. Secrets that they print stay hidden from the model."""

WRAPPER = (
    rf"(?:env(?: {HARMLESS_VARIABLE}=[^\s'\"]*)+|timeout(?: -[^\s'\"]+)* [\d.]+[smhd]?|nice(?: -n ?-?\d+| -\d+)?|nohup"
    r"|time(?: -p)?|stdbuf(?: -[^\s'\"]+)+) "
)
"""Matches a wrapper such as `timeout 60` or `nice` before a command. It contains no quotation mark, so a shell reads
the rest of the command in the same way without it."""
QUOTES = frozenset("'\"")
RUNS_ANYTHING = frozenset((
    "sh", "bash", "zsh", "dash", "fish", "ksh", "eval", "exec", "source", ".", "env", "xargs", "sudo", "doas", "su",
    "npx", "bunx", "pnpx", "uvx", "pipx", "make", "gmake", "just", "task", "ssh", "docker", "podman", "find", "watch",
))  # fmt: skip
"""Programs that no rule is made for, because such a rule would allow far more than it seems to."""
CODE_OPTIONS = ("-c", "-m", "-e", "--eval", "--command", "--exec")
ANY_OPTIONS = "git commit"
"""A command whose rule covers it with any option: its options run no program, and its message differs each time."""
WHAT_TO_DO = re.compile(r"[a-z][a-z0-9_:-]*")
TAKES_WORDS = "git"
LOCAL_TASKS = frozenset((
    "add", "bisect", "branch", "checkout", "cherry-pick", "commit", "gc", "merge", "notes", "rebase", "reset",
    "restore", "revert", "stash", "switch", "tag",
))  # fmt: skip
"""Only rules for these tasks of git also cover words that follow, which are files, commits and names of this
repository. In any other call a word may name a program to run, another place to send to, or what is to be written."""
SHORTEST_TASK = 2
"""The number of words in the shortest task: a program, and what it is told to do."""


def rule_for(
    operation: str,
    impacts: Iterable[FileImpact],
    command: str,
    by_name: bool = False,
    tools: Sequence[ProjectTool] = (),
) -> Permission | None:
    """Returns the rule that `always` would save: for files of the same kind in the same folder (with `by_name` only for
    this file), for one of the project's own tools, or for the same program with the same subcommand. Returns None where
    no such rule covers the action."""
    if len(tools) == 1:
        return Permission(operation=operation, pattern=tools[0].name, kind=tools[0].kind)
    if command:
        return _command_rule(operation, command)
    impacts = tuple(impacts)
    operation = _subject(operation, impacts)
    paths = {PurePosixPath(impact.path) for impact in impacts}
    file_groups = {(path.parent, path.suffix) for path in paths}
    suffix = next(iter(file_groups))[1] if len(file_groups) == 1 else ""
    if suffix and not by_name and all(impact.change != "delete" for impact in impacts):
        folder = str(next(iter(paths)).parent)
        pattern = ("" if folder == "." else escaped(folder) + "/") + f"*{escaped(suffix)}"
        return Permission(operation=operation, pattern=pattern)
    # A file that is deleted, or has no suffix, is named itself.
    return Permission(operation=operation, pattern=escaped(str(paths.pop()))) if len(paths) == 1 else None


def _subject(operation: str, impacts: Sequence[FileImpact]) -> str:
    """Returns the operation that a rule is made for: EDITS if a file tool only writes or edits files, otherwise the
    given one."""
    edits = impacts and all(impact.change in ("create", "edit") for impact in impacts)
    return EDITS if edits and operation.startswith(FILE_TOOLS) else operation


FILE_KINDS = {
    "source": (".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".cpp", ".rb"),
    "markdown": (".md", ".markdown"),
    "restructuredtext": (".rst",),
    "python": (".py",),
    "javascript": (".js", ".mjs", ".cjs"),
    "typescript": (".ts",),
    "shell": (".sh",),
    "yaml": (".yaml", ".yml"),
    "text": (".txt",),
}


def _command_rule(operation: str, command: str) -> Permission | None:
    """Returns the rule for a command: for the program and its subcommand, or for the whole command if it has no plain
    subcommand. Returns None if the rule would allow any code."""
    words = _unwrapped(command).split()
    if not words or not _plain(command) or PurePosixPath(words[0]).name in RUNS_ANYTHING:
        return None
    if _hands_over_code(command):
        return None
    task = _task(_unwrapped(command))
    return Permission(operation=operation, pattern=" ".join(words) if _stands_alone(task) else task)


def _task(command: str) -> str:
    """Returns the first words, which say what to do, such as `git bisect start`. Returns an empty text if there is an
    option: it may run a program (`git rebase -x`), and no table knows all such options."""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    task = " ".join(takewhile(WHAT_TO_DO.fullmatch, words))
    return "" if task != ANY_OPTIONS and any(word.startswith("-") for word in words) else task


def _stands_alone(pattern: str) -> bool:
    """Says whether a rule with this pattern covers only exactly this command. A plain task of git, such as `git add`,
    also covers the words after it, if such words only name files, commits and the like."""
    words = pattern.split()
    if len(words) < SHORTEST_TASK or words[0] != TAKES_WORDS or words[1] not in LOCAL_TASKS:
        return True
    return "run" in words or not all(map(WHAT_TO_DO.fullmatch, words))


def _hands_over_code(command: str) -> bool:
    """Says whether options such as `-c` give the command code to run. A commit's options only hold its message."""
    words = command.split()
    return " ".join(words[:2]) != ANY_OPTIONS and any(word.startswith(CODE_OPTIONS) for word in words)


def _unwrapped(command: str) -> str:
    """Returns the command without wrappers such as `timeout 60` or `nice`, which do not change what it does."""
    text = command.strip() if QUOTES & set(command) else re.sub(r"[ \t]+", " ", command.strip())
    while wrapper := re.match(WRAPPER, text):
        text = text[wrapper.end() :]
    return text


def _plain(command: str) -> bool:
    """Says whether this is one simple command, in which no other command can hide behind the allowed beginning."""
    return not set(command) & set("\n\r;&|<>`$(){}\\")


LISTED_TOOL = re.compile(r"(\w+)(?:\(([^)]*)\))?")
EDITING = frozenset(("edit", "write", "multiedit"))


def listed_rules(allowed: str) -> tuple[Permission, ...]:
    """Returns the rules that `allowed-tools` of a command or a skill asks for: `Bash(git add:*)`, `Edit(docs/**)`,
    `Write`. There is no rule for the whole shell, or for anything that could run any code. Reading needs no rule."""
    rules = list[Permission]()
    for tool, pattern in LISTED_TOOL.findall(allowed):
        words = " ".join(re.sub(r"[:\s]*\*$", "", pattern).split())
        if tool.casefold() in EDITING:
            rules.append(Permission(operation=EDITS, pattern=pattern.strip().removeprefix("./") or "**"))
        elif tool.casefold() == "bash" and "*" not in words and _command_rule(RUN_COMMAND, words):
            rules.append(Permission(operation=RUN_COMMAND, pattern=words))
    return tuple(dict.fromkeys(rules))


MOST_CHANGED = 40


def difference(before: str, now: str) -> str:
    """Returns the lines that differ between two texts, marked as removed or added; a long list is cut."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
    changed_lines = [shown_line(line) for line in [*lines][2:] if not line.startswith("@@")]
    return "\n".join([*changed_lines[:MOST_CHANGED], *(["…"] if len(changed_lines) > MOST_CHANGED else [])])


USUAL = 3
"""Number of times in a row that the user must allow something before a rule for it is offered."""
MOST_COUNTED = 200


class ApprovalHistory:
    """Counts how often the user has allowed an action. A refusal sets its count to 0. A count alone allows nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._times: dict[Permission, int] | None = None

    def answered(self, rule: Permission, allowed: bool) -> None:
        rule_counts = {other_rule: times for other_rule, times in self._counted().items() if other_rule != rule}
        rule_counts[rule] = self._counted().get(rule, 0) + 1 if allowed else 0
        self._times = dict(list(rule_counts.items())[-MOST_COUNTED:])
        rows = [{**habit.model_dump(exclude_defaults=True), "times": times} for habit, times in self._times.items()]
        write_whole(self._path, json.dumps(rows, ensure_ascii=False, indent=1))

    def times(self, rule: Permission) -> int:
        return self._counted().get(rule, 0)

    def usual(self) -> list[tuple[Permission, int]]:
        return [(rule, times) for rule, times in self._counted().items() if times >= USUAL]

    def _counted(self) -> dict[Permission, int]:
        if self._times is None:
            self._times = {}
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                for row in json.loads(self._path.read_text(encoding="utf-8")):
                    self._times[Permission(operation=row["operation"], pattern=row["pattern"])] = int(row["times"])
        return self._times


class Permissions:
    """Rules for the session, and rules for good in a file of the user's own, per work folder (never in the project)."""

    def __init__(self, path: Path, safe_extensions: Iterable[str] = ()) -> None:
        self._path = path
        self._safe = tuple(safe_extensions)
        self.history = ApprovalHistory(path.with_suffix(".history.json"))
        self.session: list[Permission] = []
        self.always: list[Permission] = _load(path)

    def learn(self, rule: Permission, allowed: bool) -> None:
        """Counts an answer, if the rule is about a kind of file that the settings call safe."""
        if PurePosixPath(rule.pattern).suffix.lower() in self._safe:
            self.history.answered(rule, allowed)

    def usual(self) -> list[tuple[Permission, int]]:
        """Returns what the user usually allows, and how often they have. Whatever a rule allows already is left out."""
        return [(rule, times) for rule, times in self.history.usual() if rule not in (*self.session, *self.always)]

    def allows(
        self,
        operation: str,
        impacts: Iterable[FileImpact],
        command: str,
        by_name: bool = False,
        description: str = "",
        tools: Sequence[ProjectTool] = (),
        plan: str = "",
    ) -> bool:
        """Says whether a rule allows the action. `plan` is the id of the plan that is carried out now."""
        impacts, rules = tuple(impacts), [rule for rule in (*self.session, *self.always) if rule.plan in ("", plan)]
        if tools and all(any(rule.covers_tool(operation, tool) for rule in rules) for tool in tools):
            return True
        return any(rule.covers(operation, impacts, command, by_name, description) for rule in rules)

    def changed(self, operation: str, description: str) -> Phrase | None:
        """Returns how the description of a server's tool has changed since the user allowed it; None if it has not."""
        rules = (*self.session, *self.always)
        earlier_rule = next((rule for rule in reversed(rules) if rule.operation == operation), None)
        return say("risk.tool_changed", difference=difference(earlier_rule.said, description)) if earlier_rule else None

    @property
    def secret_files(self) -> bool:
        return SECRET_FILES in (*self.session, *self.always)

    def add(self, rule: Permission, for_good: bool) -> None:
        rules = self.always if for_good else self.session
        # A rule for an earlier description of the tool is no longer valid.
        rules[:] = [old for old in rules if not rule.said or old.operation != rule.operation or old == rule]
        if rule not in rules:
            rules.append(rule)
        if for_good:
            self._save()

    def remove(self, number: int) -> Permission:
        """Removes a rule by its number in the list: first those for good, then the session's."""
        rules = (*self.always, *self.session)
        if not 1 <= number <= len(rules):
            raise UsageError("permission.no_such", number=number)
        rule = rules[number - 1]
        if rule in self.always:
            self.always.remove(rule)
            self._save()
        else:
            self.session.remove(rule)
        return rule

    def _save(self) -> None:
        rules = [rule.model_dump(exclude_defaults=True) for rule in self.always]
        write_whole(self._path, json.dumps(rules, ensure_ascii=False, indent=1))


def _load(path: Path) -> list[Permission]:
    """Loads the rules. A file that cannot be read allows nothing."""
    with contextlib.suppress(OSError, ValueError):
        rules: list[Any] = json.loads(path.read_text(encoding="utf-8"))
        return [Permission.model_validate(rule) for rule in rules]
    return []
