"""The searches and commands of the conversation that a step is shown, as far as they still hold."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from duckflow.i18n.template import quoted
from duckflow.safety.path_names import shown_line
from duckflow.safety.secrets import mask
from duckflow.state.action import GREP, RUN_COMMAND, Action
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.ports import Folder
from duckflow.tools.plan.step_context import FILE_NAME, files_of

LONGEST_RESULT = 6000
CUT = 300
"""A search cuts lines that are longer."""
NUMBERED = re.compile(r"(\d+)[:-](.*)")


class SeenResult(NamedTuple):
    """A call of the conversation and what it brought."""

    call: str
    text: str

    def quoted(self, language: str) -> str:
        return quoted(language, self.call, self.text)


def results(state: AgentState, plan: Plan, step: Step, folder: Folder, room: int) -> list[SeenResult]:
    """What is about the step's files comes first, then what is about the plan's files; of each the latest. The output
    of a command holds while no file has changed since; a line that a search brought holds while the file has it."""
    own = set(files_of(plan, step))
    named = own.union(*(files_of(plan, other) for other in plan.steps), FILE_NAME.findall(plan.goal))
    seen = dict[str, tuple[int, SeenResult]]()
    for message, action in _answered(state):
        call = f"{action.operation} {', '.join(str(value) for value in action.args.values())}"
        rank = next((rank for rank, names in enumerate((own, named)) if _is_about(names, f"{call}\n{message.text}")), 2)
        if call not in seen and rank < 2:
            text = message.text if action.operation == RUN_COMMAND else "\n".join(_still_there(message.text, folder))
            stale = action.operation == RUN_COMMAND and folder.changed_since(message.at)
            seen[call] = rank, SeenResult(call, "" if stale else mask(text).text.strip())
    chosen: list[SeenResult] = []
    for _, result in sorted(seen.values(), key=lambda pair: pair[0]):
        if result.text and len(result.text) <= min(room, LONGEST_RESULT):
            room -= len(result.text)
            chosen.append(result)
    return chosen


def _answered(state: AgentState) -> Iterator[tuple[Message, Action]]:
    """Gives the searches and commands of the conversation with their results, the latest first."""
    replies = [message.decision for message in state.messages if message.decision and not message.job]
    calls = {action.action_id: action for reply in replies for action in reply.actions}
    for message in reversed(state.messages):
        action = calls.get(message.answers)
        if action and action.operation in (GREP, RUN_COMMAND) and not message.job:
            yield message, action


def _is_about(names: set[str], text: str) -> bool:
    return any(name.rpartition("/")[2] in text for name in names)


def _still_there(text: str, folder: Folder) -> Iterator[str]:
    """Gives the lines that a search brought, below the names of their files, without those that are no longer so. A
    name stands at the beginning and after each empty line; of a file that is gone nothing is left."""
    heading, lines, named = "", list[str](), True
    for line in text.split("\n"):
        numbered = None if named else NUMBERED.fullmatch(line)
        if named:
            heading, lines = line, folder.text(line).replace("\r\n", "\n").split("\n")
        elif numbered and 0 < int(numbered[1]) <= len(lines) and _same(numbered[2], lines[int(numbered[1]) - 1]):
            yield from filter(None, (heading, line))
            heading = ""
        named = not line


def _same(quoted: str, line: str) -> bool:
    """Whether a quoted line is the file's own: the whole of it, or the beginning where a search had cut it."""
    now = shown_line(line)
    return quoted == now or (len(quoted) >= CUT and now.startswith(quoted))
