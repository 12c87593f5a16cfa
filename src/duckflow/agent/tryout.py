"""A small model's code is tried out, where a command may run without asking; an error goes back to it at once."""

import re
from pathlib import PurePosixPath

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.errors import DuckflowError
from duckflow.llm.decision import Reading
from duckflow.state.action import RUN_COMMAND, WRITE_FILE, Action, Decision

SECONDS = 20
END = "END_OF_TRY"
MENDS = 2
FRAME = re.compile(r'File "([^"\n]+)", line (\d+)[^\n]*\n[ \t]+(?![ \t]|File ")([^\n]*)')
WELL = "exit code 0"
TIMED_OUT = "Timed out"


class TryOut:
    """Dispatches as the Dispatcher does; then runs what was written, if it is Python and the model is a small one."""

    def __init__(self, dispatcher: Dispatcher, bodies: Bodies, actor: Actor) -> None:
        self._dispatcher = dispatcher
        self._bodies = bodies
        self._actor = actor

    async def run(self, reading: Reading) -> Dispatched:
        done = await self._dispatcher.run(reading, self._actor)
        written = [action for action in reading.decision.actions if action.operation == WRITE_FILE]
        if len(written) == 1 and done.ran(WRITE_FILE) and not done.stop:
            path = str(written[0].args.get("path", ""))
            if path.endswith(".py"):
                await self._try(path, reading.decision, done)
        return done

    async def _try(self, path: str, decision: Decision, done: Dispatched) -> None:
        """Find out what is wrong inside the file itself; a mistake in the trying script says nothing about it."""
        if not await self._dispatcher.free(_trial(path, "print()")):
            return
        try:
            script = await self._bodies.script_for(path)
        except DuckflowError:
            return
        if not script or END in script:
            return
        output = await self._tried(path, script, decision)
        for _ in range(MENDS):
            if not (fault := fault_of(path, output)) or not (text := await self._bodies.mended(path, fault)):
                break
            why = f"mend {path}: {fault}"
            await self._do(Action(operation=WRITE_FILE, args={"path": path, "content": text}, reasoning=why), decision)
            output = await self._tried(path, script, decision)
        done.tried, done.fault = output.startswith(WELL), fault_of(path, output)

    async def _tried(self, path: str, script: str, decision: Decision) -> str:
        tried = await self._do(_trial(path, script), decision)
        return "\n".join(result.for_model for result in tried.results)

    async def _do(self, action: Action, decision: Decision) -> Dispatched:
        reading = Reading(decision.model_copy(update={"actions": [action]}))
        return await self._dispatcher.run(reading, self._actor)


def fault_of(path: str, output: str) -> str:
    """The error in a traceback that ends in `path`; one that the code raises on purpose is none."""
    name = PurePosixPath(path).name
    if TIMED_OUT in output:
        return "it does not come to an end"
    frames = FRAME.findall(output)
    if not frames or PurePosixPath(frames[-1][0]).name != name or frames[-1][2].startswith("raise "):
        return ""
    _, number, line = frames[-1]
    error = output[output.rfind(line) + len(line) :].strip().split("\n")
    message = next((one for one in error if re.match(r"\w+(?:\.\w+)*(?:Error|Exception|Interrupt)\b", one)), "")
    return f"line {number}: {line.strip()}: {message}" if message else ""


def _trial(path: str, script: str) -> Action:
    folder = PurePosixPath(path).parent.as_posix()
    ready = "" if folder == "." else f"import sys; sys.path.insert(0, {folder!r})\n"
    command = f"python3 -B - <<'{END}'\n{ready}{script.rstrip()}\n{END}"
    args = {"command": command, "timeout_seconds": SECONDS}
    return Action(operation=RUN_COMMAND, args=args, reasoning=f"try {path} out")
