"""Tries the model's claims in the sandbox, on copies of the work folder. A check that passed is tried again: it proves
nothing if the work has changed the check itself."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.actor import Actor
from duckflow.agent.session import Session
from duckflow.agent.undo import UndoKeeper
from duckflow.events.types import Waiting
from duckflow.i18n.template import note
from duckflow.proof.settings import ProofSettings
from duckflow.state.action import ActionResult, evidence_of
from duckflow.state.changes import UndoScope
from duckflow.state.checks import Proof
from duckflow.state.data import say

if TYPE_CHECKING:
    from duckflow.proof.old_tests import OldTestTrial
    from duckflow.proof.stand_ins import StandIns
    from duckflow.proof.trial import TestsInQuestion
    from duckflow.proof.trial_folder import MakeLaunch
    from duckflow.safety.sandbox.sandbox import Sandbox
    from duckflow.safety.undo.facts import FileVersions


class ProofRunner:
    """Tries changes in the sandbox in which their tests ran. The conversation and its jobs share one ProofRunner."""

    def __init__(
        self,
        settings: ProofSettings,
        undo: UndoKeeper,
        find_sandbox: "Callable[[], Awaitable[Sandbox]]",
        make_launch: "MakeLaunch",
    ) -> None:
        self.settings = settings
        self.undo = undo
        self._find_sandbox = find_sandbox
        self._make_launch = make_launch

    async def tests(self, questions: "TestsInQuestion", command: str) -> Proof:
        from duckflow.proof.trial import RedGreenTrial

        return await RedGreenTrial(questions, command, self.settings).run(await self._find_sandbox(), self._make_launch)

    async def old_tests(self, trial: "OldTestTrial", names: set[str], begin: Callable[[], None]) -> set[str] | None:
        """Returns the tests that pass only because they were changed; None if that cannot be found out. `begin` is
        called first."""
        begin()
        return await trial.bent(await self._find_sandbox(), self._make_launch, names)

    async def stood_in(self, trial: "OldTestTrial", found: "StandIns", passed: bool) -> set[str] | None:
        """Returns the tests that pass only because files stand in for the code; None if that cannot be found out."""
        sandbox = await self._find_sandbox()
        return await trial.stood_in(sandbox, self._make_launch, found.versions, found.tests, passed)

    async def old_check(self, trial: "OldTestTrial", paths: tuple[str, ...], begin: Callable[[], None]) -> bool | None:
        """Says whether a command succeeds only because its own files were changed; None if that cannot be found out.
        `begin` is called first."""
        begin()
        return await trial.bent_check(await self._find_sandbox(), self._make_launch, paths)


class CheckDoubts:
    """Finds out whether a command ended well only because the work changed what it checks with: settings of its test
    runner, tests that existed before, or the script that is the check."""

    def __init__(self, session: Session, proof: ProofRunner) -> None:
        self._session = session
        self._proof = proof
        self._tried: tuple[str, list[FileVersions], tuple[str, ...]] | None = None

    async def look(self, result: ActionResult, actor: Actor) -> ActionResult:
        evidence = evidence_of(result)
        if evidence is None or not evidence.ok or not (self._session.state.changed_in or result.changed):
            return result
        if result.check and result.check.ok:
            from duckflow.tools.shell.runner_settings import doubted

            result = await doubted(result, self._session.state)
        if result.check and not result.check.ok:
            return result
        changes = [*await self._proof.undo.changes(self._scope(actor)), *self._links(result)]
        if not changes:
            return result
        if self._tried and self._tried[:2] == (evidence.command, changes):
            names = self._tried[2]
        elif result.check and result.check.kind == "tests":
            names = await self._weakened(result, evidence.command, changes)
        else:
            names = await self._altered(evidence.command, changes, result.check is not None)
        self._tried = evidence.command, changes, names
        return self._told(result, names) if names else result

    def _links(self, result: ActionResult) -> "list[FileVersions]":
        """Returns the links that the work has made: of these, undo knows no contents."""
        from duckflow.safety.undo.facts import FileVersions

        folder, paths = Path(self._session.state.folder), {*self._session.state.changed_in, *result.changed}
        return [FileVersions(path, None, b"") for path in sorted(paths) if (folder / path).is_symlink()]

    def _scope(self, actor: Actor) -> UndoScope:
        """Returns the scope of the work: everything since the plan was approved, or this turn; in a job the whole
        job."""
        state, scope = self._session.state, self._proof.undo.scope_of(actor)
        if scope.job:
            return scope
        return UndoScope(since=state.plan.since if state.plan and state.plan.under_way else state.turn)

    async def _weakened(self, result: ActionResult, command: str, changes: "list[FileVersions]") -> tuple[str, ...]:
        """Returns the older tests that this run has left out, or that pass only because they were changed."""
        from duckflow.proof.old_tests import OldTestTrial, among, old_tests
        from duckflow.proof.reach import texts_of
        from duckflow.proof.stand_ins import reaching, stand_ins
        from duckflow.tools.shell.runner_settings import files_of_scripts, left_out_by_settings

        assert result.check
        folder, settings = Path(self._session.state.folder), self._proof.settings
        texts = partial(texts_of, folder, settings.reach_seconds)
        suspects = await asyncio.to_thread(old_tests, changes, lambda: texts() or {}, left_out_by_settings)
        missing_tests = (
            suspects.missing(result.check.passed) if result.check.passed and result.check.runs_all else suspects.gone
        )
        missing_tests = tuple(name for name in missing_tests if result.check.covers_file(name.partition("::")[0]))
        bent_tests = set[str]()
        altered_tests = {*suspects.altered, *dict(suspects.renamed)}
        tests_to_try = altered_tests.union(suspects.touched).difference(missing_tests)
        if tests_to_try and settings.enabled:
            trial = OldTestTrial(changes, command, settings, dict(suspects.renamed))
            weakened_tests = await self._proof.old_tests(trial, tests_to_try, self._announce)
            bent_tests = altered_tests.difference(missing_tests) if weakened_tests is None else weakened_tests
        scripts = await asyncio.to_thread(files_of_scripts, result.check, folder)
        scripts = await self._bent(command, changes, scripts)
        found_stand_ins = await asyncio.to_thread(lambda: stand_ins(changes, texts() or {}, command))
        tests, passed_tests = found_stand_ins.tests.difference(suspects.altered), result.check.passed
        if is_reported := bool(passed_tests) and all(name.partition("::")[0].endswith(".py") for name in tests):
            tests = frozenset(among(tests, passed_tests))
        stand_in_paths = await self._stand_ins(command, changes, found_stand_ins._replace(tests=tests), is_reported)
        reaching_paths = reaching(changes, bool(result.check.passed))
        return (*missing_tests, *sorted(bent_tests), *scripts, *stand_in_paths, *reaching_paths)

    async def _stand_ins(
        self, command: str, changes: "list[FileVersions]", found: "StandIns", passed: bool
    ) -> tuple[str, ...]:
        """Returns the files that stand in for the code, if tests pass only because of them."""
        from duckflow.proof.old_tests import OldTestTrial

        if not found.tests or not self._proof.settings.enabled:
            return ()
        trial = OldTestTrial(changes, command, self._proof.settings)
        self._announce()
        failing = await self._proof.stood_in(trial, found, passed)
        return tuple(found.versions) if failing or (failing is None and found.certain) else ()

    async def _altered(self, command: str, changes: "list[FileVersions]", is_check: bool) -> tuple[str, ...]:
        """Returns the older files of the command itself that were changed, if only their change lets the command
        succeed. The settings of a checker belong to it, also new ones."""
        from duckflow.tools.shell.calls import plain_calls
        from duckflow.tools.shell.runner_settings import is_checker_setting, with_scripts

        words = {word for call in plain_calls(command) for word in call.words}
        modules = {word.replace(".", "/") + path_end for word in words for path_end in (".py", "/__main__.py")}
        words = await asyncio.to_thread(with_scripts, words, Path(self._session.state.folder))
        settings = {change.path for change in changes if is_check and is_checker_setting(change.path)}
        return await self._bent(command, changes, words | modules, settings)

    async def _bent(
        self, command: str, changes: "list[FileVersions]", names: set[str], settings: Collection[str] = ()
    ) -> tuple[str, ...]:
        from duckflow.proof.old_tests import OldTestTrial

        paths = tuple(
            change.path
            for change in changes
            if change.path in settings or (change.path in names and change.before is not None)
        )
        if not paths or not self._proof.settings.enabled:
            return paths
        trial = OldTestTrial(changes, command, self._proof.settings)
        is_bent = await self._proof.old_check(trial, paths, self._announce)
        return () if is_bent is False else paths

    def _are_wanted(self, paths: Sequence[str]) -> bool:
        """Says whether the user's words or the plan name all these files."""
        state = self._session.state
        texts = [message.text for message in state.messages if message.role == "user"]
        texts += [step.text for step in state.plan.steps] if state.plan else []
        return all(any(path.rpartition("/")[2] in text for text in texts) for path in paths)

    def _announce(self) -> None:
        self._session.emit(Waiting(why=say("wait.proof", seconds=round(self._proof.settings.seconds))))

    def _told(self, result: ActionResult, names: Sequence[str]) -> ActionResult:
        language, files = self._session.state.language, ", ".join(names)
        if result.check and (result.check.kind == "tests" or not self._are_wanted(names)):
            why = note(language, "tests_weakened", check=result.check.check, files=files)
            doubted_check = result.check.model_copy(update={"ok": None, "weakened": tuple(names)})
            return result.model_copy(update={"check": doubted_check, "for_model": f"{result.for_model}\n{why}"})
        # Settings that the user has named are the work itself. If a criterion asks for such a file, the criterion
        # decides whether the file is the check or the work.
        return result.model_copy(update={"altered": tuple(names)})
