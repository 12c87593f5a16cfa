"""Runs of a project's own tests, linters and builds, told apart from other code by strict tables.

Such a run executes the project's code, so it asks like any other command. It is named for what it is: a rule may then
cover it however it is called, and its risk is that of an edit where a sandbox and undo stand behind it. A word, option
or place that is not known here makes it a command like others."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from duckflow.safety.commands.paths import TRUSTED_FOLDERS, Scene, is_outside, is_secret
from duckflow.safety.commands.project_tools import programs_in, target_kind, targets_in
from duckflow.safety.commands.readers import Reader
from duckflow.safety.commands.reading import read_strictly
from duckflow.safety.commands.verdict import CommandFinding, ask
from duckflow.safety.commands.words import Call, Word
from duckflow.safety.environment import HARMLESS_VARIABLE

FINDINGS = {"tests": "runs_tests", "types": "runs_linters", "lint": "runs_linters", "build": "runs_builds"}
PASSED_ON = re.compile(
    r"--(?:coverage|ci|run|runInBand|silent|verbose|bail|watch=false|watchAll=false|nocapture|ignored|exact|quiet"
    r"|test-threads=\d+)|-[DWA]|-[qvi]+"
)
"""Options after `--` that only say how much is run or shown."""
NUMBERED = r"-?[\d.]+[smhd]?"
WRAPPER = re.compile(
    rf"(?:timeout(?: (?:-k|-s) \w+| --foreground| --preserve-status)* {NUMBERED}|time(?: -p)?|nice(?: -n {NUMBERED})?"
    r"|stdbuf(?: -\w+)+|uv run(?: (?:--frozen|--locked|--no-sync|--offline|-q|--quiet))*|(?:poetry|pipenv|pdm|rye) run"
    r"|bundle exec|pnpm exec|npx(?: (?:--no-install|--no|--yes|-y))*) "
)
MODULE = re.compile(r"(?P<python>(?:[\w./-]*/)?python[\d.]*)(?: -[BuPEsS]+)* -m ")
MOST_WRAPPERS = 8
LANGUAGES = frozenset(("python", "pypy", "node", "nodejs", "ruby", "perl", "php", "lua"))
VERSION = re.compile(r"-[vV]|--version|--help|-h")
SEARCHED = "PYTHONPATH"
"""This variable may name folders of the project."""
USUAL = (".venv/bin", "venv/bin", "node_modules/.bin", "vendor/bin")
INSTALLED = re.compile(r"(?:^|/)(?:\.venv/bin|venv/bin|node_modules/\.bin|vendor/bin)$")
OWN_SCRIPTS = ("./gradlew", "./mvnw")


def project_run(call: Call, scene: Scene) -> CommandFinding | None:
    """The one finding that stands for the whole call; nothing when it is a call like others."""
    if scene.place == "elsewhere" or not call.words or not all(word.literal and word.known for word in call.words):
        return None
    if not all(_harmless(name, value, scene) for name, value in call.assignments):
        return None
    words = _unwrapped(call.words, scene)
    if not words or not _in_place(words[0], scene):
        return None
    texts = [_name(words[0]), *(word.text for word in words[1:])]
    for program in programs_in(texts):
        arguments = texts[program.arguments :]
        kind = program.kind or target_kind(program.name, arguments)
        if kind and _is_plain(words[program.arguments :], program.reader, scene):
            # A rule knows a task runner by what it is told to do, too.
            targets = [] if program.kind else targets_in(program.name, arguments)
            name = " ".join([program.name.removesuffix(" discover"), *targets])
            return ask(FINDINGS[kind], program="".join(_origins(call, words, scene)) + name)
    return None


def _origins(call: Call, words: tuple[Word, ...], scene: Scene) -> Iterator[str]:
    """Where a run takes its code from, as far as that is not the usual place of the project: a rule for a tool is none
    for the tool of the same name from elsewhere, or for another folder's settings and targets."""
    if scene.where:
        yield f"cd {scene.where} && "
    before = call.words[: len(call.words) - len(words)]
    assigned = [f"{name}={value.text}" for name, value in call.assignments] + [word.text for word in before]
    yield from (f"{text} " for text in assigned if text.startswith(f"{SEARCHED}="))
    for word in (*before, words[0]):
        folder = posixpath.dirname(word.text)
        top = scene.facts.folder
        inner = posixpath.relpath(folder, top) if top and posixpath.isabs(folder) else posixpath.normpath(folder)
        if INSTALLED.search(folder) and inner not in USUAL:
            yield f"{inner}/"


def undressed(call: Call, scene: Scene) -> Call:
    """An interpreter without what only says how long, with which harmless variables or from which environment of the
    project it runs code. Any other call stays as it is."""
    if scene.place == "elsewhere" or not all(word.literal and word.known for word in call.words):
        return call
    if not all(_harmless(name, value, scene) for name, value in call.assignments):
        return call
    words = _without_wrappers(call.words, scene)
    if len(words) < 2 or not _in_place(words[0], scene):
        return call
    inner = replace(call, words=(Word(posixpath.basename(words[0].text)), *words[1:]), assignments=())
    return inner if inner.program in LANGUAGES and not VERSION.fullmatch(words[1].text) else call


def _is_plain(arguments: Sequence[Word], reader: Reader, scene: Scene) -> bool:
    """Options that are known and paths of the project: then it is such a run."""
    read = read_strictly([_long(word) for word in arguments], reader)
    needed = reader.listed("needs")
    if read.unknown or (needed and read.given.isdisjoint(needed)):
        return False
    return all(_harmless_operand(word, scene) for word in (*read.operands, *read.paths))


def _name(program: Word) -> str:
    name = posixpath.basename(program.text)
    return "pytest" if name == "py.test" else "python" if re.fullmatch(r"python[\d.]+", name) else name


def _long(word: Word) -> Word:
    """Programs such as go write long options with one dash."""
    if re.match(r"-[a-z]{2,}(?:=|$)", word.text) and not re.fullmatch(r"-[qvxslrb]+\w?", word.text):
        return Word(f"-{word.text}")
    return word


def _harmless_operand(word: Word, scene: Scene) -> bool:
    text = word.text
    if text.startswith("-"):
        return bool(PASSED_ON.fullmatch(text))
    return text[:1] != "@" and "=" not in text and not is_outside(word, scene) and not is_secret(text)


def _harmless(name: str, value: Word, scene: Scene) -> bool:
    if not (value.literal and value.known):
        return False
    if name == SEARCHED:
        return not any(is_outside(Word(path), scene) for path in value.text.split(":"))
    return bool(re.fullmatch(HARMLESS_VARIABLE, name))


def _in_place(program: Word, scene: Scene) -> bool:
    """Where the system or an installer has put it. The folder's own copy is no more than the model's code may be: the
    sandbox holds it."""
    folder = posixpath.dirname(program.text)
    if folder in TRUSTED_FOLDERS or program.text in OWN_SCRIPTS:
        return True
    return bool(INSTALLED.search(folder)) and not is_outside(program, scene)


def _unwrapped(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Without wrappers and without the interpreter whose module it is."""
    words = _without_wrappers(words, scene)
    module = MODULE.match(_joined(words))
    if not module:
        return words
    return words[module[0].count(" ") :] if _in_place(Word(module["python"]), scene) else ()


def _joined(words: tuple[Word, ...]) -> str:
    return " ".join("\0" if re.search(r"\s", word.text) else word.text for word in words) + " "


def _without_wrappers(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Without what only says how long or from which environment it runs. Nobody needs many such words."""
    for _ in range(MOST_WRAPPERS):
        if words and words[0].text == "env":
            assigned = [word.text.partition("=") for word in takewhile(lambda word: "=" in word.text, words[1:])]
            if not all(_harmless(name, Word(value), scene) for name, _, value in assigned):
                return ()
            words = words[1 + len(assigned) :]
        elif wrapper := WRAPPER.match(_joined(words)):
            words = words[wrapper[0].count(" ") :]
        else:
            return words
    return ()
