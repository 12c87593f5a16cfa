"""The context of a step: a summary of the work before it, and the files it builds on. Its size is limited, however many
steps are done already."""

import posixpath
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from duckflow.i18n.template import note, quoted
from duckflow.safety.path_names import shown_line
from duckflow.safety.secrets import mask, secret_name
from duckflow.state.action import GREP, PROPOSE_PLAN, READ_FILE, RUN_COMMAND, Action
from duckflow.state.agent import AgentState
from duckflow.state.data import shorten, tables, text_of
from duckflow.state.message import AT_GATE, Message
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.folder import WorkFolder, made_by
from duckflow.tools.plan.step_files import FILE_NAME, StepFiles, files_of, names_path

LONGEST_RESULT = 6000
CUT = 300
"""The length at which a search cuts lines."""
NUMBERED = re.compile(r"(\d+)[:-](.*)")


class SeenResult(NamedTuple):
    """A call of the conversation and its result."""

    call: str
    text: str

    def quoted(self, language: str) -> str:
        return quoted(language, self.call, self.text)


def results(
    state: AgentState, plan: Plan, step: Step, folder: WorkFolder, room: int, files: "Sequence[FilePiece]"
) -> list[SeenResult]:
    """Returns results of the conversation about the step's files first, then about the plan's files. Of equal calls
    only the latest counts. A result loses what has changed since, what the quoted `files` show already, and lines that
    concern other steps."""
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
        if call not in results_by_call and rank < 2:
            is_command_output = action.operation == RUN_COMMAND
            text = message.text if is_command_output else "\n".join(_still_there(message.text, folder, is_wanted))
            is_stale = is_command_output and folder.changed_since(message.at)
            results_by_call[call] = rank, SeenResult(call, "" if is_stale else mask(text).text.strip())
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


def _lines_in(files: "Sequence[FilePiece]") -> dict[str, Container[int]]:
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
            and _same(number_match[2], lines[int(number_match[1]) - 1])
            and is_wanted(path, int(number_match[1]))
        ):
            yield from filter(None, (heading, line))
            heading = ""
        is_heading = not line


def _same(quoted: str, line: str) -> bool:
    """Says whether the file still has a line as it was quoted: the whole line, or its beginning if the search had cut
    it."""
    current_line = shown_line(line)
    return quoted == current_line or (len(quoted) >= CUT and current_line.startswith(quoted))


MENTION = "@"
NEAR = 400
SMALL_GAP = 2
LEAST_RUN = 5
"""The smallest number of neighbouring lines that are recognized after they have moved. Fewer lines may be the same by
chance."""


class FilePiece(NamedTuple):
    """Lines of a file as they are now."""

    path: str
    text: str
    first: int = 0
    """The number of the first line of the piece; 0 if the piece is the whole file."""
    last: int = 0
    total: int = 0

    def quoted(self, language: str) -> str:
        lines = {"first": str(self.first), "last": str(self.last), "total": str(self.total)}
        source_name = note(language, "piece_of_file", path=self.path, **lines) if self.first else self.path
        return quoted(language, source_name, self.text)


def pieces(state: AgentState, plan: Plan, step: Step, folder: WorkFolder, room: int) -> list[FilePiece]:
    """Returns the step's own files, whole where there is room. Then follow the other files that the conversation has
    read for the plan, first those that the step names."""
    texts = _Texts(folder)
    written_lines, read_lines = _lines_written(plan, texts), _lines_read(state, plan, texts)
    step_files = StepFiles(plan, step, [*written_lines, *read_lines])
    chosen_pieces: list[FilePiece] = []
    for path in files_of(plan, step):
        text = texts.text(path) if step_files.share(path) == "all" else ""
        text = mask(text).text if len(text) <= room else ""
        if text.strip():
            room -= len(text)
            chosen_pieces.append(FilePiece(path, text))
    lines_by_path = {path: numbers for path, numbers in read_lines.items() if step_files.share(path) == "all"}
    for path, numbers in written_lines.items():
        if step_files.share(path) != "none":
            lines_by_path.setdefault(path, set()).update(numbers)
    paths = sorted(
        lines_by_path.keys() - {piece.path for piece in chosen_pieces},
        key=lambda path: _rank(path, plan, step, lines_by_path),
    )
    # A step builds on the lines that were written before it, which are few compared with the lines that were read.
    for path in sorted(paths, key=lambda path: path not in written_lines):
        lines = texts.lines(path)
        for run in _runs(lines_by_path[path]):
            piece = _cut(path, lines, run, room)
            if piece:
                room -= len(piece.text)
                chosen_pieces.append(piece)
    return chosen_pieces


class _Texts:
    """Reads each file once. A file that may hold secrets is empty here. Parts of other files must still be masked when
    they are shown: masking all of a long file would take too long."""

    def __init__(self, folder: WorkFolder) -> None:
        self._folder = folder
        self._read: dict[str, str] = {}
        self._split: dict[str, list[str]] = {}

    def text(self, path: str) -> str:
        if path not in self._read:
            self._read[path] = "" if secret_name(path) else self._folder.text(path)
        return self._read[path]

    def lines(self, path: str) -> list[str]:
        if path not in self._split:
            plain_text = self.text(path).removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
            self._split[path] = plain_text.split("\n")
        return self._split[path]


def _lines_read(state: AgentState, plan: Plan, texts: _Texts) -> dict[str, set[int]]:
    """Returns the indexes of the lines that the conversation has read for the plan and that are still the same, the
    latest file first. A file was read for the plan if the plan names it, or if the plan was proposed in that turn."""
    calls = {
        action.action_id: action.args
        for message in state.messages
        if message.decision
        for action in message.decision.actions
        if action.operation == READ_FILE
    }
    plan_text, turns = " ".join((plan.goal, *(step.text for step in plan.steps))), _turns_of(plan, state)
    numbers_by_path: dict[str, set[int]] = {}
    for message in reversed(state.messages):
        path, offset = _asked_for(message, calls.get(message.answers))
        if not path or not (message.turn in turns or names_path(plan_text, path)):
            continue
        path = posixpath.normpath(path.removeprefix(f"{state.folder.rstrip('/')}/"))
        # The first line names the file. The last one may say that the rest is not shown.
        shown_lines = message.text.split("\n")[1:]
        current_lines = mask("\n".join(texts.lines(path)[offset : offset + len(shown_lines)])).text.split("\n")
        line_pairs = zip(shown_lines, current_lines, strict=False)
        same_count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], line_pairs))
        if same_count and same_count >= len(shown_lines) - 1:
            numbers_by_path.setdefault(path, set()).update(range(offset, offset + same_count))
        elif moved_numbers := _moved(shown_lines, texts.lines(path), offset):
            numbers_by_path.setdefault(path, set()).update(moved_numbers)
    return numbers_by_path


def _moved(shown: list[str], lines: list[str], start: int) -> set[int]:
    """Returns the indexes of runs of lines that are in another place now, because lines near them were added or
    removed."""
    from difflib import SequenceMatcher

    first = max(0, start - NEAR)
    current_lines = mask("\n".join(lines[first : start + len(shown) + NEAR])).text.split("\n")
    blocks = SequenceMatcher(None, shown, current_lines, autojunk=False).get_matching_blocks()
    return {first + block.b + offset for block in blocks if block.size >= LEAST_RUN for offset in range(block.size)}


def _lines_written(plan: Plan, texts: _Texts) -> dict[str, set[int]]:
    """Returns the indexes of the lines that the plan's tasks put into files, as far as the lines are still there."""
    numbers_by_path: dict[str, set[int]] = {}
    done_tasks = [
        task for step in plan.steps for task in step.tasks if task.status == "completed" and len(task.makes) == 1
    ]
    for task in done_tasks:
        path = task.makes[0]
        for new_text in (text_of(edit, "new").strip("\n") for edit in tables(task.args.get("edits"))):
            text = "\n".join(texts.lines(path)) if new_text.strip() else ""
            if new_text.strip() and (offset := text.find(new_text)) >= 0:
                first_line = text.count("\n", 0, offset)
                numbers_by_path.setdefault(path, set()).update(range(first_line, first_line + new_text.count("\n") + 1))
    return numbers_by_path


def _asked_for(message: Message, args: dict[str, object] | None) -> tuple[str, int]:
    """Returns the file that a result shows, and the index of its first line; an empty path for other messages."""
    if message.role == "tool" and message.operation.startswith(MENTION):
        return message.operation.removeprefix(MENTION), 0
    if args is None:
        return "", 0
    start_text = str(args.get("start_line") or "1")
    return str(args.get("path") or ""), max(1, int(start_text)) - 1 if start_text.isdecimal() else 0


def _rank(path: str, plan: Plan, step: Step, read: dict[str, set[int]]) -> tuple[int, int]:
    """Ranks the files that the step names first, then the files of the plan, then all other files in the order they
    were read."""
    named_by_step = names_path(step.text, path)
    named_by_plan = named_by_step or any(
        names_path(text, path) for text in (plan.goal, *(plan_step.text for plan_step in plan.steps))
    )
    return 2 - named_by_step - named_by_plan, list(read).index(path)


def _turns_of(plan: Plan, state: AgentState) -> set[int]:
    """Returns the turns in which the plan was proposed. What was read in them was read for the plan."""
    other_goals = _goals_of_others(plan, state)
    return {message.turn for message in state.messages if set(_proposed_by(message)) - other_goals}


def _runs(numbers: Iterable[int]) -> Iterator[range]:
    """Yields the numbers as ranges. A gap is filled if it is shorter than the heading that another piece would need."""
    begin = end = -1
    for number in sorted(numbers):
        if begin < 0 or number > end + SMALL_GAP:
            if end > begin:
                yield range(begin, end)
            begin = number
        end = number + 1
    if end > begin:
        yield range(begin, end)


def _cut(path: str, lines: list[str], run: range, room: int) -> FilePiece | None:
    """Returns as many lines of the run as there is room for."""
    chosen_lines: list[str] = []
    for number in run:
        room -= len(lines[number]) + 1
        if room < 0:
            break
        chosen_lines.append(lines[number])
    text = mask("\n".join(chosen_lines)).text
    if not text.strip():
        return None
    last_number = run.start + len(chosen_lines)
    is_whole_file = run.start == 0 and last_number == len(lines)
    return FilePiece(path, text) if is_whole_file else FilePiece(path, text, run.start + 1, last_number, len(lines))


STEPS_TOLD = 6
FILES_TOLD = 8
FOUND_TOLD = 400
ANSWERS_TOLD = 3
WISHES_TOLD = 60
LEAST_WISH = 80


def left_behind(plan: Plan, step: Step) -> str:
    """Describes the work that earlier steps left behind: the steps that this one depends on, and the latest ones, each
    with its files and its evidence."""
    done_steps = [other for other in plan.steps if other.status == "completed" and other.step_id != step.step_id]
    needed_steps = [other for other in done_steps if other.step_id in step.depends_on]
    ordered_ids = dict.fromkeys(other.step_id for other in [*needed_steps, *reversed(done_steps)])
    chosen_ids = set(list(ordered_ids)[:STEPS_TOLD])
    return "; ".join(_left_by(other) for other in done_steps if other.step_id in chosen_ids)


def _left_by(step: Step) -> str:
    results = [*made_by(step)[:FILES_TOLD], *filter(None, (step.evidence, shorten(step.found, FOUND_TOLD)))]
    return f"{step.name} ({', '.join(results)})"


def failures(step: Step, language: str) -> list[str]:
    """Quotes the results of the tasks that failed."""
    failed_tasks = [task for task in step.tasks if task.status == "failed"]
    return [quoted(language, note(language, "failed_task", task=task.line), task.result or "") for task in failed_tasks]


def wishes(state: AgentState, plan: Plan, room: int) -> str:
    """Returns the user's wishes and corrections in order. Those from before the latest proposal of another approved
    plan are left out. Short messages are quoted whole; long messages share the room."""
    other_goals = _goals_of_others(plan, state)
    messages: list[str] = []
    for message in state.messages:
        if not other_goals.isdisjoint(_proposed_by(message)):
            messages.clear()
        elif message.role == "user" or message.operation == AT_GATE:
            messages.append(" ".join(message.text.split()))
    messages = messages if len(messages) <= WISHES_TOLD else [messages[0], *messages[1 - WISHES_TOLD :]]
    for shortened_count, number in enumerate(sorted(range(len(messages)), key=lambda number: len(messages[number]))):
        longest_wish = max(LEAST_WISH, room // (len(messages) - shortened_count))
        messages[number] = shorten(messages[number], longest_wish)
        room -= len(messages[number])
    return " / ".join(messages)


def _goals_of_others(plan: Plan, state: AgentState) -> set[str]:
    """Returns the goals of the other plans that were approved."""
    return {other.goal for other in state.plans.values() if other.plan_id != plan.plan_id and other.status != "draft"}


def _proposed_by(message: Message) -> list[str]:
    """Returns the goals of the plans that a reply proposes."""
    actions = message.decision.actions if message.decision else []
    return [
        str(action.args.get("text") or action.args.get("goal"))
        for action in actions
        if action.operation == PROPOSE_PLAN
    ]


def answers_given(state: AgentState) -> str:
    """Returns the latest answers of the model in the conversation, which tell a step what has been found out."""
    decisions = [message.decision for message in state.messages if message.decision]
    answers = [answer for decision in decisions for answer in decision.said() if answer.strip()]
    return " / ".join(shorten(answer, FOUND_TOLD) for answer in answers[-ANSWERS_TOLD:])
