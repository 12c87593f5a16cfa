"""Finds the rules that the user means by the words of a yes: those that are offered, and no wider than the words."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from duckflow.agent.gate_question import RiskyAction, Scope, rules_offered
from duckflow.agent.permissions import EDITS, FILE_KINDS, Permission
from duckflow.i18n.answer_scope import named_in, parts_of
from duckflow.i18n.words import search
from duckflow.safety.path_names import escaped
from duckflow.state.question import FileImpact


def rules_meant(risky: Sequence[RiskyAction], scope: Scope, about: str, language: str) -> list[Permission]:
    """Returns those of the offered rules that the user means by these words. If they name several things ("pytest and
    these source files"), each of them must fit a rule; otherwise none is set up."""
    offered_rules = [
        (rule, risky_action.preview.impacts)
        for risky_action in risky
        if (rule := risky_action.offered(scope)) and rule in rules_offered(risky, scope)
    ]
    rules_by_part = [
        [fitting(rule, impacts, part, language) for rule, impacts in offered_rules]
        for part in parts_of(about, language)
    ]
    if not all(map(any, rules_by_part)):
        return []
    return list(dict.fromkeys(rule for part_rules in rules_by_part for rule in part_rules if rule))


def fitting(rule: Permission, impacts: Iterable[FileImpact], about: str, language: str) -> Permission | None:
    """Returns the rule unless it allows more than the user's words name. Words that name nothing, such as "that", fit
    every rule; words about files or edits fit only rules for edits. A user who names one of the edited files, or says
    "this file", gets a rule for that file alone."""
    names, is_about_files = named_in(about, language), search("scopes.of_files", about, language) is not None
    if is_about_files and rule.operation != EDITS:
        return None
    paths = [PurePosixPath(impact.path) for impact in impacts if rule.operation == EDITS]
    one_file = bool(paths) and search("scopes.this_file", about, language) is not None
    if not one_file and all(_is_named(rule, name) for name in names):
        return rule
    files = [path for path in paths if {*names} <= {str(path).casefold(), path.name.casefold(), path.stem.casefold()}]
    return rule.model_copy(update={"pattern": escaped(str(files[0]))}) if len(files) == 1 else None


def _is_named(rule: Permission, name: str) -> bool:
    """Says whether a word names what a rule allows: a folder, a file or the ending of files, or a program."""
    pattern = rule.pattern.casefold()
    if rule.operation == EDITS:
        endings = FILE_KINDS.get(name, (f".{name.lstrip('*.')}",))
        places = re.split(r"[/,\s]+", pattern)
        return pattern.endswith(endings) or (name in pattern and {*name.strip("/").split("/")} <= {*places})
    if rule.kind:
        return name in pattern
    return name in re.findall(r"[\w.+#-]+", pattern)
