"""The context of a step beside the files: a summary of the work before it, and what searches and commands have shown.
Its size is limited, however many steps are done already."""

import sys
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

from duckflow.i18n.template import note, quoted
from duckflow.state.action import GREP, RUN_COMMAND, Action
from duckflow.state.agent import AgentState
from duckflow.state.data import shorten
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.folder import WorkFolder, made_by
from duckflow.tools.plan.plan_talk import PlanTalk
from duckflow.tools.plan.step_files import FILE_NAME, StepFiles, files_of
from duckflow.tools.plan.step_pieces import NUMBERED, FilePiece, shows

LONGEST_RESULT = 6000


class SeenResult(NamedTuple):
    """A call of the conversation and its result."""

    call: str
    text: str

    def quoted(self, language: str) -> str:
        return quoted(language, self.call, self.text)


def results(
    state: AgentState,
    plan: Plan,
    step: Step,
    talk: PlanTalk,
    folder: WorkFolder,
    room: int,
    files: Sequence[FilePiece],
) -> list[SeenResult]:
    """Returns results from the talk about the plan: those about the step's files first, then those about the plan's
    files. Of equal calls only the latest counts. A result loses what has changed since, what the quoted `files` show
    already, and lines that concern other steps."""
    step_files, quoted_lines = StepFiles(plan, step, (piece.path for piece in files)), _lines_in(files)

    def is_wanted(path: str, number: int) -> bool:
        return number not in quoted_lines.get(path, range(0)) and step_files.share(path) == "all"

    own_files = set(files_of(plan, step))
    named_files = own_files.union(*(files_of(plan, other) for other in plan.steps), FILE_NAME.findall(plan.goal))
    results_by_call = dict[str, tuple[int, SeenResult]]()
    for message, action in _answered(state):
        call = f"{action.operation} {', '.join(str(value) for value in action.args.values())}"
        rank = next(
            (
                rank
                for rank, names in enumerate((own_files, named_files))
                if _is_about(names, f"{call}\n{message.text}")
            ),
            2,
        )
        if call not in results_by_call and rank < 2 and message.turn >= talk.first_turn:
            is_command_output = action.operation == RUN_COMMAND
            text = message.text if is_command_output else "\n".join(_still_there(message.text, folder, is_wanted))
            is_stale = is_command_output and folder.changed_since(message.at)
            results_by_call[call] = rank, SeenResult(call, "" if is_stale else text.strip())
    chosen_results: list[SeenResult] = []
    for _, result in sorted(results_by_call.values(), key=lambda pair: pair[0]):
        if result.text and len(result.text) <= min(room, LONGEST_RESULT):
            room -= len(result.text)
            chosen_results.append(result)
    return chosen_results


def _answered(state: AgentState) -> Iterator[tuple[Message, Action]]:
    """Yields the searches and commands of the conversation with their results, the latest first."""
    replies = [message.decision for message in state.messages if message.decision and not message.job]
    calls = {action.action_id: action for reply in replies for action in reply.actions}
    for message in reversed(state.messages):
        action = calls.get(message.answers)
        if action and action.operation in (GREP, RUN_COMMAND) and not message.job:
            yield message, action


def _is_about(names: set[str], text: str) -> bool:
    return any(name.rpartition("/")[2] in text for name in names)


def _lines_in(files: Sequence[FilePiece]) -> dict[str, Container[int]]:
    """Returns the numbers of the lines that the pieces hold, by file."""
    numbers_by_path = dict[str, Container[int]]()
    for path in {piece.path for piece in files}:
        pieces_of_file = [piece for piece in files if piece.path == path]
        numbers = {number for piece in pieces_of_file for number in range(piece.first, piece.last + 1)}
        numbers_by_path[path] = numbers if all(piece.first for piece in pieces_of_file) else range(sys.maxsize)
    return numbers_by_path


def _still_there(text: str, folder: WorkFolder, is_wanted: Callable[[str, int], bool]) -> Iterator[str]:
    """Yields the wanted lines of a search result, below the names of their files, without lines that have changed. In
    the text, a file's name stands at the beginning and after each empty line. A file that is gone is left out."""
    heading, path, lines, is_heading = "", "", list[str](), True
    for line in text.split("\n"):
        number_match = None if is_heading else NUMBERED.fullmatch(line)
        if is_heading:
            heading, path, lines = line, line, folder.text(line).replace("\r\n", "\n").split("\n")
        elif (
            number_match
            and 0 < int(number_match[1]) <= len(lines)
            and shows(number_match[3], lines[int(number_match[1]) - 1])
            and is_wanted(path, int(number_match[1]))
        ):
            yield from filter(None, (heading, line))
            heading = ""
        is_heading = not line


STEPS_TOLD = 6
FILES_TOLD = 8
FOUND_TOLD = 400


def left_behind(plan: Plan, step: Step, language: str) -> str:
    """Describes the work that earlier steps left behind: the steps that this one depends on, the latest ones, and those
    for which a wish came too late, each with its files, its evidence, and such a wish."""
    done_steps = [other for other in plan.steps if other.status == "completed" and other.step_id != step.step_id]
    needed_steps = [other for other in done_steps if other.step_id in step.depends_on]
    ordered_ids = dict.fromkeys(other.step_id for other in [*needed_steps, *reversed(done_steps)])
    chosen_ids = {*list(ordered_ids)[:STEPS_TOLD], *(other.step_id for other in done_steps if other.open_words)}
    return "; ".join(_left_by(other, language) for other in done_steps if other.step_id in chosen_ids)


def _left_by(step: Step, language: str) -> str:
    open_wish = note(language, "wish_too_late", words=" / ".join(step.open_words)) if step.open_words else ""
    results = [*made_by(step)[:FILES_TOLD], *filter(None, (step.evidence, shorten(step.found, FOUND_TOLD), open_wish))]
    return f"{step.name} ({', '.join(results)})"


def failures(step: Step, language: str) -> list[str]:
    """Quotes the results of the tasks that failed."""
    failed_tasks = [task for task in step.tasks if task.status == "failed"]
    return [quoted(language, note(language, "failed_task", task=task.line), task.result or "") for task in failed_tasks]
