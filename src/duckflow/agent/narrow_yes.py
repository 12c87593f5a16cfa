"""Reads a yes at a Gate (the question before risky actions) that is for some files, folders or programs only."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.i18n.answer_scope import without
from duckflow.i18n.answers import WholeAnswer, read_whole, without_reference
from duckflow.i18n.words import begins, fullmatch, languages_in, rules
from duckflow.safety.path_names import named_files
from duckflow.state.action import DOCUMENT_NAMES, is_checked
from duckflow.state.checks import belongs_to_tests
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
KINDS = ("tests", "code", "documents")
"""The kinds of files that a yes may name; `test code` is read as tests."""
DOCUMENT = rf"(?i)(?<![A-Za-z0-9_./-])(?:{'|'.join(sorted(DOCUMENT_NAMES))})(?![A-Za-z0-9_/-]|\.\w)"
"""Matches the name of a well-known document without its ending: `the README`."""
LAST_PART = r"^(.*\S)[,;.、。]\s*([^,;.、。]+)$"
"""Splits a text before its last clause."""


def answer_for_some(text: str, whole: WholeAnswer, gate: GateRequest, language: str) -> Answer | None:
    """Returns a yes that says for which files, folders or programs it is, or which files should stay. It sets up no
    rule but one for a program of the Gate that it names as such: another rule could be about others. For an undo no yes
    is needed: naming files chooses them."""
    paths, is_undo = [impact.path for impact in gate.impacts], gate.operations == UNDO
    if whole.agreed is None and not is_undo:
        return None
    program = "" if whole.agreed is None or is_undo else _program_with_rule(whole.agreed, gate)
    narrow_yes = None if is_undo else _read_clauses(whole.rest or text, gate, program, language)
    if narrow_yes is None:
        files = (files_meant if is_undo else without_spared)(text, paths, language)
        narrow_yes = None if files is None else NarrowYes(files)
        program = ""
    if narrow_yes is None:
        return None
    subjects, limit = narrow_yes
    words = text.strip() if subjects else ""
    return Answer(choice="yes", text=words, paths=subjects, limit=limit, about=program, kept_scope=bool(program))


def _program_with_rule(agreed: WholeAnswer, gate: GateRequest) -> str:
    """Returns the program of the Gate that the user need not be asked about again, if they have named one."""
    names = {name for command in gate.commands for call in _programs(command.removeprefix("$ ")) for name in call}
    return agreed.about if agreed.scope == "session" and agreed.about in names else ""


def _read_clauses(wording: str, gate: GateRequest, program: str, language: str) -> "NarrowYes | None":
    """Reads what a yes is for. Clauses at its end may say which files stay as they are; those are taken away."""
    spared_paths = set[str]()
    paths = [impact.path for impact in gate.impacts]
    while split_wording := re.match(LAST_PART, wording.strip().rstrip("。.!！")):
        marked_clause, named_paths = _with_documents(split_wording[2], paths, language)
        if not fullmatch("scopes.spared_named", marked_clause, language):
            break
        wording, spared_paths = split_wording[1], spared_paths | {*named_paths}
    narrow_yes = read_narrow_yes(wording, gate, language, (program,) if program else ())
    if narrow_yes is None:
        marked_wording, named_paths = _with_documents(wording, paths, language)
        commands = [one for one in gate.commands if _all_named(_programs(one.removeprefix("$ ")), (program,))]
        left_paths = [path for path in paths if path not in {*named_paths, *spared_paths}]
        is_exception = fullmatch("scopes.spared_named", marked_wording, language) and left_paths
        if not is_exception or (len(left_paths) == len(paths) and len(commands) < len(gate.commands)):
            # Nobody knows whether another command changes what should stay.
            return None
        return NarrowYes((*left_paths, *commands) if len(left_paths) < len(paths) else ())
    if not spared_paths:
        return narrow_yes
    everything = (*paths, *gate.commands)
    subjects = tuple(name for name in narrow_yes.subjects or everything if name not in spared_paths)
    limit = tuple(name for name in narrow_yes.limit if name not in spared_paths)
    return NarrowYes(subjects if len(subjects) < len(everything) else (), limit) if subjects and limit else None


def _with_documents(wording: str, paths: Sequence[str], language: str) -> tuple[str, list[str]]:
    """Returns the wording with marks in place of files that should stay, of kinds of files and of well-known documents,
    and those of `paths` that these may be."""
    wording, named_paths = named_files(wording, paths, "@")

    def document(name: re.Match[str]) -> str:
        stem = name[0].casefold()
        named_paths.extend(path for path in paths if stem in path.casefold().rpartition("/")[2])
        return "#"

    wording = re.sub(DOCUMENT, document, wording)
    for kind in KINDS:
        wording, matches = without(f"kinds.{kind}", wording, "#", language)
        named_paths += [path for path in paths if matches and _is_of_kind(path, kind, sure=False)]
    return wording, named_paths


def _is_of_kind(path: str, kind: str, *, sure: bool) -> bool:
    """Says whether a file surely is of a kind, or may be."""
    from duckflow.code.syntax import language_of

    has_code = language_of(path) is not None
    if kind == "tests":
        return belongs_to_tests(path) and is_checked(path) if sure else "test" in path.casefold()
    if kind == "code":
        return has_code and is_checked(path) and not belongs_to_tests(path) if sure else is_checked(path)
    return not is_checked(path) if sure else not has_code


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


def read_narrow_yes(
    wording: str, gate: GateRequest, language: str, allowed_programs: Sequence[str] = ()
) -> NarrowYes | None:
    """Returns what of the Gate a text such as `but only in src/ and tests/` allows. Returns None if nothing of the Gate
    surely is what the text names, or if the text says anything else. Runs of `allowed_programs` are allowed, too."""
    paths, folders, others = [impact.path for impact in gate.impacts], set[str](), list[str]()
    shorter_wording, ones = without("kinds.the_one", wording, "", language)
    wording = " ".join(shorter_wording.split()) if ones else wording
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
    wording, kind_paths = _with_kinds(wording, paths, language)
    is_condition = fullmatch("scopes.only_named", wording, language) is None
    if is_condition and not fullmatch("scopes.if_named", wording, language):
        return None
    limit = (*named_paths, *named_folders, *others, *kind_paths)
    subjects = [path for path in paths if within(path, limit)]
    # "Only the tests" may also mean to run them.
    means_run = gate.commands and kind_paths and all(map(belongs_to_tests, (*limit,)))
    if (ones and len(subjects) != 1) or (means_run and not fullmatch("scopes.if_named", wording, language)):
        return None
    program_names = (*named_programs, *allowed_programs)
    subjects += [command for command, calls in programs.items() if _all_named(calls, program_names)]
    fits_all = len(subjects) == len(paths) + len(programs)
    if not subjects or (is_condition and not fits_all):
        return None
    return NarrowYes(() if fits_all else tuple(subjects), limit)


def _with_kinds(wording: str, paths: Sequence[str], language: str) -> tuple[str, list[str]]:
    """Returns the wording with marks in place of kinds of files, and of all files that are shown ("these two files"),
    and those of `paths` that surely are meant."""
    meant_paths = list[str]()
    for kind in KINDS:
        wording, matches = without(f"kinds.{kind}", wording, "@", language)
        meant_paths += [path for path in paths if matches and _is_of_kind(path, kind, sure=True)]
    marked_wording, matches = without("kinds.shown", wording, "@", language)
    counts = {str(len(paths)), ""}
    for code in languages_in(wording, language):
        counts |= {
            rule.listed[len(paths) - 1] for rule in rules(code, "kinds.numbers") if len(paths) <= len(rule.listed)
        }
    if matches and all((match["number"] or "").casefold() in counts for match in matches):
        wording, meant_paths = marked_wording, [*meant_paths, *paths]
    return wording, list(dict.fromkeys(meant_paths))


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
