"""Deleting files: how broad, how recursive, and where."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.secret_names import is_secret, starts_by_itself
from duckflow.safety.commands.targets import BROAD, Target, target_of
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.verdict import CommandFinding, danger

NEVER = frozenset((Target.SYSTEM, Target.ROOT, Target.HOME, Target.DEVICE, Target.REPOSITORY))
EVEN_ONE_FILE = frozenset((Target.SYSTEM, Target.DEVICE, Target.REPOSITORY))


def judge_rm(call: Invocation) -> Iterator[CommandFinding]:
    """Recursion with force is dangerous everywhere but in temporary folders; recursion alone when it is broad."""
    options = read_options(call.arguments)
    recursive = options.has("-r", "-R", "--recursive")
    force = options.has("-f", "--force")
    if options.has("--no-preserve-root"):
        yield danger("deletes_broad", path="/")
    if recursive and force and not options.operands:
        yield danger("deletes_unknown", program=call.program)
    for word in options.operands:
        yield from _judge_target(call, word, recursive, force)


def _judge_target(call: Invocation, word: Word, recursive: bool, force: bool) -> Iterator[CommandFinding]:
    target = target_of(word, call.scene)
    if target in EVEN_ONE_FILE or (recursive and target in BROAD):
        yield danger("deletes_broad", path=word.text)
    elif recursive and force and target is not Target.TEMPORARY:
        yield danger("deletes_tree", path=word.text)
    elif recursive and target in (Target.OUTSIDE, Target.UNKNOWN):
        yield danger("deletes_outside", path=word.text)
    elif is_secret(word.text) or starts_by_itself(word.text):
        yield danger("deletes_secret", path=word.text)


def judge_deleter(call: Invocation) -> Iterator[CommandFinding]:
    """Programs that delete whole trees by nature, such as rimraf."""
    for word in read_options(call.arguments).operands:
        if target_of(word, call.scene) is not Target.TEMPORARY:
            yield danger("deletes_tree", path=word.text)


def judge_shred(call: Invocation) -> Iterator[CommandFinding]:
    yield danger("destroys_for_good", program=call.program)


def judge_truncate(call: Invocation) -> Iterator[CommandFinding]:
    options = read_options(call.arguments, "srlo", ("--size", "--reference"))
    if any(value.text.lstrip("0") == "" for value in options.values("-s", "--size")):
        for word in options.operands:
            yield danger("empties", path=word.text)


def judge_move(call: Invocation) -> Iterator[CommandFinding]:
    """Moving something broad away, or moving into nowhere, is a deletion."""
    options = read_options(call.arguments, "tSm", ("--target-directory", "--suffix"))
    words = options.operands
    if words and words[-1].text == "/dev/null":
        yield danger("deletes_tree", path=words[0].text)
    if call.program == "mv":
        for word in words[:-1]:
            if target_of(word, call.scene) in NEVER:
                yield danger("deletes_broad", path=word.text)
    for word in (*words[-1:], *options.values("-t", "--target-directory")) if len(words) > 1 else ():
        yield from judge_written(call, word)
    if words and words[0].text == "/dev/null" and call.program == "cp":
        yield danger("empties", path=words[-1].text)


def judge_written(call: Invocation, word: Word) -> Iterator[CommandFinding]:
    """Writing to this path replaces what the machine or the user lives on."""
    target = target_of(word, call.scene)
    if target is Target.DEVICE:
        yield danger("writes_device", path=word.text)
    elif starts_by_itself(word.text):
        yield danger("writes_startup", path=word.text)
    elif target in (Target.SYSTEM, Target.ROOT):
        yield danger("writes_system", path=word.text)


def judge_writer(call: Invocation) -> Iterator[CommandFinding]:
    """tee, touch and their kin: every operand is written."""
    for word in read_options(call.arguments).operands:
        yield from judge_written(call, word)
