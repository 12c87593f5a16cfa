"""Commands that the user types, beside the turns: slash commands, and `!command` in the user's own shell."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from duckflow.agent.session import Session
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import DuckflowError
from duckflow.events.ports import CommandTable
from duckflow.events.talking import CommandFinished, CommandStarted
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded, OutputStreamed
from duckflow.programs.find import find_program
from duckflow.programs.python_path import user_environment
from duckflow.state.action import Action, ActionResult
from duckflow.state.message import Message
from duckflow.state.noun import shorten
from duckflow.state.phrase import said, say

log = logging.getLogger(__name__)
OPERATION = "user.shell"
SHOWN_COMMAND = 80
HEAD, TAIL, CAUSES = 4000, 8000, 4000
INTERRUPTED = 130
# Nobody could answer a pager.
WITHOUT_PAGER = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


class UserCommands:
    """The table of slash commands is made when the first one is looked for."""

    def __init__(
        self,
        session: Session,
        make_table: Callable[[], CommandTable],
        moved: Callable[[], None],
        undo: UndoKeeper,
    ) -> None:
        """`moved` is called when a command has begun or ended."""
        self._session = session
        self._make_table = make_table
        self._moved = moved
        self._undo = undo
        self._running: set[asyncio.Task[None]] = set()
        self._started = 0
        self._untold: list[tuple[str, str]] = []

    @cached_property
    def table(self) -> CommandTable:
        return self._make_table()

    @property
    def runs(self) -> bool:
        return bool(self._running)

    def start(self, line: str, work: Coroutine[Any, Any, str]) -> None:
        """Carry it out in the background; it is told when it begins, and what it shows when it has ended."""
        self._started += 1
        self._session.emit(CommandStarted(command_id=self._started, line=line))
        task = asyncio.create_task(self._carry_out(self._started, work))
        self._running.add(task)
        task.add_done_callback(self._ended)
        self._moved()

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def rest(self, seconds: float) -> None:
        """Until all are done, but not for ever."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)

    async def run_own(self, command: str) -> int:
        """In the user's own shell, to its end. Nobody asks, since the user typed it. Cancelled, it is ended with
        everything it started, and that is a result too."""
        from duckflow.programs.launch import Launch
        from duckflow.programs.run import run
        from duckflow.tools.shell.output import CommandOutput

        start = time.monotonic()
        output = CommandOutput(HEAD, TAIL, CAUSES, self._show)
        folder = Path(self._session.state.folder)
        shell = find_program(os.environ.get("SHELL", ""), folder) or "/bin/sh"
        async with self._undo.watch(command) as changed:
            try:
                environment = user_environment() | WITHOUT_PAGER
                code = await run(Launch((shell, "-c", command), folder, environment), output.take)
            except asyncio.CancelledError:
                code = INTERRUPTED
            finally:
                output.take(b"", last=True)
                output.leave_screen()
        self._note(command, code, output.text(failed=code != 0), round(time.monotonic() - start, 1), changed)
        return code

    def tell(self) -> None:
        """What was run during a turn is told to the model before the next one: a turn is not talked into."""
        untold, self._untold = self._untold, []
        for source, text in untold:
            message = Message(role="tool", operation=source, text=text, turn=self._session.state.turn)
            self._session.emit(MessageAdded(message=message))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._moved()

    def _show(self, text: str, left_out: int) -> None:
        self._session.emit(OutputStreamed(text=text, left_out=left_out))

    def _note(self, command: str, code: int, output: str, seconds: float, changed: Sequence[str]) -> None:
        """It goes on the record, and the model will know of it: as a quotation."""
        args = {"command": command}
        action = Action(operation=OPERATION, args=args, reasoning="typed by the user", subject="command")
        text = f"exit code {code}\n{output or '(no output)'}"
        result = ActionResult(
            action_id=action.action_id,
            operation=OPERATION,
            ok=code == 0,
            for_model=text,
            for_user=say("shell.finished", command=shorten(command, SHOWN_COMMAND), code=code, seconds=seconds),
            changed=tuple(changed),
            seconds=seconds,
        )
        self._session.emit(ActionStarted(action=action))
        self._session.emit(ActionFinished(result=result))
        self._untold.append((f"!{command}", text))
        if not self._session.state.turn_open:
            self.tell()

    async def _carry_out(self, number: int, work: Coroutine[Any, Any, str]) -> None:
        finished = CommandFinished(command_id=number)
        try:
            finished = CommandFinished(command_id=number, text=await work)
        except DuckflowError as problem:
            finished = CommandFinished(command_id=number, problem=said(problem))
        except Exception:
            # A mistake of ours must not take the conversation with it.
            log.exception("a command broke off")
            finished = CommandFinished(command_id=number, problem=say("turn.broke_off"))
        finally:
            self._session.emit(finished)
