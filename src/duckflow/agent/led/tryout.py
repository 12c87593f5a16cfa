"""A small model's code is tried out, where a command may run without asking; an error goes back to it at once."""

import re
from pathlib import PurePosixPath

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.policies.policy import Policy, TurnSoFar
from duckflow.errors import DuckflowError
from duckflow.forms.bodies import clean_body
from duckflow.forms.form import Reading
from duckflow.i18n.template import render
from duckflow.state.action import RUN_COMMAND, WRITE_FILE, Action
from duckflow.state.message import PromptMessage

SECONDS = 20
SCRIPT = "try.py"
SCRIPT_TOKENS = 500
END = "END_OF_TRY"
MENDS = 2
FRAME = re.compile(r'File "([^"\n]+)", line (\d+)[^\n]*\n[ \t]+(?![ \t]|File ")([^\n]*)')
WELL = "exit code 0"
TIMED_OUT = "Timed out"


class TryOut(Policy):
    """Runs what was written, if it is Python. What that shows is noted with the loop."""

    def __init__(self, dispatcher: Dispatcher, bodies: Bodies, actor: Actor) -> None:
        self._dispatcher = dispatcher
        self._bodies = bodies
        self._actor = actor

    async def after(self, turn: TurnSoFar) -> None:
        loop = turn.last
        written = [action for action in loop.decision.actions if action.operation == WRITE_FILE]
        if len(written) != 1 or loop.done.stop or not loop.done.ran(WRITE_FILE):
            return
        path = str(written[0].args.get("path", ""))
        if path.endswith(".py") and await self._dispatcher.free(_trial(turn, path, "print()")):
            await self._try(turn, path)

    async def _try(self, turn: TurnSoFar, path: str) -> None:
        """Find out what is wrong inside the file itself; a mistake in the trying script says nothing about it."""
        try:
            script = await self._script_for(path, turn.state.language)
        except DuckflowError:
            return
        if not script or END in script:
            return
        endless = turn.note("endless")
        output = await self._tried(turn, path, script)
        for _ in range(MENDS):
            fault = fault_of(path, output, endless)
            if not fault or not (text := await self._bodies.mended(path, fault)):
                break
            why = turn.note("mends", path=path, fault=fault)
            await self._do(turn, Action(operation=WRITE_FILE, args={"path": path, "content": text}, reasoning=why))
            output = await self._tried(turn, path, script)
        turn.last.tried, turn.last.fault = output.startswith(WELL), fault_of(path, output, endless)

    async def _script_for(self, path: str, language: str) -> str:
        """A script that calls what was just written, by the model; nothing when that was another file's."""
        if (written := self._bodies.last_for(path)) is None:
            return ""
        asked = render(language, "body_try", module=PurePosixPath(path).stem)
        told = PromptMessage("assistant", f"```\n{written.text}```"), PromptMessage("user", asked)
        reply = await self._bodies.call((*written.prompt, *told), SCRIPT, SCRIPT_TOKENS)
        return clean_body(reply.text, SCRIPT).text if reply.finish == "stop" else ""

    async def _tried(self, turn: TurnSoFar, path: str, script: str) -> str:
        tried = await self._do(turn, _trial(turn, path, script))
        return "\n".join(result.for_model for result in tried.results)

    async def _do(self, turn: TurnSoFar, action: Action) -> Dispatched:
        reading = Reading(turn.last.decision.model_copy(update={"actions": [action]}))
        return await self._dispatcher.run(reading, self._actor)


def fault_of(path: str, output: str, endless: str) -> str:
    """The error in a traceback that ends in `path`; one that the code raises on purpose is none."""
    name = PurePosixPath(path).name
    if TIMED_OUT in output:
        return endless
    frames = FRAME.findall(output)
    if not frames or PurePosixPath(frames[-1][0]).name != name or frames[-1][2].startswith("raise "):
        return ""
    _, number, line = frames[-1]
    error = output[output.rfind(line) + len(line) :].strip().split("\n")
    message = next((one for one in error if re.match(r"\w+(?:\.\w+)*(?:Error|Exception|Interrupt)\b", one)), "")
    return f"line {number}: {line.strip()}: {message}" if message else ""


def _trial(turn: TurnSoFar, path: str, script: str) -> Action:
    folder = PurePosixPath(path).parent.as_posix()
    ready = "" if folder == "." else f"import sys; sys.path.insert(0, {folder!r})\n"
    command = f"python3 -B - <<'{END}'\n{ready}{script.rstrip()}\n{END}"
    args = {"command": command, "timeout_seconds": SECONDS}
    return Action(operation=RUN_COMMAND, args=args, reasoning=turn.note("tries", path=path))
