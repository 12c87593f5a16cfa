"""What the model itself has made in a turn: texts, files and programs. None of it is news when it comes back."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from duckflow.pacemaker.signatures import LoopStep, failures_in, replaced_texts

MOST_PHRASES = 200_000
PHRASE = 3
"""Words of a phrase. A line whose phrases were mostly written by the model itself is its own."""
WORD = r"[^\W\d_a-z]|[a-z_]+"
QUOTED = r"'[^']*'|\"(?:\\.|[^\"\\])*\""
NEXT_COMMAND = r"&&|\|\||[;\n]|(?<![<>])&(?!>)"
ONE_COMMAND = rf"(?s)(?:{QUOTED}|(?!{NEXT_COMMAND}).)+"
BEFORE_COMMAND = r"^(?:[\s({!]+|(?:do|then|else|time|sudo|nohup|exec|env|command)\s+|timeout\s+\S+\s+|\w+=\S*\s+)+"
SCRATCH = r"(?<![\w.-])/(?:tmp|var/tmp|dev/shm)/[\w./-]*\w"
"""A file where a command can write outside the work folder. No step tells that it was changed."""
FILE_WORD = r"(?<![\w./-])[\w.-]*[\w-][./][\w./-]*\w"
INTERPRETER = r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua|julia|sh|bash|zsh|dash|ksh)[\d.]*"
INLINE = frozenset(("-c", "-e", "-E", "-r", "-p", "-", "eval", "--eval", "--print"))
SAYING = frozenset(("echo", "printf", "seq", "yes", "date", "uuidgen", "shuf", "mktemp"))
"""Programs that print what they are told, the time or chance."""
QUIET_ERRORS = r"[0-9&]>+ ?(?:&[0-9]|/dev/null)"
CHANCE = r"/dev/u?random|\brand\b|\$S?RANDOM\b"
QUIET = frozenset((
    "cd", "export", "set", "source", ".", "true", "false", ":", "exit", "test", "[", "[[", "sleep", "wait", "mkdir",
    "touch", "rm", "chmod", "for", "while", "until", "if", "fi", "done", "unset", "local", "ulimit", "trap", "kill",
))  # fmt: skip
"""Programs whose output says nothing of the project."""


def command_of(step: LoopStep) -> str:
    """The command that a step has run, or nothing."""
    if isinstance(step.args, str):
        return step.args if step.kind in ("run", "edit") and not step.args.startswith("{") else ""
    if "path" in step.args:
        return ""
    return str(step.args.get("command", "")) or (step.subject if step.kind == "run" else "")


def texts_in(value: Any) -> Iterator[str]:
    """All texts among arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in(list(cast("Mapping[str, Any]", value).values()))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from texts_in(item)


class OwnWork:
    """Remembers what went out with the steps of a turn: its texts as phrases, and the files that it wrote whole."""

    def __init__(self) -> None:
        self._phrases: dict[int, None] = {}
        self._files: set[str] = set()
        self._named: set[str] = set()

    def add(self, step: LoopStep, foreign: Iterable[str]) -> None:
        """`foreign`: the changed files that were there before. What a command leaves in them is not its text."""
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
        """Whether a line says little but what the model has said before."""
        words = re.findall(WORD, line.casefold())
        made = phrases(words, min(PHRASE, len(words)))
        return bool(made) and 2 * sum(phrase in self._phrases for phrase in made) >= len(made)

    def said(self, word: str) -> bool:
        return hash((word,)) in self._phrases

    def made(self, path: str) -> bool:
        """Whether this turn has made a file, however its path is written."""
        plain = _plain(path)
        return bool(plain) and any(f"/{plain}".endswith(f"/{own}") or own.endswith(f"/{plain}") for own in self._files)

    def names_own(self, command: str) -> bool:
        """Whether a command names a file that this turn has made."""
        return any(path.rpartition("/")[2] in command for path in self._files)

    def only_says(self, command: str) -> bool:
        """Whether everything that a command prints stands in it, or comes from a clock or from chance."""
        return {"says", "quiet"}.issuperset(self._kinds(command))

    def writes_output(self, command: str) -> bool:
        """Whether programs or files that the model has made may say what a command prints."""
        return self.names_own(command) or (bool(command) and "foreign" not in self._kinds(command))

    def is_check(self, command: str) -> bool:
        """Whether a program that the model did not write has the last word on how a command ends."""
        kinds = set(self._kinds(command))
        made_up = "says" in kinds and failures_in(command) is not None
        return "foreign" in kinds and "own" not in kinds and not made_up

    def makes_from_material(self, command: str, made: Iterable[str]) -> bool:
        """Whether programs that the model did not write have made files from a file that no command named before."""
        named = {_plain(word) for word in re.findall(FILE_WORD, command)} - {_plain(path) for path in made}
        fresh = {path for path in named - self._named if not self.made(path)}
        self._named |= named
        return bool(fresh) and set(self._kinds(command)) <= {"foreign", "quiet"}

    def brings_others(self, command: str) -> bool:
        """Whether what a command leaves in files comes from elsewhere: from programs that the model did not write, and
        from nothing that it did."""
        foreign = bool(command) and "foreign" in (kinds := set(self._kinds(command))) and kinds <= {"foreign", "quiet"}
        return foreign and ">" not in re.sub(QUIET_ERRORS, "", command) and not self.names_own(command)

    def _kinds(self, command: str) -> Iterator[str]:
        return (kind for kind, _ in self._parts(command))

    def _parts(self, command: str) -> Iterator[tuple[str, str]]:
        """Each command of a line with its kind: `foreign`, `own`, `says` or `quiet`. What it is fed belongs to none."""
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
    """So many words in a row, as signatures."""
    return [hash(tuple(words[start : start + length])) for start in range(len(words) - length + 1)] if words else []


def _plain(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path.rstrip("/")
