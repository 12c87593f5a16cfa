"""Remembers texts, files and programs that the model itself has made in a turn: seeing them again is no progress."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from duckflow.pacemaker.signatures import LoopStep, failures_in, replaced_texts

MOST_PHRASES = 200_000
PHRASE = 3
"""Words of a phrase. A line counts as the model's own if it wrote at least half of its phrases before."""
WORD = r"[^\W\d_a-z]|[a-z_]+"
QUOTED = r"'[^']*'|\"(?:\\.|[^\"\\])*\""
NEXT_COMMAND = r"&&|\|\||[;\n]|(?<![<>])&(?!>)"
ONE_COMMAND = rf"(?s)(?:{QUOTED}|(?!{NEXT_COMMAND}).)+"
BEFORE_COMMAND = r"^(?:[\s({!]+|(?:do|then|else|time|sudo|nohup|exec|env|command)\s+|timeout\s+\S+\s+|\w+=\S*\s+)+"
SCRATCH = r"(?<![\w.-])/(?:tmp|var/tmp|dev/shm)/[\w./-]*\w"
"""A path outside the work folder where a command can write. Steps do not list such files as changed."""
FILE_WORD = r"(?<![\w./-])[\w.-]*[\w-][./][\w./-]*\w"
INTERPRETER = r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua|julia|sh|bash|zsh|dash|ksh)[\d.]*"
INLINE = frozenset(("-c", "-e", "-E", "-r", "-p", "-", "eval", "--eval", "--print"))
SAYING = frozenset(("echo", "printf", "seq", "yes", "date", "uuidgen", "shuf", "mktemp"))
"""Programs that print their arguments, the time, or random values."""
QUIET_ERRORS = r"[0-9&]>+ ?(?:&[0-9]|/dev/null)"
CHANCE = r"/dev/u?random|\brand\b|\$S?RANDOM\b"
QUIET = frozenset((
    "cd", "export", "set", "source", ".", "true", "false", ":", "exit", "test", "[", "[[", "sleep", "wait", "mkdir",
    "touch", "rm", "chmod", "for", "while", "until", "if", "fi", "done", "unset", "local", "ulimit", "trap", "kill",
))  # fmt: skip
"""Programs whose output says nothing about the project."""


def command_of(step: LoopStep) -> str:
    """Returns the command that a step has run, or nothing."""
    if isinstance(step.args, str):
        return step.args if step.kind in ("run", "edit") and not step.args.startswith("{") else ""
    if "path" in step.args:
        return ""
    return str(step.args.get("command", "")) or (step.subject if step.kind == "run" else "")


def texts_in(value: Any) -> Iterator[str]:
    """Yields all texts in the arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in(list(cast("Mapping[str, Any]", value).values()))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from texts_in(item)


class OwnWork:
    """Remembers the arguments of a turn's steps: their texts as phrases, and the files that were written whole."""

    def __init__(self) -> None:
        self._phrases: dict[int, None] = {}
        self._files: set[str] = set()
        self._named: set[str] = set()

    def add(self, step: LoopStep, foreign: Iterable[str]) -> None:
        """Adds a step. `foreign` are changed files that existed before: their content is not the model's."""
        for text in texts_in(step.args):
            words = re.findall(WORD, text.casefold())
            for length in range(1, PHRASE + 1):
                self._phrases.update(dict.fromkeys(phrases(words, length)))
        while len(self._phrases) > MOST_PHRASES:
            del self._phrases[next(iter(self._phrases))]
        if not replaced_texts(step.args):
            self._files |= {_plain(path) for path in step.changed} - {_plain(path) for path in foreign}
        for kind, part in self._parts(command_of(step)):
            if kind in ("says", "own"):
                self._files.update(re.findall(SCRATCH, part))

    def holds(self, line: str) -> bool:
        """Says whether at least half of a line was written by the model before."""
        words = re.findall(WORD, line.casefold())
        line_phrases = phrases(words, min(PHRASE, len(words)))
        return bool(line_phrases) and 2 * sum(phrase in self._phrases for phrase in line_phrases) >= len(line_phrases)

    def said(self, word: str) -> bool:
        return hash((word,)) in self._phrases

    def made(self, path: str) -> bool:
        """Says whether this turn has made a file, however its path is written."""
        plain = _plain(path)
        return bool(plain) and any(f"/{plain}".endswith(f"/{own}") or own.endswith(f"/{plain}") for own in self._files)

    def names_own(self, command: str) -> bool:
        """Says whether a command names a file that this turn has made."""
        return any(path.rpartition("/")[2] in command for path in self._files)

    def only_says(self, command: str) -> bool:
        """Says whether a command prints only texts from itself, the time, or random values."""
        return {"says", "quiet"}.issuperset(self._kinds(command))

    def writes_output(self, command: str) -> bool:
        """Says whether the output of a command may come from programs or files that the model has made."""
        return self.names_own(command) or (bool(command) and "foreign" not in self._kinds(command))

    def is_check(self, command: str) -> bool:
        """Says whether a program that the model did not write decides how the command ends."""
        kinds = set(self._kinds(command))
        made_up = "says" in kinds and failures_in(command) is not None
        return "foreign" in kinds and "own" not in kinds and not made_up

    def makes_from_material(self, command: str, made: Iterable[str]) -> bool:
        """Says whether foreign programs have made files from a file that no command named before."""
        named = {_plain(word) for word in re.findall(FILE_WORD, command)} - {_plain(path) for path in made}
        fresh = {path for path in named - self._named if not self.made(path)}
        self._named |= named
        return bool(fresh) and set(self._kinds(command)) <= {"foreign", "quiet"}

    def brings_others(self, command: str) -> bool:
        """Says whether the content that a command writes to files comes only from programs that the model did not
        write."""
        foreign = bool(command) and "foreign" in (kinds := set(self._kinds(command))) and kinds <= {"foreign", "quiet"}
        return foreign and ">" not in re.sub(QUIET_ERRORS, "", command) and not self.names_own(command)

    def _kinds(self, command: str) -> Iterator[str]:
        return (kind for kind, _ in self._parts(command))

    def _parts(self, command: str) -> Iterator[tuple[str, str]]:
        """Yields each command of a line with its kind: `foreign`, `own`, `says` or `quiet`. Skips input by `<<`."""
        for part in re.findall(ONE_COMMAND, command):
            plain, fed, _ = re.sub(QUOTED, "''", part).partition("<<")
            if words := re.sub(BEFORE_COMMAND, "", f"{plain} ").partition("|")[0].split():
                yield self._kind(words, bool(fed)), part
            if fed:
                return

    def _kind(self, words: list[str], fed: bool) -> str:
        program = words[0].rpartition("/")[2]
        if program in QUIET:
            return "quiet"
        if program in SAYING or re.search(CHANCE, " ".join(words)) or (fed and program == "cat"):
            return "says"
        if re.fullmatch(INTERPRETER, program):
            script = next((word for word in words[1:] if not word.startswith("-")), "")
            if fed or not INLINE.isdisjoint(words[1:]) or (script and self.made(script)):
                return "own"
        return "own" if self.made(words[0]) else "foreign"


def phrases(words: list[str], length: int) -> list[int]:
    """Returns signatures of all runs of `length` words."""
    return [hash(tuple(words[start : start + length])) for start in range(len(words) - length + 1)] if words else []


def _plain(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path.rstrip("/")
