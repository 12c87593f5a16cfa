"""Keeps files before they are changed, so that the work of a turn or a job can be taken back."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.actor import Actor
from duckflow.agent.gatekeeper import Ready
from duckflow.agent.session import Session
from duckflow.errors import DuckflowError, ToolError
from duckflow.events.talking import HunkMoved
from duckflow.events.types import MessageAdded, Noticed, TurnUndone
from duckflow.events.views import PlannedUndo, UndoResult
from duckflow.i18n.template import note, quoted
from duckflow.safety.path_names import shown
from duckflow.safety.risk import runs_later
from duckflow.safety.secret_diffs import without_secret_lines
from duckflow.state.changes import LATEST, Hunk, UndoScope, WorkAuthor, hunks_of, with_hunk
from duckflow.state.data import say, shorten
from duckflow.state.message import Message

if TYPE_CHECKING:
    from duckflow.safety.undo.facts import Change, FileVersions
    from duckflow.safety.undo.undo import Undo


NAMED = 40
"""The model is told of at most this many files of an undo."""
LABEL = 50
"""The number of letters of the user's message that is shown to say which turn is meant."""
MOST_NAMED = 1000
"""A record names at most this many files that one command has changed."""


class UndoKeeper:
    """Records every change so that it can be undone. The undo store behind it is created with the first change, or when
    the user first wants to undo."""

    def __init__(self, session: Session, make: "Callable[[], Undo]") -> None:
        self._session = session
        self._make = make
        self._made: Undo | None = None

    def around(self, ready: Ready, actor: Actor, hooked: bool = False) -> AbstractAsyncContextManager[list[str]]:
        """Returns a context manager to run an action of `actor` in. It yields a list, which holds the files that a
        command has changed once the command has ended; other tools report their changed files themselves. `hooked`
        means that hooks run programs after the tool, so that it is treated like a command."""
        tool, args = ready.tool, ready.args
        if tool.reads_only(args):
            return nullcontext([])
        paths = tool.touches(args)
        if tool.effect == "run" or not paths:
            return self._around_command(self._author(actor), tool.command(args), tool.goes_on(args))
        return self._around_change(self._author(actor), paths, hooked)

    def scope_of(self, actor: Actor) -> UndoScope:
        """Returns the scope of an actor's changes: the turn, or the whole job."""
        return self._author(actor).whole

    def _author(self, actor: Actor) -> WorkAuthor:
        """Returns the author under which an actor's changes are recorded: a job and its step, or the turn. An agent to
        which the conversation has given a task works for the turn."""
        state = self._session.state
        return WorkAuthor(state.turn, *((actor.job_id, actor.step_id) if actor.job_id in state.jobs else ()))

    @asynccontextmanager
    async def _around_command(
        self, author: WorkAuthor, command: str, goes_on: bool = False
    ) -> AsyncGenerator[list[str]]:
        """Runs a command inside of this context to record its changes. If the command wrote a file that makes programs
        run later, the user is told afterwards, since nobody could ask before."""
        changes: list[Change] = []
        paths: list[str] = []
        try:
            async with self._undo().command(author, command if goes_on else "", command) as changes:
                yield paths
        finally:
            paths += changed_files(changes)
            folder = Path(self._session.state.folder)
            written_files = [change for change in changes if change.after and change.after.kind != "folder"]
            for change in written_files:
                if runs_later(change.path, change.before is None, folder):
                    self._session.emit(Noticed(what=say("risk.runs_later", path=shown(change.path))))

    @asynccontextmanager
    async def _around_change(
        self, author: WorkAuthor, paths: tuple[str, ...], hooked: bool
    ) -> AsyncGenerator[list[str]]:
        command_watch = self._around_command(author, "") if hooked else nullcontext(list[str]())
        async with command_watch as changed_paths, self._undo().change(author, paths):
            yield changed_paths

    @asynccontextmanager
    async def watch(self, command: str) -> AsyncGenerator[list[str]]:
        """Records the changes of a command that the user typed, which runs inside of this context. They are reported,
        but belong to no turn and no job. The command runs even if its changes cannot be recorded."""
        from duckflow.safety.commands.judge import judge_command
        from duckflow.safety.commands.paths import CommandFacts

        changes: list[Change] = []
        paths: list[str] = []
        command_facts = CommandFacts(self._session.state.folder, str(Path.home()), git_runs_programs=False)
        async with AsyncExitStack() as stack:
            if judge_command(command, command_facts).verdict != "safe":
                with contextlib.suppress(ToolError):
                    changes = await stack.enter_async_context(self._undo().watch())
            yield paths
        paths += changed_files(changes)

    async def authors(self) -> list[WorkAuthor]:
        running = self._running()
        return [author for author in await self._undo().authors() if author.job not in running]

    async def unkept(self, paths: Sequence[str]) -> frozenset[str] | None:
        """Returns the files at these paths, or in the whole folder, that could not be brought back; None if no file
        could be."""
        try:
            return await self._undo().unkept(paths)
        except DuckflowError:
            return None

    async def diff(self, scope: UndoScope = LATEST) -> PlannedUndo:
        preview = await self._undo().diff(scope)
        return replace(preview, name=self._name(preview.authors, scope))

    async def versions(self, scope: UndoScope) -> "list[FileVersions]":
        """Returns the files that some work has changed, each as it was before the work and as it was after it."""
        return await self._undo().versions(scope)

    async def changes(self, scope: UndoScope) -> "list[FileVersions]":
        """Returns the versions if there is an undo. Without one there is no earlier version, and no change."""
        try:
            return await self.versions(scope)
        except DuckflowError:
            return []

    async def preview(self, back: bool, scope: UndoScope = LATEST) -> PlannedUndo:
        preview = await self._undo().preview(back, self._allowed(scope))
        return replace(preview, name=self._name(preview.authors, scope), wish=self._wish(preview.turn))

    async def restore(self, back: bool, only_own: bool = False, scope: UndoScope = LATEST) -> UndoResult:
        """Takes back the work in `scope`, or else the latest work. If `back` is False, does the work of the latest undo
        again. A file stays as it is if someone else has changed the same lines since; with `only_own` also if someone
        else may have changed it while a command ran."""
        undo_result = await self._undo().restore(back, only_own, self._allowed(scope))
        undo_result = replace(undo_result, name=self._name(undo_result.authors, scope))
        files, turn, name = ", ".join(undo_result.changed) or "-", undo_result.turn, undo_result.name
        key = f"{'turn' if not name else 'work'}_{'undone' if back else 'redone'}"
        for_model = note(self._session.state.language, key, turn=str(turn), work=name, files=files)
        moved = undo_result.moved if back else undo_result.authors
        remaining_authors = await self._undo().authors() if back else ()
        event = TurnUndone(
            turn=turn,
            name=name,
            back=back,
            changed=undo_result.changed,
            cleared=undo_result.cleared,
            steps=tuple(author.step for author in moved if author.step),
            turns=tuple(author.turn for author in undo_result.gone if not author.job),
            steps_left=tuple(author.step for author in remaining_authors if author.step),
            turns_left=tuple(author.turn for author in remaining_authors if not author.job),
        )
        self._session.emit(event)
        self._session.emit(MessageAdded(message=Message(role="system", text=for_model, turn=self._session.state.turn)))
        return undo_result

    async def move_hunk(self, hunk: Hunk, back: bool) -> None:
        """Takes one hunk of some work back, or puts it in again. The model is told what the user has done."""

        def change(data: bytes) -> bytes:
            text = with_hunk(data.decode(), hunk, back)
            if text is None:
                raise DuckflowError("comment.hunk_gone", path=shown(hunk.path))
            return text.encode()

        steps = [author for author in await self._undo().authors() if author.job == hunk.job]
        author = steps[0] if hunk.job and steps else WorkAuthor(hunk.turn, hunk.job)
        try:
            await self._undo().rewrite(author, hunk.path, change)
        except (OSError, UnicodeDecodeError, ToolError) as problem:
            raise DuckflowError("comment.hunk_gone", path=shown(hunk.path)) from problem
        self._session.emit(HunkMoved(hunk=hunk, back=back))
        state, text = self._session.state, "\n".join((f"--- {hunk.path}", hunk.header, *hunk.lines))
        for_model = note(state.language, "hunk_taken_back" if back else "hunk_put_back", path=hunk.path)
        for_model = f"{for_model}\n{quoted(state.language, hunk.path, without_secret_lines(text, Path(state.folder)))}"
        self._session.emit(MessageAdded(message=Message(role="system", text=for_model, turn=state.turn)))

    def tell_left(self, preview: PlannedUndo) -> None:
        """Tells the model that the user was asked about this undo and did not want it."""
        state, files = self._session.state, ", ".join(impact.path for impact in preview.impacts[:NAMED])
        work = f"'{preview.name}'" if preview.name else f"turn {preview.turn}"
        for_model = note(state.language, "undo_asked", work=work, files=files)
        self._session.emit(MessageAdded(message=Message(role="system", text=for_model, turn=state.turn)))

    def _running(self) -> frozenset[str]:
        return frozenset(job.job_id for job in self._session.state.live_jobs() if job.status == "running")

    def _allowed(self, scope: UndoScope) -> UndoScope:
        """Returns the scope without the jobs that are still running, because these would write again what an undo takes
        back."""
        running = self._running()
        if scope.job in running:
            raise DuckflowError("undo.job_runs", name=self._session.state.jobs[scope.job].name)
        return scope._replace(without=running)

    def _name(self, authors: Sequence[WorkAuthor], scope: UndoScope) -> str:
        """Returns the name of the step, or those of all jobs and turns that did the work. A single turn has no name."""
        state, works = self._session.state, dict.fromkeys(author.whole for author in authors)
        jobs = [state.jobs[work.job] for work in works if work.job in state.jobs]
        plan = state.plans.get(jobs[0].plan_id) if len(jobs) == 1 else None
        step = plan.step(scope.step) if plan and scope.step else None
        turns = [self._wish(work.turn) for work in works if work.turn] if len(works) > 1 else []
        return step.name if step else " · ".join([*turns, *(job.name for job in jobs)])

    def _wish(self, turn: int) -> str:
        """Returns the beginning of the user's message with which the turn began."""
        texts = (
            message.text for message in self._session.state.messages if message.role == "user" and message.turn == turn
        )
        return shorten(" ".join(next(texts, str(turn)).split()), LABEL)

    async def close(self) -> None:
        if self._made:
            await self._made.close()

    def _undo(self) -> "Undo":
        if self._made is None:
            self._made = self._make()
        return self._made


def changed_files(changes: "Iterable[Change]") -> list[str]:
    """Returns the files and links among the changes, in order. Folders, and what belongs to git itself, are left
    out."""
    facts = {change.path: change.after or change.before for change in changes}
    files = (path for path, fact in facts.items() if fact and fact.kind != "folder" and ".git" not in path.split("/"))
    return sorted(files)[:MOST_NAMED]


def hunks_in(turn: int, job: str, versions: "Sequence[FileVersions]") -> list[Hunk]:
    """Returns the changes of all text files of some work; git's own files are left out."""
    texts = [
        file
        for file in versions
        if file.before != file.after and ".git" not in file.path.split("/") and b"\0" not in (file.before or b"")
        if b"\0" not in (file.after or b"")
    ]
    return [
        hunk
        for file in texts
        for hunk in hunks_of(
            turn, job, file.path, None if file.before is None else file.old, None if file.after is None else file.new
        )
    ]
