"""The tool that undoes the work of the latest turn with changes, and the question that comes before it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from duckflow.errors import ToolError
from duckflow.events.ports import Ask, UndoPort
from duckflow.events.views import PlannedUndo, UndoResult
from duckflow.i18n.answers import read_whole
from duckflow.i18n.template import note
from duckflow.i18n.words import fullmatch
from duckflow.safety.path_names import named_files
from duckflow.state.agent import AgentState
from duckflow.state.changes import LATEST, UndoScope, WorkAuthor
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.question import GATE_KEYS, Choice, GateRequest, Question
from duckflow.tools.tool import Args, Done, Tool

KINDS = ("", "turn", "job", "step")
LONGEST_NAME = 60


class TakeBackArgs(Args):
    of: str = ""
    """`turn`, `job` or `step` for the latest one; or words of the message or of the name that the work began with."""
    paths: tuple[str, ...] = ()


class TakeTurnBack(Tool[TakeBackArgs]):
    """Undoes a turn, job or step, all of it or only some files or folders: the latest one of a kind, the one that is
    named by its words, or the newest of all. In every mode the user first sees what would change, and must say yes."""

    operation = "undo.turn"
    effect = "plan"
    when = ("changed",)
    args = TakeBackArgs

    def __init__(self, state: AgentState, undo: UndoPort, ask: Ask) -> None:
        self._state = state
        self._undo = undo
        self._ask = ask

    async def run(self, args: TakeBackArgs) -> Done:
        authors = await self._undo.authors()
        scope = latest(args.of, authors) if args.of in KINDS else self._named(args.of, authors)
        scope = scope._replace(paths=tuple(path.rstrip("/") for path in args.paths))
        preview = await self._undo.preview(back=True, scope=scope)
        if not preview.impacts and not preview.conflicts:
            raise ToolError(note(self._state.language, "undo_nothing"), "undo.nothing")
        answer = await self._ask(undo_question(preview, back=True))
        if answer.choice not in ("yes", "all"):
            # The user has decided, so the call did not fail.
            declined = "wished" if answer.choice == "wish" else "refused"
            key = "refused_why" if declined == "refused" and answer.text else declined
            return Done(note(self._state.language, key, reason=answer.text), say("undo.left"), declined=declined)
        scope = scope._replace(paths=answer.paths or scope.paths)
        only_own_changes = answer.choice == "yes" and not preview.nothing_else
        undo_result = await self._undo.restore(back=True, only_own=only_own_changes, scope=scope)
        files = ", ".join(undo_result.changed) or "-"
        # The note of the undo itself says what was changed.
        return Done(note(self._state.language, "undo_agreed"), about_work("done", undo_result, files=files))

    def _named(self, words: str, authors: Sequence[WorkAuthor]) -> UndoScope:
        """Returns the scope of the only work whose message or name has these words in it."""
        names = {scope: name for author in authors for scope, name in self._names(author)}
        scopes = [scope for scope, name in names.items() if " ".join(words.casefold().split()) in name.casefold()]
        if len(scopes) != 1:
            shown_names = "; ".join(f'"{shorten(name, LONGEST_NAME)}"' for name in names.values())
            raise ToolError(note(self._state.language, "undo_which", works=shown_names), "undo.nothing")
        return scopes[0]

    def _names(self, author: WorkAuthor) -> Iterator[tuple[UndoScope, str]]:
        """Yields the author's work with the user's message that began the turn, or with the names of job and step."""
        job = self._state.jobs.get(author.job)
        if job is None:
            messages = [message for message in self._state.messages if message.turn == author.turn and not message.job]
            yield author.whole, " ".join(" ".join(each.text for each in messages if each.role == "user").split())
            return
        plan = self._state.plans.get(job.plan_id)
        yield author.whole, job.name
        if step := plan.step(author.step) if plan and author.step else None:
            yield UndoScope(job=author.job, step=author.step), step.name


def latest(kind: str, authors: Sequence[WorkAuthor]) -> UndoScope:
    """Returns the scope of the latest turn, job or step, by `kind`. If there is none of this kind, returns the scope of
    the latest work of any kind."""
    jobs, turns = [author for author in authors if author.job], [author for author in authors if not author.job]
    match kind:
        case "turn" if turns:
            return turns[0].whole
        case "job" if jobs:
            return jobs[0].whole
        case "step" if jobs:
            return UndoScope(job=jobs[0].job, step=jobs[0].step)
        case _:
            return LATEST


def undo_question(preview: PlannedUndo, back: bool, with_diff: bool = True, more: Sequence[str] = ()) -> Question:
    """Makes the question before an undo or redo. `more` names further choices besides yes and no: `diff` or `files`."""
    request = GateRequest(
        action_ids=(),
        operations=("undo" if back else "redo",),
        intent=(),
        rationale="",
        impacts=preview.impacts,
        diff=preview.diff if with_diff else "",
        reasons=(*preview.maybe_yours, *preview.conflicts, *preview.not_covered),
    )
    # A plain yes never undoes changes that may be somebody else's, unless there is nothing else to undo.
    may_undo_others = bool(preview.maybe_yours) and not preview.nothing_else
    yes_keys = (("yes", "undo.yes_own"), ("all", "undo.yes_all")) if may_undo_others else (("yes", "gate.yes"),)
    keys = (*yes_keys, *((key, f"undo.show_{key}") for key in more), ("no", "gate.only_no"))
    choices = tuple(Choice(key=key, label=say(label), number=GATE_KEYS.index(key) + 1) for key, label in keys)
    title = about_work("title" if back else "redo_title", preview, wish=preview.wish)
    return Question(kind="gate", title=title, gate=request, choices=choices)


def about_work(key: str, work: PlannedUndo | UndoResult, **values: str) -> Phrase:
    """Makes a sentence about a turn by its number, or about a job or step by its name."""
    return say(f"undo.{key}{'_named' if work.name else ''}", turn=work.turn, name=work.name, **values)


OTHER_FILE = r"(?<![A-Za-z0-9_./-])[A-Za-z0-9_./-]+\.[A-Za-z][A-Za-z0-9]{0,5}(?![A-Za-z0-9_])"
"""The name of a file with its extension."""
FOLDER_END = r"(?<=[A-Za-z0-9_-])/(?![A-Za-z0-9_./-])"
"""The slash at the end of a folder's name."""


def files_meant(text: str, paths: Sequence[str], language: str) -> tuple[str, ...] | None:
    """Returns those of `paths` that an answer is about: the files that it names, or all but the files that it says
    should stay. Returns an empty tuple if all files are meant, and None if the answer says anything else."""
    wording, named_paths = _with_marks(text, paths, language)
    if named_paths and fullmatch("scopes.only_named", wording, language):
        return tuple(named_paths) if len(named_paths) < len(paths) else ()
    return without_spared(text, paths, language)


def without_spared(text: str, paths: Sequence[str], language: str) -> tuple[str, ...] | None:
    """Returns all of `paths` but those that an answer says should stay: an empty tuple if none of them should, and None
    if the answer says anything else."""
    wording, named_paths = _with_marks(text, paths, language)
    if fullmatch("scopes.spared_named", wording, language):
        remaining_paths = tuple(path for path in paths if path not in named_paths)
        return None if not remaining_paths else remaining_paths if named_paths else ()
    return None


def _with_marks(text: str, paths: Sequence[str], language: str) -> tuple[str, list[str]]:
    """Returns the wording with marks in place of names, and those of `paths` that it names."""
    wording, named_paths = named_files(read_whole(text, language).rest or text.strip().rstrip("。.!！"), paths, "@")
    parents = {parent for path in paths for parent in map(str, PurePath(path).parents) if parent not in (".", "/")}
    wording, folders = named_files(re.sub(FOLDER_END, "", wording), parents, "@")
    named_paths += [
        path for path in paths if path not in named_paths and {*map(str, PurePath(path).parents)} & {*folders}
    ]
    return re.sub(OTHER_FILE, "#", wording), named_paths
