"""Finds reasons why a call may do more than read. A call without any doubt only reads."""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from duckflow.safety.commands.paths import TRUSTED_FOLDERS, Scene, is_outside, is_secret
from duckflow.safety.commands.reader_programs import GIT_READERS, READERS, SWITCHED_OFF, VERSIONS, Reader
from duckflow.safety.commands.services import REVISION
from duckflow.safety.commands.verdict import CommandFinding, ask
from duckflow.safety.commands.words import UNKNOWN, Call, Word

NOWHERE = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
NUMBER = re.compile(r"-?\d*")
PRINTS_WORDS = frozenset(("echo", "printf"))
EXIT_CODE = r"\$(?:\?|\{\?\}|\{PIPESTATUS\[\d\]\})"
WITH_EXIT_CODE = re.compile(rf"(?:\w[\w .,:;=/%-]*)?{EXIT_CODE}(?:[\w .,:;=/%-]|{EXIT_CODE})*")
"""Plain text with the exit code of a command in it, which is always a number."""
LONGEST_SCRIPT = 300
ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?)"
SUBSTITUTION = r"s([/|#,:@!])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*"
SED_COMMAND = re.compile(
    rf"^\s*(?:{ADDRESS}(?:,(?:{ADDRESS}|\+\d+))?\s*)?!?\s*(?:[pdqnNDPGHhgx=l]|{SUBSTITUTION})?\s*$"
)
AWK_ACTS = re.compile(r"system|getline|[|>@]|\bclose\b|ARGV|ARGC|ENVIRON|PROCINFO")
AWK_COMPARES = re.compile(r"\|\||[<>=]=")
QUERY_REACHES = re.compile(r"\benv\b|\bstrenv\b|\$ENV|\bimport\b|\binclude\b|\bload|\beval\b|\bsystem\b|\bmodulemeta\b")
PRINTED = re.compile(r"(?:[^%]|%[-+ #0]*[\d.]*(?:[sdiouxXfFgGeEcbq%]|\([^)]*\)T))*")
"""The harmless formats of printf. `%n` is not among them: it sets a variable, and a variable's name may hold a
command."""
SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def _sed_reads(script: str) -> bool:
    return len(script) <= LONGEST_SCRIPT and all(map(SED_COMMAND.match, re.split(r"[;\n]", script)))


SCRIPTS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("sed", "gsed"), _sed_reads),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), lambda text: not AWK_ACTS.search(AWK_COMPARES.sub("", text))),
    **dict.fromkeys(("jq", "yq"), lambda text: not QUERY_REACHES.search(text)),
    "printf": lambda text: bool(PRINTED.fullmatch(text)),
    "printenv": lambda text: not SECRET_VARIABLE.search(text),
}
"""Programs whose first operand is a text in a small language, each with a function that says whether the text only
reads."""


def tells_version(call: Call) -> bool:
    """Says whether the call is `python --version` or the like, and nothing else."""
    program, version_reader = call.words[0], VERSIONS.get(call.program)
    if version_reader is None or len(call.words) != 2 or call.texts[0] not in version_reader.options:
        return False
    return program.literal and program.text.islower() and posixpath.dirname(program.text) in TRUSTED_FOLDERS


def doubts(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Yields doubts about a call: its spelling, place, options, operands, and a script that the program is given."""
    program = call.words[0]
    name = program.text.rpartition("/")[2]
    if not program.literal:
        yield ask("hidden_name")
    if posixpath.dirname(program.text) not in TRUSTED_FOLDERS:
        yield ask("program_place", program=program.text)
    for word in call.arguments:
        is_revision = name in GIT_READERS and word.known and REVISION.match(word.text)
        is_exit_code = name in PRINTS_WORDS and WITH_EXIT_CODE.fullmatch(word.text)
        if not word.literal and not is_revision and not is_exit_code:
            yield ask("expands", word=word.text)
            break
    reader = READERS.get(name) or GIT_READERS.get(name)
    if reader:
        yield from _doubt_arguments(call, reader, scene)
    elif name.startswith("git "):
        yield ask("git_changes", action=name.removeprefix("git "))
    else:
        yield ask("unknown_program", program=call.program)


@dataclass(slots=True)
class ReadArguments:
    """The arguments of a call, sorted by what a row of the table says about them; `paths` are values of options."""

    given: set[str]
    leading: set[str]
    """Options before the first operand. Some programs take everything after the first operand as operands."""
    unknown: list[str]
    operands: list[Word]
    paths: list[Word]


def read_strictly(arguments: Sequence[Word], reader: Reader) -> ReadArguments:
    read_arguments, words_left = ReadArguments(set(), set(), [], [], []), list(arguments)[::-1]
    single_dash = "single" in reader.limits
    while words_left:
        word = words_left.pop()
        text = word.text
        if text == "--" and not single_dash:
            read_arguments.operands.extend(reversed(words_left))
            break
        if not text.startswith("-") or text == "-" or "any" in reader.limits:
            read_arguments.operands.append(word)
            continue
        names, value = [text], ""
        if text.startswith("--"):
            name, _, value = text.partition("=")
            names = [name]
        elif not single_dash:
            names = [f"-{letter}" for letter in text[1:]]
            last_index = next(
                (index for index, name in enumerate(names) if reader.options.get(name) != "flag"), len(names) - 1
            )
            names, value = names[: last_index + 1], text[last_index + 2 :]
        read_arguments.given.update(names)
        if not read_arguments.operands:
            read_arguments.leading.update(names)
        option_kind = reader.options.get(names[-1])
        if option_kind is None:
            read_arguments.unknown.append(text)
        elif option_kind != "flag":
            value_word = replace(word, text=value) if value else words_left.pop() if words_left else Word("-?")
            if value_word.text.startswith("-") and not single_dash and not NUMBER.fullmatch(value_word.text):
                read_arguments.unknown.append(f"{text} {value_word.text}")
            if option_kind == "off" and not value_word.text.startswith(SWITCHED_OFF):
                read_arguments.unknown.append(f"{text} {value_word.text}")
            if option_kind == "path":
                read_arguments.paths.append(value_word)
    return read_arguments


def _doubt_arguments(call: Call, reader: Reader, scene: Scene) -> Iterator[CommandFinding]:
    read_arguments, limits = read_strictly(call.arguments, reader), reader.limits
    operands = read_arguments.operands
    for option in read_arguments.unknown:
        yield ask("option_unknown", program=call.program, option=option)
    has_replacement = not read_arguments.given.isdisjoint(reader.listed("instead"))
    has_input = call.piped or call.fed is not None or any(redirect.operator == "<" for redirect in call.redirects)
    if len(operands) < int(limits.get("least", 0)) and not has_input and not has_replacement:
        yield ask("waits_for_input", program=call.program)
    if (
        ("last" in limits and operands and call.words[-1] is not operands[-1])
        or ("listing" in limits and operands and read_arguments.leading.isdisjoint(reader.listed("listing")))
        or len(operands) > int(limits.get("most", len(operands)))
        or not all(re.fullmatch(limits.get("match", "(?s:.*)"), word.text) for word in operands)
    ):
        yield ask("operand_changes", program=call.program)
    if call.program in SCRIPTS and operands and not SCRIPTS[call.program](operands[0].text):
        prints_secret = call.program == "printenv"
        yield ask("reads_secret", path=operands[0].text) if prints_secret else ask("runs_code", program=call.program)
    if "text" not in limits:
        yield from _doubt_files(
            call, operands["pattern" in limits and not has_replacement :] + read_arguments.paths, scene
        )


def _doubt_files(call: Call, words: list[Word], scene: Scene) -> Iterator[CommandFinding]:
    if scene.place == "elsewhere":
        yield ask("reads_elsewhere")
    for word in words:
        if is_secret(word.text) or is_secret(re.split("[=:]", word.text)[-1]):
            yield ask("reads_secret", path=word.text)
        # That a word exists only at run time has been said of the program that adds it.
        if word != UNKNOWN and is_outside(word, scene):
            yield ask("reads_outside", path=word.text)


def doubt_redirects(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Yields doubts about redirections: output that is written to a file, and input files, which are checked like
    operands."""
    for redirect in call.redirects:
        target_word = redirect.target
        if not target_word.literal:
            yield ask("expands", word=target_word.text)
        if redirect.writes and target_word.text not in NOWHERE:
            yield ask("writes_file", path=target_word.text)
            if is_outside(target_word, scene):
                yield ask("writes_outside", path=target_word.text)
        elif redirect.operator == "<":
            yield from _doubt_files(call, [target_word], scene)
        elif not redirect.writes and not redirect.joins_streams:
            yield ask("compound")
