"""Interpreters: code as an argument, code by a pipe, a script file."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, RunsText
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.unwrap.code import judge_code
from duckflow.safety.commands.unwrap.shells import STANDARD_INPUT, judge_origins, judge_programs, judge_script
from duckflow.safety.commands.verdict import ask

CODE_LETTERS: dict[str, str] = {
    "python": "c",
    "pypy": "c",
    "ipython": "c",
    "perl": "eE",
    "ruby": "e",
    "jruby": "e",
    "node": "ep",
    "nodejs": "ep",
    "bun": "ep",
    "deno": "",
    "php": "rBRE",
    "lua": "e",
    "luajit": "e",
    "osascript": "e",
    "rscript": "e",
    "r": "e",
    "julia": "eE",
    "elixir": "e",
    "groovy": "e",
    "scala": "e",
    "pwsh": "c",
    "powershell": "c",
    "tclsh": "",
    "expect": "c",
    "guile": "c",
    "ghc": "e",
    "emacs": "",
    "vim": "c",
    "vi": "c",
    "nvim": "c",
    "ex": "c",
    "ed": "",
    "gdb": "",
    "ocaml": "e",
    "swipl": "g",
    "m4": "",
}
LONG = (
    "--eval",
    "--print",
    "--command",
    "-Command",
    "--execute",
    "-ex",
    "--eval-command",
    "eval",
    "--run",
    "--cmd",
) + ("--batch-eval",)
LIBRARY = re.compile(r"^-[MmIrWXDC]")
"""Options whose value is attached and is no code: `-MList::Util`, `-I lib`, `-W ignore`."""
MODULE = "m"
EDITORS = frozenset(("vim", "vi", "nvim", "ex"))
BANG = re.compile(r"!\s*(.+)$", re.MULTILINE)


def judge_interpreter(call: Invocation) -> Iterator[Opinion]:
    """Options come in any order; the first operand that is no code is a script."""
    words = list(call.arguments)
    letters = CODE_LETTERS[call.program]
    seen_code = False
    while words:
        word = words.pop(0)
        text = word.text
        name, equals, value = text.partition("=")
        if name in LONG:
            code = Word(value, word.known, word.plain, word.origins) if equals else words.pop(0) if words else word
        elif _is_code_option(text, letters):
            place = min(text.index(letter) for letter in letters if letter in text)
            code = words.pop(0) if place == len(text) - 1 and words else Word(text[place + 1 :], word.known)
        elif text == f"-{MODULE}" and call.program in ("python", "pypy"):
            yield ask("runs_code", program=call.program)
            return
        elif text.startswith(("-", "+")) and text != "-":
            continue
        elif not seen_code:
            yield from _judge_operand(call, word)
            return
        else:
            return
        seen_code = True
        yield ask("runs_code", program=call.program)
        yield from judge_origins(code)
        yield from judge_code(code.text)
        if call.program in EDITORS:
            yield from _judge_editor_command(code.text)
    if not seen_code:
        yield from _judge_fed(call)


def _judge_operand(call: Invocation, word: Word) -> Iterator[Opinion]:
    if word.text in STANDARD_INPUT:
        yield from _judge_fed(call)
    else:
        yield from judge_script(call, word)


def _judge_editor_command(text: str) -> Iterator[RunsText]:
    """`:!command`"""
    for found in BANG.finditer(text):
        yield RunsText(found[1])


def _is_code_option(text: str, letters: str) -> bool:
    if text.startswith("--") or not text.startswith("-") or (LIBRARY.match(text) and text[1] not in letters):
        return False
    return any(letter in text for letter in letters)


def _judge_fed(call: Invocation) -> Iterator[Opinion]:
    yield ask("runs_code", program=call.program)
    if call.feed:
        yield from judge_programs(call.feed.programs)
        if call.feed.text:
            yield from judge_code(call.feed.text)
