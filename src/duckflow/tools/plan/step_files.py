"""Finds the files that concern a step, and how much of each: its own files, those of the steps that it builds on, and
files that were only read for the plan. The request for a step leaves out what belongs to other steps."""

import posixpath
import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Literal

from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.criterion import FILE, named_in
from duckflow.tools.plan.folder import made_by

Share = Literal["all", "written", "none"]
"""How much of a file concerns a step: all of it that is known, only the lines that the plan has written, or nothing."""

FILE_NAME = re.compile(rf"[\w.-]*/[\w./-]*\w\.\w{{1,8}}|{FILE}")
"""The name of a file: a name with a dot counts if it has a folder or a usual extension; `package.module` does not."""
LEAST_STEM = 4
"""The fewest letters that a file's name without its ending must have to be recognized in a text. A shorter name may be
an ordinary word."""
DOCUMENTS = frozenset((".md", ".markdown", ".rst", ".adoc"))


def names_path(text: str, path: str) -> bool:
    """Says whether a text names a file, with or without its ending: "the parser" may be `src/parser.py`."""
    name = posixpath.basename(path)
    stem = posixpath.splitext(name)[0]
    words = [name, *([stem] if len(stem) >= LEAST_STEM else [])]
    return any(re.search(rf"(?ai)(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)


def files_of(plan: Plan, step: Step) -> list[str]:
    """Returns the files that the step has made, the files it names, and those made by the steps that it builds on."""
    needed_ids = _needed_by(plan, step)
    earlier_files = [path for other in plan.steps if other.step_id in needed_ids for path in made_by(other)]
    return list(dict.fromkeys([*made_by(step), *FILE_NAME.findall(step.text), *earlier_files]))


def _needed_by(plan: Plan, step: Step) -> set[str]:
    """Returns the ids of the steps that this step depends on, and of the steps that those depend on. It goes no further
    back, so that a late step is told no more than an early one."""
    needed_ids = set(step.depends_on)
    return needed_ids.union(*(other.depends_on for other in plan.steps if other.step_id in needed_ids))


class StepFiles:
    """Says how much of a file concerns a step. A file that other steps work on concerns only the steps that build on
    them. A step that only writes documents needs what was written there, and not what was read; the same holds for
    files of steps on which it builds only indirectly, and for a step that only runs something."""

    def __init__(self, plan: Plan, step: Step, paths: Iterable[str]) -> None:
        """`paths` are the files that may be quoted."""
        self._step = step
        self._text = _work_of(step)
        steps_before = takewhile(lambda other: other.step_id != step.step_id, plan.steps)
        needed_ids = _needed_by(plan, step) or {other.step_id for other in steps_before}
        self._builds_on = [other for other in plan.steps if other.step_id in step.depends_on]
        self._needed = [other for other in plan.steps if other.step_id in needed_ids]
        self._others = [other for other in plan.steps if other.step_id not in needed_ids | {step.step_id}]
        own_paths = [*made_by(step), *FILE_NAME.findall(self._text), *(path for path in paths if self._owns(path))]
        self._writes_documents = bool(own_paths) and all(map(_is_document, own_paths))
        lists_files = any(other.files for other in plan.steps)
        self._writes_nothing = step.added or (lists_files and not own_paths and not step.files)

    def share(self, path: str) -> Share:
        if self._owns(path):
            return "all"
        if self._writes_nothing or (self._writes_documents and not _is_document(path)):
            return "written" if any(works_on(other, path) for other in self._needed) else "none"
        if any(works_on(other, path) for other in self._builds_on):
            return "written" if self._writes_documents else "all"
        if any(works_on(other, path) for other in self._needed):
            return "written"
        return "none" if any(works_on(other, path) for other in self._others) else "all"

    def _owns(self, path: str) -> bool:
        return path in made_by(self._step) or names_path(self._text, path)


def _work_of(step: Step) -> str:
    """Returns the step's texts without the commands of its criterion: a file that a command only runs is not yet a file
    that the step works on."""
    criterion_text = step.success
    for thing in named_in(step.success):
        criterion_text = criterion_text.replace(thing.name, " ") if thing.kind == "command" else criterion_text
    return f"{step.name} {step.work} {criterion_text}"


def works_on(step: Step, path: str) -> bool:
    """Says whether a step has made a file, or names it as one that it works on."""
    return path in made_by(step) or names_path(_work_of(step), path)


def _is_document(path: str) -> bool:
    """Says whether people read the file: by its ending, or by a name in capitals such as `CHANGELOG`."""
    stem, suffix = posixpath.splitext(posixpath.basename(path))
    return suffix.lower() in DOCUMENTS if suffix else stem.isupper()
