"""Deleting, overwriting and changing the rights of files: how broad, how recursive, and where."""

import re
from collections.abc import Iterator
from dataclasses import replace

from duckflow.safety.commands.paths import BROAD, RUNS_BY_ITSELF, Scene, Target, is_secret, target_of
from duckflow.safety.commands.verdict import CommandFinding, danger
from duckflow.safety.commands.words import Call, Word, read_options

NEVER = frozenset((Target.SYSTEM, Target.ROOT, Target.HOME, Target.DEVICE, Target.REPOSITORY))
EVEN_ONE_FILE = frozenset((Target.SYSTEM, Target.DEVICE, Target.REPOSITORY))
FAR = frozenset((Target.OUTSIDE, Target.UNKNOWN))
OPEN_TO_ALL = re.compile(r"^0?[0-7]?[0-7][0-7][2367]$|^[ugo]*a[ugo]*[+=]\w*w|^[ugoa]*o[ugoa]*[+=]\w*w|^\+\w*w|^=\w*w")
RUNS_AS_OWNER = re.compile(r"^[2467]\d{3}$|^[ugoa]*[+=]\w*s")
LOCKS_OUT = re.compile(r"^0{1,4}$|^a?-\w*r")
SIGNAL = re.compile(r"^-(?:\d+|[A-Z]+\d?|s|n|l)$")


def judge_rm(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Recursion with force is dangerous everywhere but in temporary folders; recursion alone when it is broad."""
    options = read_options(call.arguments)
    recursive, force = options.has("-r", "-R", "--recursive"), options.has("-f", "--force")
    if options.has("--no-preserve-root"):
        yield danger("deletes_broad", path="/")
    if recursive and force and not options.operands:
        yield danger("deletes_unknown", program=call.program)
    for word in options.operands:
        target = target_of(word, scene)
        if target in EVEN_ONE_FILE or (recursive and target in BROAD):
            yield danger("deletes_broad", path=word.text)
        elif recursive and force and target is not Target.TEMPORARY:
            yield danger("deletes_tree", path=word.text)
        elif recursive and target in FAR:
            yield danger("deletes_outside", path=word.text)
        elif is_secret(word.text) or RUNS_BY_ITSELF.search(word.text):
            yield danger("deletes_secret", path=word.text)


def judge_move(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Moving something broad away, or moving into nowhere, is a deletion."""
    options = read_options(call.arguments, "tSm", ("--target-directory", "--suffix"))
    words = options.operands
    if words and words[-1].text == "/dev/null":
        yield danger("deletes_tree", path=words[0].text)
    if words and words[0].text == "/dev/null" and call.program == "cp":
        yield danger("empties", path=words[-1].text)
    for word in words[:-1] if call.program == "mv" else ():
        if target_of(word, scene) in NEVER:
            yield danger("deletes_broad", path=word.text)
    for word in (*words[1:][-1:], *options.values("-t", "--target-directory", "-C", "--directory")):
        yield from judge_written(word, scene)


def judge_written(word: Word, scene: Scene) -> Iterator[CommandFinding]:
    """Writing to this path replaces what the machine or the user lives on."""
    target = target_of(word, scene)
    if target is Target.DEVICE:
        yield danger("writes_device", path=word.text)
    elif RUNS_BY_ITSELF.search(word.text):
        yield danger("writes_startup", path=word.text)
    elif target in (Target.SYSTEM, Target.ROOT):
        yield danger("writes_system", path=word.text)


def judge_writer(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """tee, touch and their kin: every operand is written; of dd it is `of=`, of tar what `-C` says."""
    words = read_options(call.arguments).operands
    if call.program == "dd":
        words = [replace(word, text=word.text[3:]) for word in words if word.text.startswith("of=")]
    elif call.program == "tar":
        words = read_options(call.arguments, "fCIXTbgKNVHL", ("--directory",)).values("-C", "--directory")
    for word in words:
        yield from judge_written(word, scene)


def judge_rights(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """chmod, chown, chgrp: everything below a broad place, or open to everybody."""
    options = read_options(call.arguments, "", ("--reference",))
    recursive = options.has("-R", "--recursive")
    takes_away = any(re.match(r"^-[rwxst]+$", text) for text in call.texts)
    operands = options.operands
    mode, targets = ("", operands) if takes_away or not operands else (operands[0].text, operands[1:])
    first = targets[0].text if targets else ""
    if call.program == "chmod" and recursive and (OPEN_TO_ALL.match(mode) or LOCKS_OUT.match(mode)):
        yield danger("opens_to_all", path=first)
    if call.program == "chmod" and RUNS_AS_OWNER.match(mode):
        yield danger("runs_as_owner", path=first)
    if call.program == "chown" and mode.partition(":")[0] in ("root", "0"):
        yield danger("rights", program=call.program, path=first)
    for word in targets:
        target = target_of(word, scene)
        broad = target in NEVER and target is not Target.REPOSITORY
        if broad or (recursive and target in FAR):
            yield danger("rights", program=call.program, path=word.text)


def judge_kill(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Everything at once, or the first process."""
    if "-1" in call.texts[1:] or "1" in [text for text in call.texts if not SIGNAL.match(text)]:
        yield danger("kills_all")
