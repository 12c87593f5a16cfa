"""Recognises what the Pacemaker has seen before.

Two texts that differ only in times, addresses or temporary paths have the same signature. A signature is computed from
a sample of the text, so that a step costs microseconds however long its result is. Signatures are valid within one
process only; after a resume they are computed again from the journal. Texts, files and programs that the model itself
has made in a turn are remembered, too: seeing them again is no progress.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.words import contains, joined
from duckflow.state.action import Action, ActionResult, StepKind, succeeded
from duckflow.state.checks import belongs_to_tests

HEAD, TAIL = 1500, 500
SHORT = 300
LABEL = 80

CLOCK = (
    r"(?<![0-9])[0-9]++"
    r"(?::[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?|(?:\.[0-9]++)? ?(?:[nuµm]?s|secs?|seconds?|mins?|minutes?)\b)"
)
ADDRESS = r"0x[0-9a-fA-F]{4,}"
COMMIT_NAME = r"\b[0-9a-f]{7,40}\b"
TEMPORARY = (
    r"(?<=/tmp/)(?:tmp[._]?\w{6,12}|pytest-of-[^/\s]+/pytest-[0-9]+|[\w.-]*[0-9]{4,}[\w.-]*)|/var/folders/[^\s'\"]+"
)
QUOTATION = r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|「[^」\n]*」"
NUMBER = r"[0-9]+"
TAG = r"</?[A-Za-z_][\w-]*>"
LETTER = r"\w"
NEVER_RAN = ("command not found", "not recognized as", "no such file or directory", "permission denied")


def take_sample(text: str) -> str:
    if len(text) <= HEAD + TAIL:
        return text
    return f"{text[:HEAD]}\n{text.count(chr(10))}\n{text[-TAIL:]}"


def strip_changing(text: str) -> str:
    """Returns the text without parts that change by themselves, such as times and addresses."""
    if "0x" in text:
        text = re.sub(ADDRESS, "#", text)
    if "/tmp/" in text or "/var/folders/" in text:
        text = re.sub(TEMPORARY, "#", text)
    return re.sub(CLOCK, "#", text)


def plain_line(line: str) -> str:
    """Returns a line of output without the parts that may change by themselves, including numbers and names of
    commits."""
    return re.sub(rf"{COMMIT_NAME}|{NUMBER}", "#", strip_changing(line)).strip()


def call_signature(name: str, args: Mapping[str, Any] | str) -> int:
    """Returns a signature of a call that does not depend on the order of arguments. In short arguments, parts that
    change by themselves (such as times) do not count."""
    text = canonical(args)
    return hash((name, strip_changing(text) if len(text) <= SHORT else text))


def canonical(args: Mapping[str, Any] | str) -> str:
    if isinstance(args, str):
        return args
    try:
        return json.dumps(args, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return repr(args)


def without_echo(text: str, args: Mapping[str, Any] | str) -> str:
    """Removes the arguments of the call from a short result, because an echo of the call is not new."""
    if len(text) < SHORT:
        for value in [args] if isinstance(args, str) else args.values():
            if isinstance(value, str) and len(value) > 2:
                text = text.replace(value, "·")
    return text


def result_signature(text: str, *, printed: bool) -> int:
    """Returns a signature of a result. Parts that change by themselves are removed, but only from printed output."""
    text = take_sample(text.strip())
    return hash(strip_changing(text) if printed else text)


def error_signature(text: str) -> int:
    """Returns a signature of an error's beginning without numbers and quotes; for a traceback, of its last line."""
    lines = [line for line in re.sub(TAG, "", take_sample(text)).split("\n") if re.search(LETTER, line)]
    is_traceback = bool(lines) and lines[0].lstrip().startswith("Traceback")
    telling_part = lines[-1] if is_traceback else "\n".join(lines)[:SHORT]
    return hash(re.sub(NUMBER, "#", re.sub(QUOTATION, "'", telling_part)).strip())


def is_empty(text: str) -> bool:
    """Says whether the text has nothing but spaces, brackets or tags."""
    return not text or (len(text) < LABEL and not re.search(LETTER, re.sub(TAG, "", text)))


def says_nothing_found(text: str) -> bool:
    return len(text) < SHORT and contains("output.found_nothing", text)


def never_ran(text: str) -> bool:
    """Says whether a command could not be started, as opposed to one that ran and failed."""
    return len(text) < SHORT and any(phrase in text.lower() for phrase in NEVER_RAN)


def failures_in(text: str) -> int | None:
    """Returns the number of failures that the output itself states, in the last line that states one."""
    failures = re.compile(rf"(?i){joined('output.failures', text)}")
    counts_found = failures.findall(text[-HEAD:]) or failures.findall(text[:HEAD])
    return int(next(filter(None, counts_found[-1]))) if counts_found else None


def name_call(name: str, args: Mapping[str, Any] | str) -> str:
    """Returns the name of a call for people: the operation and its first argument."""
    argument = args if isinstance(args, str) else next((str(value) for value in args.values()), "")
    return f"{name} {' '.join(argument[:LABEL].split())}".strip()


SEARCHED = r"(?m)^<{5,} ?SEARCH.*\n((?:.*\n)*?)={5,}$"


class LoopStep(NamedTuple):
    """One action with its result. `text` is the message of a step that talks; `tokens` is the usage of its loop."""

    name: str
    args: Mapping[str, Any] | str = ""
    result: str = ""
    is_error: bool = False
    kind: StepKind = "other"
    text: str = ""
    tokens: int = 0
    changed: tuple[str, ...] = ()
    """The files that the action changed."""
    error: str = ""
    """The kind of error, where the tool states it."""
    about: str = ""
    """The subject of the call, where the tool states it."""
    language: str = DEFAULT_LANGUAGE
    """The user's language."""
    tests: int = 0
    """The number of tests that ran, if the step ran tests and they state it."""
    waits: bool = False
    """True if a command runs in the background, so that looking again is waiting and not going in circles."""

    @property
    def subject(self) -> str:
        """The argument that says most about the call: the one that the tool names, else the first."""
        argument = self.args if isinstance(self.args, str) else next((str(value) for value in self.args.values()), "")
        return self.about or argument


def change_signature(step: LoopStep) -> int:
    """Returns a signature of a command that has changed files: of its call and its output, without names of commits."""
    output = re.sub(COMMIT_NAME, "#", step.result)
    return hash((call_signature(step.name, step.args), result_signature(output, printed=True)))


def user_spoke(text: str = "", about: str = "", language: str = DEFAULT_LANGUAGE) -> LoopStep:
    """Makes a step for a message of the user, which resets all counts. `about` holds the goal and the plan."""
    return LoopStep("user", about, kind="user", text=text, language=language)


def decided_nothing(tokens: int = 0) -> LoopStep:
    """Makes a step that stands for a Decision without any action."""
    return LoopStep("nothing", kind="talk", tokens=tokens)


def step_of(action: Action, result: ActionResult, tokens: int = 0) -> LoopStep:
    """Makes a step from a finished action. A tool that changed files counts as an edit, but a command as a run."""
    is_failure = not succeeded(result)
    kind = "edit" if result.changed and not is_failure and result.effect != "run" else result.kind
    text = str(action.args.get("text", "")) if kind == "talk" else ""
    error = "" if result.ok else result.for_user.key
    return LoopStep(
        action.operation,
        action.args,
        result.for_model,
        is_failure,
        kind,
        text,
        tokens,
        result.changed,
        error,
        action.about,
        tests=result.check.tests if result.check else 0,
    )


def replaced_texts(args: Mapping[str, Any] | str) -> list[str]:
    """Returns the texts that an edit replaces, if its arguments show them."""
    if isinstance(args, str):
        return []
    edits: Any = args.get("edits") or [args]
    if isinstance(edits, str):
        return re.findall(SEARCHED, edits)
    edit_pairs = [cast("Mapping[str, Any]", edit) for edit in edits if isinstance(edit, Mapping)]
    return [str(pair["old"]) for pair in edit_pairs if pair.get("old")]


MOST_PHRASES = 200_000
PHRASE = 3
"""The number of words in a phrase. A line counts as the model's own if the model wrote at least half of its phrases
before."""
WORD = r"[^\W\d_a-z]|[a-z_]+"
SHELL_QUOTED = r"'[^']*'|\"(?:\\.|[^\"\\])*\""
NEXT_COMMAND = r"&&|\|\||[;\n]|(?<![<>])&(?!>)"
ONE_COMMAND = rf"(?s)(?:{SHELL_QUOTED}|(?!{NEXT_COMMAND}).)+"
BEFORE_COMMAND = r"^(?:[\s({!]+|(?:do|then|else|time|sudo|nohup|exec|env|command)\s+|timeout\s+\S+\s+|\w+=\S*\s+)+"
SCRATCH = r"(?<![\w.-])/(?:tmp|var/tmp|dev/shm)/[\w./-]*\w"
"""Matches a path outside the work folder where a command can write. Steps do not list such files as changed."""
FILE_WORD = r"(?<![\w./-])[\w.-]*[\w-][./][\w./-]*\w"
INTERPRETER = r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua|julia|sh|bash|zsh|dash|ksh)[\d.]*"
INLINE = frozenset(("-c", "-e", "-E", "-r", "-p", "-", "eval", "--eval", "--print"))
SAYING = frozenset(("echo", "printf", "seq", "yes", "date", "uuidgen", "shuf", "mktemp"))
"""Programs that print their arguments, the time, or random values."""
HISTORIES = frozenset(("git", "hg", "jj", "svn"))
"""Programs that put other versions of files in place."""
QUIET_ERRORS = r"[0-9&]>+ ?(?:&[0-9]|/dev/null)"
CHANCE = r"/dev/u?random|\brand\b|\$S?RANDOM\b"
QUIET = frozenset((
    "cd", "export", "set", "source", ".", "true", "false", ":", "exit", "test", "[", "[[", "sleep", "wait", "mkdir",
    "touch", "rm", "chmod", "for", "while", "until", "if", "fi", "done", "unset", "local", "ulimit", "trap", "kill",
))  # fmt: skip
"""Programs whose output says nothing new about the project."""


def command_of(step: LoopStep) -> str:
    """Returns the command that a step has run, or an empty text."""
    if isinstance(step.args, str):
        return step.args if step.kind in ("run", "edit") and not step.args.startswith("{") else ""
    if "path" in step.args:
        return ""
    return str(step.args.get("command", "")) or (step.subject if step.kind == "run" else "")


def texts_in(value: Any) -> Iterator[str]:
    """Yields all texts in the arguments of a call, also in lists and tables."""
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
        """Adds a step. `foreign` holds changed files that existed before: their content is not the model's own."""
        for text in texts_in(step.args):
            words = re.findall(WORD, text.casefold())
            for length in range(1, PHRASE + 1):
                self._phrases.update(dict.fromkeys(phrases(words, length)))
        while len(self._phrases) > MOST_PHRASES:
            del self._phrases[next(iter(self._phrases))]
        if not replaced_texts(step.args):
            self._files |= {_plain(path) for path in step.changed} - {_plain(path) for path in foreign}
        for kind, command_part in self._parts(command_of(step)):
            if kind in ("says", "own"):
                self._files.update(re.findall(SCRATCH, command_part))

    def holds(self, line: str) -> bool:
        """Says whether at least half of a line was written by the model before."""
        words = re.findall(WORD, line.casefold())
        line_phrases = phrases(words, min(PHRASE, len(words)))
        return bool(line_phrases) and 2 * sum(phrase in self._phrases for phrase in line_phrases) >= len(line_phrases)

    def said(self, word: str) -> bool:
        return hash((word,)) in self._phrases

    def made(self, path: str) -> bool:
        """Says whether this turn made the file, in whatever way its path is written."""
        plain_path = _plain(path)
        return bool(plain_path) and any(
            f"/{plain_path}".endswith(f"/{own_file}") or own_file.endswith(f"/{plain_path}") for own_file in self._files
        )

    def names_own(self, command: str) -> bool:
        """Says whether a command names a file that this turn has made."""
        return any(path.rpartition("/")[2] in command for path in self._files)

    def has_tests_for(self, command: str) -> bool:
        """Says whether a command may run tests that this turn has made."""
        return self.names_own(command) or any(map(belongs_to_tests, self._files))

    def only_says(self, command: str) -> bool:
        """Says whether a command prints only texts that stand in the command itself, the time, or random values."""
        return {"says", "quiet"}.issuperset(self._kinds(command))

    def writes_output(self, command: str) -> bool:
        """Says whether the output of a command may come from programs or files that the model has made."""
        return self.names_own(command) or (bool(command) and "foreign" not in self._kinds(command))

    def is_check(self, command: str) -> bool:
        """Says whether a command is a check: a program that the model did not write decides its outcome."""
        kinds = set(self._kinds(command))
        prints_own_counts = "says" in kinds and failures_in(command) is not None
        return "foreign" in kinds and "own" not in kinds and not prints_own_counts

    def makes_from_material(self, command: str, made: Iterable[str]) -> bool:
        """Says whether a command used only programs that the model did not write to make files, and made them from a
        file that no command had named before."""
        named_paths = {_plain(word) for word in re.findall(FILE_WORD, command)} - {_plain(path) for path in made}
        new_paths = {path for path in named_paths - self._named if not self.made(path)}
        self._named |= named_paths
        return bool(new_paths) and set(self._kinds(command)) <= {"foreign", "quiet"}

    def brings_others(self, command: str) -> bool:
        """Says whether only programs that the model did not write decide what a command writes to files."""
        runs_foreign = (
            bool(command) and "foreign" in (kinds := set(self._kinds(command))) and kinds <= {"foreign", "quiet"}
        )
        return runs_foreign and ">" not in re.sub(QUIET_ERRORS, "", command) and not self.names_own(command)

    def brings_version(self, command: str) -> bool:
        """Says whether a command puts another version of files in place, as a bisection does."""
        programs = (command_part.split()[0] for kind, command_part in self._parts(command) if kind == "foreign")
        return not HISTORIES.isdisjoint(programs) and self.brings_others(command)

    def _kinds(self, command: str) -> Iterator[str]:
        return (kind for kind, _ in self._parts(command))

    def _parts(self, command: str) -> Iterator[tuple[str, str]]:
        """Yields each command of a line with its kind: `foreign` (a program that the model did not write), `own` (one
        that it wrote), `says` (it prints what it was given, the time, or random values) or `quiet` (it prints nothing
        new). Ends at input by `<<`."""
        for command_part in re.findall(ONE_COMMAND, command):
            command_text, heredoc, _ = re.sub(SHELL_QUOTED, "''", command_part).partition("<<")
            if words := re.sub(BEFORE_COMMAND, "", f"{command_text} ").partition("|")[0].split():
                yield self._kind(words, bool(heredoc)), command_part
            if heredoc:
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
    """Returns a signature of each run of `length` neighbouring words."""
    return [hash(tuple(words[start : start + length])) for start in range(len(words) - length + 1)] if words else []


def _plain(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path.rstrip("/")
