"""Makes a small model do every part of the request. The user is told which parts remain undone."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from duckflow.agent.actor import Actor
from duckflow.agent.led.parts import OwedPart, RequestParts, parts, program_for
from duckflow.agent.led.plain_answer import PlainAnswer
from duckflow.agent.led.tryout import Trial, made_up
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Guidance, Loop, Policy, TurnSoFar
from duckflow.agent.thinker import Narrow
from duckflow.events.types import Noticed
from duckflow.i18n.words import search
from duckflow.safety.secrets import secret_name
from duckflow.state.action import (
    READ_FILE,
    RESPOND,
    RUN_COMMAND,
    WRITE_FILE,
    Action,
    ActionResult,
    Operation,
    exit_code,
)
from duckflow.state.data import Phrase, say

READERS = 2
"""The number of loops in which a small model may only read. After these it has to write."""
FAILURES = 2
"""The number of failed tries after which a small model may talk about the failures instead of trying again."""
TRIES = 3
"""The number of loops without progress after which the model is no longer reminded of a part."""


class OwedParts(Policy):
    """Runs the commands of a request without asking the model, and has the model do the other parts in the order of the
    request, with one reminder of each. The turn is over with the last part, because a small model would only talk
    on."""

    def __init__(
        self, trial: Trial, answers: PlainAnswer, actor: Actor, phases: Phases, tests: Callable[[], str]
    ) -> None:
        """`tests` returns the command that runs the project's tests, if it has any."""
        self._trial = trial
        self._answers = answers
        self._actor = actor
        self._phases = phases
        self._tests = tests
        self._begin(RequestParts())

    def _begin(self, asked_for: RequestParts) -> None:
        self._asked_for = asked_for
        self._open = list(asked_for.owed)
        self._left: list[OwedPart] = []
        self._changed: list[str] = []
        self._seen: set[str] = set()
        self._ran: tuple[str, int] | None = None
        self._reminded: list[OwedPart] = []
        self._asked_plainly: list[OwedPart] = []
        self._refused = self._answered = False
        self._failures = self._looks = self._idle = 0

    async def opening(self, turn: TurnSoFar) -> Ending | None:
        self._begin(parts(turn.wish, turn.state.language))
        if not self._asked_for.whole or turn.state.plan is not None:
            return None
        if ending := await self._do_next(turn):
            return ending
        return None if self._open else self._over(turn)

    async def heard(self, message: str) -> None:
        further_parts = parts(message)
        if search("requests.turns_around", message):
            self._begin(further_parts)
        else:
            self._asked_for = RequestParts(
                (*self._asked_for.owed, *further_parts.owed), self._asked_for.whole and further_parts.whole
            )
            self._open += further_parts.owed

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        if not self._held or turn.state.plan is not None:
            return None
        first_part, files = self._open[0], self._files()
        # Other work may have to come first, so the model is reminded of a part only after it has said that it is done.
        if first_part.kind != "write" and not self._asked_for.whole and first_part not in self._reminded:
            return None
        self._idle += 1
        match first_part.kind:
            case "write" if files:
                narrow_operations = partial(_held_to_writing, paths=files, may_look=self._looks < READERS)
                return Guidance(turn.note("owed_write", files=", ".join(files)), narrow_operations)
            case "write":
                narrow_operations = partial(_held_to_writing, paths=(), may_look=self._looks < READERS)
                return Guidance(turn.note("owed_unnamed", words=first_part.words), narrow_operations)
            case "look" | "deed":
                return Guidance(turn.note(f"owed_{first_part.kind}", words=first_part.words), NARROW[first_part.kind])
            case "answer" if turn.loops or self._ran:
                return Guidance(turn.note("owed_answer", words=self._question()), NARROW["answer"])
            case _:
                return None

    async def after(self, turn: TurnSoFar) -> str | Ending | None:
        self._settle(turn.last)
        says_done = turn.last.decision.next_step == "done"
        if turn.state.plan is not None or turn.last.done.stop:
            return None
        if (self._asked_for.whole or self._changed or says_done) and (ending := await self._do_next(turn)):
            return ending
        if self._asked_for.whole and not self._open and not self._refused:
            return self._over(turn)
        return self._reminder(turn) if says_done and self._held else None

    async def closing(self, turn: TurnSoFar, ending: Ending) -> None:
        """Tells the user which parts are not done. The user already knows about parts that they refused or are being
        asked about."""
        if ending.outcome in ("pending_user", "exit") or self._refused or turn.state.plan is not None:
            return
        for part in (*self._left, *self._open):
            if part.kind != "write" or not turn.doubt:
                self._actor.emit(Noticed(what=say(f"left.{part.kind}", what=part.words)))

    @property
    def _held(self) -> bool:
        return bool(self._open) and self._failures < FAILURES and self._idle < TRIES

    def _files(self) -> list[str]:
        return [path for part in self._open if part.kind == "write" for path in part.files]

    def _question(self) -> str:
        return "; ".join(part.words for part in self._leading_answers())

    def _leading_answers(self) -> list[OwedPart]:
        """Returns the parts at the front of the list that ask for an answer. One text answers all of them."""
        first_other = next((index for index, part in enumerate(self._open) if part.kind != "answer"), len(self._open))
        return list(dict.fromkeys(self._open[:first_other]))

    def _reminder(self, turn: TurnSoFar) -> str | None:
        part, files = self._open[0], ", ".join(self._files())
        if part in self._reminded:
            turn.doubt = turn.note("owed_unwritten", files=files) if files else ""
            return None
        self._reminded.append(part)
        return turn.note("owed_said_done", files=files) if files else turn.note("owed_part_said_done", words=part.words)

    def _over(self, turn: TurnSoFar) -> Ending:
        # The review that a failed check asks for has taken place: it was the try-out, and the repairs after it.
        self._phases.finish(turn.checks().failed, reviewed=True)
        return Ending("done", None if self._answered else self._summary(turn))

    def _summary(self, turn: TurnSoFar) -> Phrase | None:
        """Returns a summary of the parts that are done, for a turn in which the model has said nothing."""
        done_parts = [part for part in self._asked_for.owed if part not in (*self._open, *self._left)]
        named_files = [path for part in done_parts if part.kind == "write" for path in part.files]
        written_files = named_files or (self._changed if any(part.kind == "write" for part in done_parts) else [])
        files, deeds = ", ".join(written_files), "; ".join(part.words for part in done_parts if part.kind == "deed")
        if self._ran:
            command, code = self._ran
            return say("turn.written_ran" if files else "turn.ran", files=files, command=command, code=code)
        if files:
            return say("turn.written_tried" if turn.last.tried else "turn.written", files=files)
        return say("turn.parts_done", parts=deeds) if deeds else None

    def _settle(self, loop: Loop) -> None:
        """Updates the open parts by the results of a loop. A refusal settles all of them."""
        results, open_count_before = loop.done.results, len(self._open)
        if loop.done.stop in ("refused", "nobody") and not loop.done.refusal:
            self._refused = loop.done.stop == "refused"
            self._left += self._open
            self._open.clear()
        for result in results:
            self._take(result)
        self._idle = 0 if len(self._open) < open_count_before else self._idle
        # A read that failed, such as of a file that does not exist yet, does not release the model from the part.
        if any(not result.ok and result.effect != "read" for result in results):
            self._failures += 1
        elif not any(result.changed for result in results):
            self._looks += 1

    def _take(self, result: ActionResult) -> None:
        """Updates the open parts by a result. Files may be written in any order; the other parts must be done in the
        order of the request."""
        if result.changed:
            self._changed = list(dict.fromkeys((*self._changed, *result.changed)))
            self._open = [part for part in self._open if part.kind != "write" or not _written(part, result.changed)]
        self._answered = self._answered or (result.ok and result.operation == RESPOND)
        if not self._open or not result.ok:
            return
        match self._open[0]:
            case OwedPart(kind="look") if result.effect == "read":
                del self._open[0]
            case OwedPart(kind="deed") as part if result.effect == "write" and _written(part, result.changed):
                del self._open[0]
            case OwedPart(kind="answer") if result.operation == RESPOND:
                del self._open[: len(self._leading_answers())]
            case _:
                pass

    async def _do_next(self, turn: TurnSoFar) -> Ending | None:
        """Does the next parts for which the model need not choose an action: runs a command, or gives an answer from
        what is known."""
        while self._open:
            first_part = self._open[0]
            if first_part.kind == "run":
                if ending := await self._run(turn, self._open.pop(0)):
                    return ending
            elif first_part.kind != "answer" or not self._asked_for.whole or not await self._answer(turn):
                return None
        return None

    async def _run(self, turn: TurnSoFar, part: OwedPart) -> Ending | None:
        """Runs a command. The user is asked at the Gate (the question before risky actions) as for any other
        command."""
        if not (command := self._command(part, turn)):
            self._left.append(part)
            return None
        action = Action(operation=RUN_COMMAND, args={"command": command}, reasoning=turn.note("owed_run"))
        self._phases.follow(made_up(action))
        loop = await self._trial.run(turn, action, self._changed)
        turn.loops += [loop] if turn.loops else []
        if loop.done.stop == "error":
            self._actor.emit(Noticed(what=say("left.run_failed", what=command)))
            return None
        if not loop.done.ran(RUN_COMMAND):
            self._left.append(part._replace(words=command))
            return Ending("gate", self._summary(turn)) if loop.done.stop == "refused" else None
        code = next((exit_code(result) for result in reversed(loop.done.results)), None)
        self._ran = (command, code) if code is not None else self._ran
        return None

    async def _answer(self, turn: TurnSoFar) -> bool:
        if self._open[0] in self._asked_plainly:
            return False
        self._asked_plainly.append(self._open[0])
        await self._show_changed(turn)
        if (loop := await self._answers.give(turn, self._question())) is None:
            return False
        turn.loops += [loop] if turn.loops else []
        for result in loop.done.results:
            self._take(result)
        return True

    def _command(self, part: OwedPart, turn: TurnSoFar) -> str:
        """Returns the command for a part that wants something run; an empty text if no command is known."""
        if part.command or part.unclear:
            return part.command
        if part.tests and (command := self._tests()):
            return command
        folder = Path(turn.state.folder)
        named_files = [path for path in part.files if (folder / path).is_file()]
        changed_programs = [path for path in reversed(self._changed) if (folder / path).is_file() and program_for(path)]
        matching_files = [path for path in changed_programs if not part.files or _same(part.files[0], (path,))]
        path = next(iter(named_files or (matching_files if not part.tests else [])), "")
        if not path:
            return ""
        is_test = path.endswith(".py") and PurePosixPath(path).name.startswith("test_")
        return f"{'python3 -m pytest -q' if is_test else program_for(path)} {shlex.quote(path)}"

    async def _show_changed(self, turn: TurnSoFar) -> None:
        """Reads the changed files, so that the model sees them as they are before it speaks about them."""
        folder = Path(turn.state.folder)
        existing_files = [path for path in self._changed if not secret_name(path) and (folder / path).is_file()]
        for path in existing_files:
            if path not in self._seen:
                self._seen.add(path)
                why = turn.note("files_named")
                await self._trial.do(Action(operation=READ_FILE, args={"path": path}, reasoning=why))


def _held_to_writing(operations: Iterable[Operation], paths: Sequence[str], may_look: bool) -> list[Operation]:
    """Returns only the operation that writes these files; also those that read, if the model may still look around."""
    return [
        held_to(operation, path=paths) if operation.name == WRITE_FILE and paths else operation
        for operation in operations
        if operation.name == WRITE_FILE or (may_look and operation.effect == "read")
    ]


def _only(operations: Iterable[Operation], wanted: Callable[[Operation], bool]) -> list[Operation]:
    """Returns only the wanted operations; all of them if none is wanted."""
    offered_operations = list(operations)
    return [operation for operation in offered_operations if wanted(operation)] or offered_operations


NARROW: dict[str, Narrow] = {
    "look": partial(_only, wanted=lambda operation: operation.effect == "read"),
    "deed": partial(_only, wanted=lambda operation: operation.effect == "write" and operation.name != WRITE_FILE),
    "answer": partial(_only, wanted=lambda operation: operation.name == RESPOND),
}


def _written(part: OwedPart, changed: Sequence[str]) -> bool:
    return any(_same(path, changed) for path in part.files) if part.files else bool(changed)


def _same(path: str, changed: Iterable[str]) -> bool:
    """Says whether the path is among the changed paths. A name without a folder matches that name in any folder."""
    return any(f"/{name}".endswith(f"/{path.removeprefix('./')}") for name in changed)


def held_to(operation: Operation, **values: Sequence[str]) -> Operation:
    """Returns the operation with some of its arguments restricted to these values."""
    fixed_properties = {name: {"type": "string", "enum": list(texts)} for name, texts in values.items()}
    properties = {**operation.parameters.get("properties", {}), **fixed_properties}
    return operation.model_copy(update={"parameters": {**operation.parameters, "properties": properties}})
