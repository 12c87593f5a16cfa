"""Rules that the user has kept as checks: a pattern that new code must not contain, a folder where files belong, files
that nobody changes, or a command that must succeed. Each is a file in `.duckflow/rules`."""

import builtins
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from duckflow.code.syntax import Language, available, language_of, tree_of
from duckflow.errors import ToolError
from duckflow.i18n.words import fitting, languages_in
from duckflow.proof.settings import RULES
from duckflow.safety.undo.facts import FileVersions
from duckflow.safety.workspace import Workspace

LONGEST_FILE = 20_000
LONGEST_PATTERN = 200
MOST_RULES = 200
NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
TESTS = ("test_*.*", "*_test.*", "*.test.*", "*.spec.*")
PYTHON = frozenset(dir(builtins)) | frozenset(sys.stdlib_module_names)


class KeptRule(BaseModel):
    """One rule; exactly one of its four kinds of checks is set. `words` holds the user's words for the rule."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: str
    files: tuple[str, ...] = ("*",)
    """The files that the rule applies to: names or whole paths, which may contain `*`."""
    pattern: str = Field(default="", max_length=LONGEST_PATTERN)
    """An ast-grep pattern that new code must not match. Its length is limited, because matching a deeply nested pattern
    takes minutes or overflows the stack."""
    path: str = ""
    """The folder that new files belong in."""
    unchanged: bool = False
    """True if the files must not be changed."""
    command: str = ""
    """A command that must succeed."""

    @model_validator(mode="after")
    def _one_check(self) -> "KeptRule":
        if sum(map(bool, (self.pattern, self.path, self.unchanged, self.command))) != 1:
            raise ValueError("a rule has one of: pattern, path, unchanged, command")
        return self

    @property
    def name(self) -> str:
        """Returns the name of the rule's file, without the extension."""
        subject = self.pattern or self.command or f"{'-'.join(self.files)} {self.path}"
        return (re.sub(r"[^A-Za-z0-9]+", "-", subject).strip("-").lower() or "rule")[:60]

    def text(self) -> str:
        """Returns the text of the rule's file."""
        return "".join(f"{key} = {_toml(value)}\n" for key, value in self.model_dump(exclude_defaults=True).items())

    def fits(self, path: str) -> bool:
        return any(
            fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern) for pattern in self.files
        )

    def breaches(self, changes: Sequence[FileVersions]) -> Iterator[str]:
        """Yields the places of a change that break the rule; rules with a command are not checked here."""
        for change in changes:
            if not self.fits(change.path) or (change.after is None and not self.unchanged):
                continue
            is_new_elsewhere = (
                self.path and change.before is None and not change.path.startswith(f"{self.path.strip('/')}/")
            )
            if self.unchanged or is_new_elsewhere:
                yield change.path
            elif self.pattern:
                yield from _added(self.pattern, change)


def _toml(value: str | bool | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    plain_text = re.sub(r"[\x00-\x1f\x7f]+", " ", value)
    return '"' + re.sub(r'[\\"]', r"\\\g<0>", plain_text) + '"'


def _added(pattern: str, change: FileVersions) -> Iterator[str]:
    """Yields the lines that the change adds and that match the pattern. Older lines may stay as they are."""
    language = language_of(change.path)
    if language is None or not available():
        return
    matches_before, matches_after = (_matches(pattern, text, language) for text in (change.old, change.new))
    old_counts = Counter(text for _, text in matches_before)
    for line, text in matches_after:
        if old_counts[text] > 0:
            old_counts[text] -= 1
        else:
            yield f"{change.path}:{line}: {text}"


def _matches(pattern: str, text: str, language: Language) -> list[tuple[int, str]]:
    lines = text.split("\n")
    try:
        nodes = tree_of(text, language).find_all({"rule": {"pattern": pattern}})
    except RuntimeError:
        # The pattern is not valid in this language.
        return []
    places = dict.fromkeys(node.range().start.line for node in nodes)
    return [(line + 1, lines[line].strip()) for line in places]


class KeptRules(Mapping[str, KeptRule]):
    """The rules of a work folder, by the names of their files. A rule that cannot be read is left out."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.problems: list[str] = []
        self._rules = dict(self._read())

    def __getitem__(self, name: str) -> KeptRule:
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def keep(self, rule: KeptRule) -> str:
        path = f"{RULES}/{rule.name}.toml"
        self._workspace.write_atomic(path, rule.text().encode())
        self._rules[rule.name] = rule
        return path

    def remove(self, name: str) -> None:
        self._workspace.delete(f"{RULES}/{name}.toml")
        del self._rules[name]

    def _read(self) -> Iterator[tuple[str, KeptRule]]:
        try:
            entries = [entry for entry in self._workspace.listdir(RULES) if entry.name.endswith(".toml")]
        except (OSError, ToolError):
            return
        for entry in sorted(entries)[:MOST_RULES]:
            try:
                text = self._workspace.read_bytes(entry.path, LONGEST_FILE).decode("utf-8")
                yield entry.name.removesuffix(".toml"), KeptRule.model_validate(tomllib.loads(text))
            except (OSError, ToolError, ValueError, ValidationError):
                self.problems.append(entry.path)


def rule_in(words: str, language: str, changes: Sequence[FileVersions]) -> KeptRule | None:
    """Returns the rule that a correction by the user contains; None if its words say nothing that can be checked. A
    forbidden name must occur in the last changes, or be one of Python's own names: any other word need not mean
    code."""
    text = " ".join(words.split())
    for spoken_language in languages_in(text, language):
        for kind in ("unchanged", "path", "command", "forbidden"):
            match = next(
                chain.from_iterable(
                    pattern.finditer(text) for pattern in fitting(spoken_language, f"rules.{kind}", text)
                ),
                None,
            )
            if match and (rule := _rule(kind, match.groupdict(""), text, changes)):
                return rule
    return None


def _rule(kind: str, parts: dict[str, str], words: str, changes: Sequence[FileVersions]) -> KeptRule | None:
    match kind:
        case "unchanged":
            path = parts["path"].strip("`'\"/")
            return KeptRule(words=words, files=(path, f"{path}/*"), unchanged=True)
        case "path":
            files = (f"*{parts['ending']}",) if parts["ending"] else TESTS
            return KeptRule(words=words, files=files, path=parts["path"].strip("`'\"/"))
        case "command":
            return KeptRule(words=words, command=parts["command"].strip())
        case _:
            name = parts["name"].strip("`'\"").removesuffix("()")
            is_valid_name = len(name) <= LONGEST_PATTERN and re.fullmatch(NAME, name)
            return _forbidden(name, words, changes) if is_valid_name else None


def _forbidden(name: str, words: str, changes: Sequence[FileVersions]) -> KeptRule | None:
    name_pattern = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    sources = [
        change for change in changes if language_of(change.path) and name_pattern.search(f"{change.old}\n{change.new}")
    ]
    file_patterns = {f"*.{change.path.rpartition('.')[2]}" for change in sources}
    if not file_patterns and name.partition(".")[0] in PYTHON:
        file_patterns = {"*.py"}
    return KeptRule(words=words, files=tuple(sorted(file_patterns)), pattern=name) if file_patterns else None
