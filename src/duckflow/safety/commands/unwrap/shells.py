"""Shells, and what is handed to them: as an argument, by a pipe, from the network, decoded on the way."""

from collections.abc import Iterator

from duckflow.safety.commands.effects import DOWNLOADERS
from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, RunsText
from duckflow.safety.commands.text.words import Word, joined
from duckflow.safety.commands.verdict import CommandFinding, ask, danger

SHELLS = frozenset(
    ("sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "yash", "elvish")
)
DECODERS = frozenset(
    ("base64", "base32", "basenc", "xxd", "openssl", "uudecode", "gunzip", "zcat", "gzip", "bunzip2", "xz", "unxz")
    + ("zstd", "rev", "tr", "gpg", "od", "hexdump", "iconv", "qprint")
)
WITH_VALUE = ("--rcfile", "--init-file", "-O", "-o", "+O", "+o")
STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def judge_shell(call: Invocation) -> Iterator[Opinion]:
    """`bash -c text`, `bash script`, and a bare `bash` that reads what it is fed."""
    words = list(call.arguments)
    is_text = False
    while words and words[0].text.startswith(("-", "+")) and len(words[0].text) > 1 and words[0].text != "--":
        option = words.pop(0).text
        is_text = is_text or option == "--command" or (option[0] == "-" and option[1] != "-" and "c" in option)
        if option in WITH_VALUE and words:
            words.pop(0)
        if " " in option:
            yield RunsText(option.partition("=")[2] if option.startswith("--") else option)
        if option in ("-s", "-is"):
            yield from judge_fed(call)
            return
    if words and words[0].text == "--":
        words.pop(0)
    if is_text and words:
        yield ask("runs_code", program=call.program)
        yield from judge_origins(words[0])
        yield RunsText(words[0].text, tuple(words[2:]))
    elif not words or words[0].text in STANDARD_INPUT:
        yield from judge_fed(call)
    else:
        yield from judge_script(call, words[0])


def judge_script(call: Invocation, script: Word) -> Iterator[Opinion]:
    """A script file, or `<(…)` in its place; what the same text wrote into it is looked at."""
    yield from judge_origins(script)
    name = script.text.removeprefix("./")
    if name in call.scene.downloaded:
        yield danger("runs_download")
    if name in call.scene.written:
        yield RunsText(call.scene.written[name])
    yield ask("runs_script", program=call.program, script=script.text)


def judge_fed(call: Invocation) -> Iterator[Opinion]:
    """What comes through a pipe or a here-document is run."""
    yield ask("runs_fed", program=call.program)
    if call.feed is None:
        return
    yield from judge_programs(call.feed.programs)
    if call.feed.text is not None:
        yield RunsText(call.feed.text)


def judge_origins(word: Word) -> Iterator[CommandFinding]:
    yield from judge_programs(word.origins)


def judge_programs(programs: tuple[str, ...]) -> Iterator[CommandFinding]:
    """Programs whose output is run as code."""
    if not DOWNLOADERS.isdisjoint(programs):
        yield danger("runs_download")
    if not DECODERS.isdisjoint(programs):
        yield danger("runs_decoded")


def judge_eval(call: Invocation) -> Iterator[Opinion]:
    text = joined(call.arguments)
    yield ask("runs_code", program=call.program)
    yield from judge_origins(text)
    yield RunsText(text.text)


def judge_source(call: Invocation) -> Iterator[Opinion]:
    if call.arguments and call.texts[0] not in STANDARD_INPUT:
        yield from judge_script(call, call.arguments[0])
    else:
        yield from judge_fed(call)


def judge_trap(call: Invocation) -> Iterator[Opinion]:
    words = [word for word in call.arguments if not word.text.startswith("-")]
    yield ask("runs_code", program=call.program)
    if words:
        yield RunsText(words[0].text)
