"""Tries out a small model's code, if a command may run without a question. The model gets an error immediately."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.led.parts import parts
from duckflow.agent.policies.policy import Loop, Policy, TurnSoFar
from duckflow.errors import DuckflowError
from duckflow.forms.bodies import clean_body
from duckflow.forms.form import ParsedReply
from duckflow.i18n.template import render
from duckflow.state.action import RUN_COMMAND, WRITE_FILE, Action, Decision, TaskProfile
from duckflow.state.message import PromptMessage
from duckflow.state.phase import Phase

SECONDS = 20
SCRIPT = "try.py"
SCRIPT_TOKENS = 500
END = "END_OF_TRY"
MENDS = 2
FRAME = re.compile(r'File "([^"\n]+)", line (\d+)[^\n]*\n[ \t]+(?![ \t]|File ")([^\n]*)')
WELL = "exit code 0"
TIMED_OUT = "Timed out"


class Trial:
    """Runs a command. If it fails inside a file that the model has just written, the model mends the file."""

    def __init__(self, dispatcher: Dispatcher, bodies: Bodies, actor: Actor) -> None:
        self._dispatcher = dispatcher
        self._bodies = bodies
        self._actor = actor

    async def run(self, turn: TurnSoFar, action: Action, paths: Sequence[str]) -> Loop:
        """Runs the command, mends the file and repeats both. Returns the last run, and the fault that remains. Nothing
        is mended if the user would have to be asked before the command runs again."""
        dispatched, endless_note = await self.do(action), turn.note("endless")
        for _ in range(MENDS):
            path, fault = _blamed(paths, dispatched, endless_note)
            if not fault or not await self.may_run(action):
                break
            if not (text := await self._bodies.mended(path, fault)):
                break
            why = turn.note("mends", path=path, fault=fault)
            await self.do(Action(operation=WRITE_FILE, args={"path": path, "content": text}, reasoning=why))
            dispatched = await self.do(action)
        has_run_well = _output(dispatched).startswith(WELL)
        return Loop(made_up(action), dispatched, tried=has_run_well, fault=_blamed(paths, dispatched, endless_note)[1])

    async def may_run(self, action: Action) -> bool:
        """Says whether the command would run without a question."""
        return await self._dispatcher.free(action, self._actor)

    async def do(self, action: Action) -> Dispatched:
        return await self._dispatcher.run(ParsedReply(made_up(action)), self._actor)


def made_up(action: Action) -> Decision:
    """Makes up a Decision (a reply with actions) that contains this action. The model need not write one, because the
    request itself asks for the action."""
    return Decision.made_up(action.reasoning, [action], TaskProfile.FILE_OPERATION, Phase.EXECUTION)


def _blamed(paths: Sequence[str], done: Dispatched, endless: str) -> tuple[str, str]:
    """Returns the file in which a run has failed, and the error."""
    faults = ((path, fault_of(path, _output(done), endless)) for path in paths if path.endswith(".py"))
    return next(((path, fault) for path, fault in faults if fault), ("", ""))


def _output(done: Dispatched) -> str:
    return "\n".join(result.for_model for result in done.results)


class TryOut(Policy):
    """Runs a Python file that the model has just written, unless the request asks for a run anyway."""

    def __init__(self, bodies: Bodies, trial: Trial) -> None:
        self._bodies = bodies
        self._trial = trial

    async def after(self, turn: TurnSoFar) -> None:
        loop, owed_parts = turn.last, parts(turn.wish, turn.state.language).owed
        write_actions = [action for action in loop.decision.actions if action.operation == WRITE_FILE]
        if len(write_actions) != 1 or loop.done.stop or not loop.done.ran(WRITE_FILE):
            return
        path = str(write_actions[0].args.get("path", ""))
        orders_run = any(part.kind == "run" for part in owed_parts)
        if path.endswith(".py") and not orders_run and await self._trial.may_run(_trial(turn, path, "print()")):
            await self._try(turn, path)

    async def _try(self, turn: TurnSoFar, path: str) -> None:
        """Finds out what is wrong in the file itself. A mistake in the script that calls the file's code does not
        count."""
        try:
            script = await self._script_for(path, turn.state.language)
        except DuckflowError:
            return
        if script and END not in script:
            trial_loop = await self._trial.run(turn, _trial(turn, path, script), (path,))
            turn.last.tried, turn.last.fault = trial_loop.tried, trial_loop.fault

    async def _script_for(self, path: str, language: str) -> str:
        """Asks the model for a script that calls the code in this file. Returns an empty text if the model's last text
        was for another file."""
        if (written_body := self._bodies.last_for(path)) is None:
            return ""
        request = render(language, "body_try", module=PurePosixPath(path).stem)
        messages = PromptMessage("assistant", f"```\n{written_body.text}```"), PromptMessage("user", request)
        reply = await self._bodies.call((*written_body.prompt, *messages), SCRIPT, SCRIPT_TOKENS)
        return clean_body(reply.text, SCRIPT).text if reply.finish == "stop" else ""


def fault_of(path: str, output: str, endless: str) -> str:
    """Returns the error in a traceback that ends in `path`, or `endless` if the run took too long. An error that the
    code raises on purpose does not count."""
    name = PurePosixPath(path).name
    if TIMED_OUT in output:
        return endless
    frames = FRAME.findall(output)
    if not frames or PurePosixPath(frames[-1][0]).name != name or frames[-1][2].startswith("raise "):
        return ""
    _, number, line = frames[-1]
    error = output[output.rfind(line) + len(line) :].strip().split("\n")
    message = next(
        (error_line for error_line in error if re.match(r"\w+(?:\.\w+)*(?:Error|Exception|Interrupt)\b", error_line)),
        "",
    )
    return f"line {number}: {line.strip()}: {message}" if message else ""


def _trial(turn: TurnSoFar, path: str, script: str) -> Action:
    folder = PurePosixPath(path).parent.as_posix()
    path_setup = "" if folder == "." else f"import sys; sys.path.insert(0, {folder!r})\n"
    command = f"python3 -B - <<'{END}'\n{path_setup}{script.rstrip()}\n{END}"
    args = {"command": command, "timeout_seconds": SECONDS}
    return Action(operation=RUN_COMMAND, args=args, reasoning=turn.note("tries", path=path))
