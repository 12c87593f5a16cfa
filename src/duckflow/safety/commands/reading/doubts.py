"""Why a call may do more than read; no doubt at all means it only reads."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.git_call import read_git
from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.reading.git import git_only_reads, is_revision
from duckflow.safety.commands.reading.operands import NO_FILES, files_read
from duckflow.safety.commands.reading.places import is_trusted_place
from duckflow.safety.commands.reading.programs import READERS, Reader
from duckflow.safety.commands.secret_names import is_secret
from duckflow.safety.commands.targets import is_outside
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.verdict import CommandFinding, ask

SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
JUDGED_ELSEWHERE = frozenset(("sed", "gsed", "awk", "gawk", "mawk", "nawk", "find", "gfind"))


def doubts(call: Invocation) -> Iterator[CommandFinding]:
    yield from _doubt_spelling(call)
    yield from _doubt_place(call)
    name = call.words[0].text.rpartition("/")[2]
    reader = READERS.get(name)
    if name == "git":
        yield from _doubt_git(call)
    elif name == "date":
        yield from _doubt_date(call)
    elif name == "command" and call.texts[:1] in (("-v",), ("-V",)):
        pass
    elif reader:
        yield from _doubt_options(call, reader)
    elif name not in JUDGED_ELSEWHERE:
        yield ask("unknown_program", program=call.program)
    yield from _doubt_files(call)
    if call.program == "printenv" and any(map(SECRET_VARIABLE.search, call.texts)):
        yield ask("reads_secret", path=" ".join(call.texts))


def _doubt_spelling(call: Invocation) -> Iterator[CommandFinding]:
    is_git = call.words[0].text == "git"
    for word in call.words:
        if not word.plain and not (is_git and is_revision(word)):
            yield ask("expands", word=word.text)
            return


def _doubt_place(call: Invocation) -> Iterator[CommandFinding]:
    if not is_trusted_place(call.words[0].text):
        yield ask("program_place", program=call.words[0].text)


def _doubt_options(call: Invocation, reader: Reader) -> Iterator[CommandFinding]:
    options = read_options(call.arguments, reader.with_value, reader.long_with_value)
    for option, _ in options.given:
        never = any(option == name or (option.startswith("--") and name.startswith(option)) for name in reader.never)
        if never or option.lstrip("-") in reader.never:
            yield ask("option_changes", program=call.program, option=option)
        elif not option.startswith("--") and reader.letters and option[1] not in reader.letters:
            yield ask("option_unknown", program=call.program, option=option)
    if any(text in reader.never for text in call.texts):
        yield ask("option_changes", program=call.program, option=" ".join(call.texts))
    if len(options.operands) < reader.least and call.feed is None and not options.has(*reader.instead):
        yield ask("waits_for_input", program=call.program)
    misplaced = reader.operand_last and options.operands and call.words[-1] is not options.operands[-1]
    if misplaced or (reader.most is not None and len(options.operands) > reader.most):
        yield ask("operand_changes", program=call.program)


def _doubt_date(call: Invocation) -> Iterator[CommandFinding]:
    options = read_options(call.arguments, "dfrI", ("--date", "--reference", "--file"))
    if options.has("-s", "--set") or any(not word.text.startswith("+") for word in options.operands):
        yield ask("option_changes", program=call.program, option="--set")


def _doubt_git(call: Invocation) -> Iterator[CommandFinding]:
    git = read_git(call)
    if call.scene.facts.git_runs_programs is None:
        yield ask("git_unchecked")
    elif call.scene.facts.git_runs_programs:
        yield ask("git_runs_programs")
    if call.scene.place != "":
        yield ask("git_elsewhere")
    if not git_only_reads(git):
        yield ask("git_changes", action=git.subcommand or "git")


def _doubt_files(call: Invocation) -> Iterator[CommandFinding]:
    if call.scene.place is None and call.program not in NO_FILES and call.program != "git":
        yield ask("reads_elsewhere")
    for word in files_read(call):
        if is_secret(word.text):
            yield ask("reads_secret", path=word.text)
        if _is_path(word.text) and call.program != "git" and is_outside(word, call.scene):
            yield ask("reads_outside", path=word.text)


def _is_path(text: str) -> bool:
    return text.startswith(("/", "~", "../")) or text == ".." or "/../" in text
