"""xargs and parallel: programs that run a command with words from their input."""

import re
from collections.abc import Iterator
from itertools import pairwise

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.text.words import UNKNOWN, Word, joined
from duckflow.safety.commands.unwrap.shells import SHELLS
from duckflow.safety.commands.unwrap.wrappers import Wrapper, behind
from duckflow.safety.commands.verdict import ask, danger

XARGS = Wrapper("IJRLnPsdEa", ("--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-lines", "--max-chars"))
PARALLEL = Wrapper("jNnLSadCEI", ("--jobs", "--max-args", "--arg-file", "--delay", "--joblog"))
MOST_ADDED = 20
SHELL_TEXT = re.compile(r"^-[a-z]*c[a-z]*$")
PLACEHOLDER = "{}"


def unwrap_xargs(call: Invocation) -> Iterator[Opinion]:
    """The words it adds come from its input; where that is not known, neither are they."""
    yield ask("at_run_time", program=call.program)
    given = call.feed.text if call.feed and "-a" not in call.texts else None
    added = tuple(Word(text, plain=False) for text in given.split()[:MOST_ADDED]) if given is not None else (UNKNOWN,)
    yield from _with_added(behind(call.arguments, XARGS), _placeholder(call.texts), added)


def unwrap_parallel(call: Invocation) -> Iterator[Opinion]:
    """Like xargs, or with the words behind `:::`."""
    yield ask("at_run_time", program=call.program)
    rest = behind(call.arguments, PARALLEL)
    mark = next((place for place, word in enumerate(rest) if word.text.startswith(":::")), len(rest))
    values = rest[mark + 1 : mark + 1 + MOST_ADDED]
    yield from _with_added(rest[:mark], PLACEHOLDER, values or (UNKNOWN,))
    yield RunsText(joined(rest[:mark]).text)


def _placeholder(texts: tuple[str, ...]) -> str:
    """`-I{}`, `-I {}`, `-i`, `--replace=R`: where the words go; nothing when they go to the end."""
    for text, after in pairwise((*texts, "")):
        if text in ("-I", "-J"):
            return after or PLACEHOLDER
        if text.startswith("--replace"):
            return text.partition("=")[2] or PLACEHOLDER
        if text.startswith(("-I", "-J", "-i")):
            return text[2:] or PLACEHOLDER
    return ""


def _with_added(rest: tuple[Word, ...], placeholder: str, added: tuple[Word, ...]) -> Iterator[Opinion]:
    words = rest or (Word("echo"),)
    script = _shell_script(words)
    if script is not None and script in ("", placeholder):
        yield danger("runs_input")
    if placeholder and any(placeholder in word.text for word in words):
        for word in added:
            yield Runs(tuple(_filled(part, placeholder, word) for part in words))
    else:
        yield Runs(words + added)


def _shell_script(words: tuple[Word, ...]) -> str | None:
    """The text after `bash -c`; empty when it would come from the input."""
    if words[0].text.rpartition("/")[2] not in SHELLS:
        return None
    for place, word in enumerate(words):
        if SHELL_TEXT.match(word.text):
            return words[place + 1].text if place + 1 < len(words) else ""
    return None


def _filled(part: Word, placeholder: str, word: Word) -> Word:
    if placeholder not in part.text:
        return part
    return Word(part.text.replace(placeholder, word.text), known=word.known and part.known, plain=False)
