"""Chooses the pieces of files that stand in a step's request: the step's own files, and the lines that the plan has
written or the conversation has seen for it."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from duckflow.i18n.template import note, quoted
from duckflow.safety.path_names import shown_line
from duckflow.safety.secrets import mask
from duckflow.state.action import GREP, READ_FILE, Action
from duckflow.state.agent import AgentState
from duckflow.state.data import tables, text_of
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.folder import WorkFolder, made_by
from duckflow.tools.plan.plan_talk import PlanTalk
from duckflow.tools.plan.step_files import FILE_NAME, StepFiles, files_of, names_path

MENTION = "@"
NEAR = 400
SMALL_GAP = 2
END_GAP = 8
"""The largest number of lines at the end of a file that are added to a piece which ends just before them."""
LEAST_RUN = 5
"""The smallest number of neighbouring lines that are recognized after they have moved. Fewer lines may be the same by
chance."""
LEAST_LINES = 2
"""The fewest lines of a piece that was only read, or that was cut to fit the room."""
SHORT_FILE = 6000
"""The length up to which a step's own file is quoted whole, even if the conversation has seen only parts of it."""
LONGEST_SEARCHED = 400_000
"""The length of the longest file in which definitions are looked for."""
ABOVE, BELOW = 2, 40
"""The numbers of lines that are quoted around a definition which the step names, if they were seen for another
matter."""
CUT = 300
"""The length at which a search cuts lines."""
NUMBERED = re.compile(r"(\d+)([:-])(.*)")
SYMBOL = re.compile(r"(?a)[^\W\d]\w{2,}")
CODE_NAME = re.compile(r"(?a)[^\W\d]\w{2,}(?=\(|`)")
"""A name that stands in a text as code: with a bracket, or at the end of a quotation."""
NOTHING = "(?!)"
"""A pattern that matches nowhere."""
DEFINING = (
    r"(?:\s*(?:export|default|pub|async|static|public|private|protected|final|const|let|var|def|class|function|func|fn"
    r"|type|struct|interface|enum|trait|impl|module)\s+)+{name}\b|{name}\s*[:=(]"
)


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


class SeenLines(NamedTuple):
    """Lines as a result of the conversation showed them, without a gap."""

    path: str
    start: int
    """The index of the first line."""
    lines: list[str]
    turn: int
    is_search: bool = False


def pieces(state: AgentState, plan: Plan, step: Step, talk: PlanTalk, folder: WorkFolder, room: int) -> list[FilePiece]:
    """Returns the step's own files, whole where they are short or little of them was seen. Then follow the lines that
    the plan has written or the conversation has seen for it, first those of files that the step names."""
    texts = _Texts(folder)
    written_lines = _lines_written(plan, texts)
    seen_lines, needed_lines = _lines_seen(state, plan, step, talk, texts)
    step_files = StepFiles(plan, step, [*written_lines, *seen_lines])
    chosen_pieces: list[FilePiece] = []
    for path in files_of(plan, step):
        known_lines = set(needed_lines.get(path, ()))
        if not names_path(step.text, path) and path not in made_by(step):
            known_lines |= written_lines.get(path, set())
        text = texts.text(path) if step_files.share(path) == "all" else ""
        is_in_parts = len(text) > SHORT_FILE and 0 < len(known_lines) < len(texts.lines(path)) / 2
        if is_in_parts or room < len(text) <= LONGEST_SEARCHED:
            needed_lines.setdefault(path, set()).update(_defined(step, texts.lines(path)))
        text = text if len(text) <= room and not is_in_parts else ""
        if text.strip():
            room -= len(text)
            chosen_pieces.append(FilePiece(path, text))
    lines_by_path = {path: numbers for path, numbers in needed_lines.items() if step_files.share(path) == "all"}
    for path, numbers in written_lines.items():
        if step_files.share(path) != "none":
            lines_by_path.setdefault(path, set()).update(numbers)
    for path, numbers in seen_lines.items():
        if names_path(step.text, path) and step_files.share(path) == "all":
            # Where nothing shows which lines of a file the step needs, all that were seen may be needed.
            lines_by_path.setdefault(path, numbers)
    paths = sorted(
        lines_by_path.keys() - {piece.path for piece in chosen_pieces},
        key=lambda path: _rank(path, plan, step, lines_by_path),
    )
    # A step builds on the lines that were written before it, which are few compared with the lines that were read.
    for path in sorted(paths, key=lambda path: path not in written_lines):
        lines = texts.lines(path)
        for run in _runs(lines_by_path[path], len(lines)):
            is_worth_it = len(run) >= LEAST_LINES or not written_lines.get(path, set()).isdisjoint(run)
            piece = _cut(path, lines, run, room) if is_worth_it else None
            if piece:
                room -= len(piece.text)
                chosen_pieces.append(piece)
    return chosen_pieces


class _Texts:
    """Reads each file once."""

    def __init__(self, folder: WorkFolder) -> None:
        self._folder = folder
        self._read: dict[str, str] = {}
        self._split: dict[str, list[str]] = {}

    def text(self, path: str) -> str:
        if path not in self._read:
            self._read[path] = self._folder.text(path)
        return self._read[path]

    def lines(self, path: str) -> list[str]:
        if path not in self._split:
            plain_text = self.text(path).removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
            self._split[path] = plain_text.split("\n")
        return self._split[path]


def _lines_seen(
    state: AgentState, plan: Plan, step: Step, talk: PlanTalk, texts: _Texts
) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Returns the indexes of the lines that the conversation has seen and that are still the same, the latest file
    first: all of them, and those that the step needs. A file counts if the plan names it, or if it was seen in a turn
    in which the plan was proposed or changed. Lines that were seen before the plan was wished for are needed only near
    a definition that the step names."""
    plan_text, turns = " ".join((plan.goal, *(step.text for step in plan.steps))), talk.turns_of_plan
    symbols = "|".join(sorted(set(SYMBOL.findall(FILE_NAME.sub(" ", f"{plan.goal} {step.text}")))))
    definition = re.compile(DEFINING.replace("{name}", f"(?:{symbols or NOTHING})"))
    all_lines, needed_lines = dict[str, set[int]](), dict[str, set[int]]()
    for seen in _seen(state):
        path = posixpath.normpath(seen.path.removeprefix(f"{state.folder.rstrip('/')}/"))
        if not (seen.turn in turns or names_path(plan_text, path)):
            continue
        lines = texts.lines(path)
        if numbers := _still_there(seen, lines):
            all_lines.setdefault(path, set()).update(numbers)
            if seen.turn < talk.first_turn:
                defined = (number for number in numbers if definition.match(lines[number]))
                numbers &= _near(number for number in defined if number + LEAST_RUN in numbers)
            if numbers:
                needed_lines.setdefault(path, set()).update(numbers)
    return all_lines, needed_lines


def _defined(step: Step, lines: list[str]) -> set[int]:
    """Returns the indexes of the lines that define what the step's texts name as code: each name with its block, if the
    file defines it in one place only."""
    names = set(CODE_NAME.findall(FILE_NAME.sub(" ", step.text)))
    definition = re.compile(DEFINING.replace("{name}", f"({'|'.join(sorted(names)) or NOTHING})"))
    matches = [(number, match) for number, line in enumerate(lines) if (match := definition.match(line))]
    counts = Counter(match[1] or match[2] for _, match in matches)
    numbers = set[int]()
    for start, match in matches:
        if counts[match[1] or match[2]] == 1:
            numbers.update(range(start, _end_of_block(lines, start)))
    return numbers


def _end_of_block(lines: list[str], start: int) -> int:
    """Returns the index after the last line of the block that begins here: lines that are indented further, or that
    close a bracket."""
    end, indent = start + 1, len(lines[start]) - len(lines[start].lstrip())
    for number in range(start + 1, min(len(lines), start + BELOW)):
        text = lines[number].strip()
        if text and len(lines[number]) - len(lines[number].lstrip()) <= indent and text[0] not in ")]}":
            break
        end = number + 1 if text else end
    return end


def _near(numbers: Iterable[int]) -> set[int]:
    return {near for number in numbers for near in range(number - ABOVE, number + BELOW + 1)}


def _seen(state: AgentState) -> Iterator[SeenLines]:
    """Yields what files, mentioned files and searches with lines around their matches have shown, the latest first."""
    actions = {
        action.action_id: action
        for message in state.messages
        if message.decision
        for action in message.decision.actions
        if action.operation in (READ_FILE, GREP)
    }
    for message in reversed(state.messages):
        action = actions.get(message.answers)
        if action and action.operation == GREP:
            yield from _in_search(message)
        elif path := _file_shown(message, action):
            start_text = str(action.args.get("start_line") or "1") if action else "1"
            start = max(1, int(start_text)) - 1 if start_text.isdecimal() else 0
            # The first line names the file. The last one may say that the rest is not shown.
            yield SeenLines(path, start, message.text.split("\n")[1:], message.turn)


def _file_shown(message: Message, action: Action | None) -> str:
    """Returns the file that a result shows; an empty path for other messages."""
    if message.role == "tool" and message.operation.startswith(MENTION):
        return message.operation.removeprefix(MENTION)
    return str(action.args.get("path") or "") if action else ""


def _in_search(message: Message) -> Iterator[SeenLines]:
    """Yields the runs of lines in a search result that hold lines around a match. Matches alone show too little. In the
    text, a file's name stands at the beginning and after each empty line."""
    path, is_heading, run = "", True, list[re.Match[str]]()
    for line in [*message.text.split("\n"), ""]:
        numbered = None if is_heading else NUMBERED.fullmatch(line)
        follows = bool(numbered and run and int(numbered[1]) == int(run[-1][1]) + 1)
        if not follows:
            if len(run) >= LEAST_LINES and any(match[2] == "-" for match in run):
                yield SeenLines(path, int(run[0][1]) - 1, [match[3] for match in run], message.turn, is_search=True)
            run = []
        run += [numbered] if numbered else []
        path = line if is_heading else path
        is_heading = not line


def _still_there(seen: SeenLines, lines: list[str]) -> set[int]:
    """Returns the indexes of the seen lines that are still the same, also where they stand in another place now."""
    current_lines = mask("\n".join(lines[seen.start : seen.start + len(seen.lines)])).text.split("\n")
    line_pairs = zip(seen.lines, current_lines, strict=False)
    same_count = sum(1 for _ in takewhile(lambda pair: _is_same(seen, *pair), line_pairs))
    if same_count and same_count >= len(seen.lines) - (not seen.is_search):
        return set(range(seen.start, seen.start + same_count))
    return _moved(seen.lines, lines, seen.start)


def _is_same(seen: SeenLines, shown: str, line: str) -> bool:
    return shows(shown, line) if seen.is_search else shown == line


def shows(quoted: str, line: str) -> bool:
    """Says whether the file still has a line as a search quoted it: the whole line, or its beginning if the search had
    cut it."""
    current_line = shown_line(line)
    return quoted == current_line or (len(quoted) >= CUT and current_line.startswith(quoted))


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


def _rank(path: str, plan: Plan, step: Step, read: dict[str, set[int]]) -> tuple[int, int]:
    """Ranks the files that the step names first, then the files of the plan, then all other files in the order they
    were read."""
    named_by_step = names_path(step.text, path)
    named_by_plan = named_by_step or any(
        names_path(text, path) for text in (plan.goal, *(plan_step.text for plan_step in plan.steps))
    )
    return 2 - named_by_step - named_by_plan, list(read).index(path)


def _runs(numbers: Iterable[int], total: int) -> Iterator[range]:
    """Yields the numbers as ranges. A gap is filled if it is shorter than the heading that another piece would need,
    and a range that ends shortly before the end of the file reaches to the end."""
    begin = end = -1
    for number in sorted(numbers):
        if begin < 0 or number > end + SMALL_GAP:
            if end > begin:
                yield range(begin, end)
            begin = number
        end = number + 1
    if end > begin:
        yield range(begin, total if total - end <= END_GAP else end)


def _cut(path: str, lines: Sequence[str], run: range, room: int) -> FilePiece | None:
    """Returns as many lines of the run as there is room for; none if hardly any fit. The last few lines of a run are
    never cut off."""
    last_number = run.start
    for number in run:
        room -= len(lines[number]) + 1
        if room < 0:
            break
        last_number = number + 1
    if run.stop - last_number <= END_GAP < last_number - run.start:
        last_number = run.stop
    is_too_little = last_number < run.stop and last_number - run.start < LEAST_LINES
    text = "" if is_too_little else "\n".join(lines[run.start : last_number])
    if not text.strip():
        return None
    is_whole_file = run.start == 0 and last_number == len(lines)
    return FilePiece(path, text) if is_whole_file else FilePiece(path, text, run.start + 1, last_number, len(lines))
