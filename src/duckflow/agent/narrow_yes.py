"""Reads a yes at a Gate (the question before risky actions) that is for some files, folders or programs only."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.i18n.answers import WholeAnswer, read_whole, without_reference
from duckflow.i18n.words import begins, fullmatch
from duckflow.safety.path_names import named_files
from duckflow.state.question import Answer, GateRequest
from duckflow.tools.undo_turn import files_meant, without_spared

FILE_OR_FOLDER = (
    r"(?<![A-Za-z0-9_./-])(?:[A-Za-z0-9_.-]*/[A-Za-z0-9_./-]*|[A-Za-z0-9_-][A-Za-z0-9_.-]*\.[A-Za-z]\w{0,5})"
    r"(?![A-Za-z0-9_-])"
)
"""Matches a name that can only be a file or a folder: it has a slash or a file's extension."""


MODULE = 2
"""The number of the word that names the module after `python -m`."""
UNDO = ("undo",)
"""The operations of a question about an undo."""


def answer_for_some(text: str, whole: WholeAnswer, gate: GateRequest, language: str) -> Answer | None:
    """Returns a yes that says for which files, folders or programs it is, or which files should stay. It sets up no
    rule: the rule could be about others. For an undo no yes is needed: naming files chooses them."""
    paths, is_undo = [impact.path for impact in gate.impacts], gate.operations == UNDO
    if whole.agreed is None and not is_undo:
        return None
    narrow_yes = None if is_undo else read_narrow_yes(whole.rest or text, gate, language)
    if narrow_yes is None:
        files = (files_meant if is_undo else without_spared)(text, paths, language)
        narrow_yes = None if files is None else NarrowYes(files)
    if narrow_yes is None:
        return None
    subjects, limit = narrow_yes
    return Answer(choice="yes", text=text.strip() if subjects else "", paths=subjects, limit=limit)


def may_be_met(whole: WholeAnswer, text: str, language: str) -> bool:
    """Says whether a yes counts although there are other words beside it: they set no condition, or only ask that
    something stays unchanged, or only refer to what is shown ("in that case yes")."""
    if whole.agreed is None:
        return read_whole(without_reference(text, language), language).plain_yes
    return not whole.condition or begins("scopes.keeps", whole.rest, language) is not None


class NarrowYes(NamedTuple):
    """A yes that says what it is for."""

    subjects: tuple[str, ...]
    """The files and commands of the Gate that it allows; empty if it allows all of them."""
    limit: tuple[str, ...] = ()
    """The files and folders that the user named."""


def read_narrow_yes(wording: str, gate: GateRequest, language: str) -> NarrowYes | None:
    """Returns what of the Gate a text such as `but only in src/ and tests/` allows. Returns None if nothing of the Gate
    surely is what the text names, or if the text says anything else."""
    paths, folders, others = [impact.path for impact in gate.impacts], set[str](), list[str]()
    for path in paths:
        folders |= {str(parent) for parent in PurePosixPath(path).parents} - {".", "/"}
    own_names = {*paths, *folders, *(path.rpartition("/")[2] for path in paths)}
    named_folders = list[str]()

    def spelled(name: re.Match[str]) -> str:
        plain_name = _plain(name[0])
        if plain_name not in own_names:
            others.append(plain_name)
        return plain_name if plain_name in own_names else "#"

    def folder(name: re.Match[str]) -> str:
        named_folders.append(name[0])
        return "@"

    wording = re.sub(FILE_OR_FOLDER, spelled, wording.strip().rstrip("。.!！"))
    wording, named_paths = named_files(wording, paths, "@")
    # A folder must be spelled in full: a folder of the same name may lie elsewhere.
    folder_names = "|".join(re.escape(name) for name in sorted(folders, key=len, reverse=True))
    wording = (
        re.sub(rf"(?<![A-Za-z0-9_./-])(?:{folder_names})(?![A-Za-z0-9_/-]|\.\w)", folder, wording)
        if folders
        else wording
    )
    programs = {command: _programs(command.removeprefix("$ ")) for command in gate.commands}
    all_programs = {name for calls in programs.values() for names in calls for name in names}
    wording, named_programs = named_files(wording, all_programs, "@")
    is_condition = fullmatch("scopes.only_named", wording, language) is None
    if is_condition and not fullmatch("scopes.if_named", wording, language):
        return None
    limit = (*named_paths, *named_folders, *others)
    subjects = [path for path in paths if within(path, limit)]
    subjects += [command for command, calls in programs.items() if _all_named(calls, named_programs)]
    fits_all = len(subjects) == len(paths) + len(programs)
    if not subjects or (is_condition and not fits_all):
        return None
    return NarrowYes(() if fits_all else tuple(subjects), limit)


def within(path: str, limit: Sequence[str]) -> bool:
    """Says whether a path is one of the files, or inside of one of the folders."""
    return any(path == name or path.startswith(f"{name}/") for name in limit)


def _plain(name: str) -> str:
    return name.removeprefix("./").rstrip("/") or name


def _all_named(calls: Sequence[set[str]], named_programs: Sequence[str]) -> bool:
    return bool(calls) and all(not names.isdisjoint(named_programs) for names in calls)


def _programs(command: str) -> list[set[str]]:
    """Returns for each call in a command the names of its program; an empty list if they are not known for certain, as
    in a command of several lines, or with the network."""
    from duckflow.safety.commands.parse import parse
    from duckflow.safety.commands.verdict import TooMuch

    if "\n" in command:
        return []
    try:
        calls = parse(command).calls
    except TooMuch:
        return []
    programs = list[set[str]]()
    for call in calls:
        texts = [word.text for word in call.words]
        is_module = call.program == "python" and len(texts) > MODULE and texts[1] == "-m"
        programs.append(
            {texts[MODULE]} if is_module else {call.program, *(texts[0].rpartition("/")[2:] if texts else [])}
        )
    return programs if all(all(names) for names in programs) else []
