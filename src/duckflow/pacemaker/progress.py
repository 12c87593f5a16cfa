"""Measures the progress of steps towards the request, which earns a turn more loops."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from duckflow.pacemaker.request import TERM, UserRequest, stem_of
from duckflow.pacemaker.signatures import (
    FILE_WORD,
    SHORT,
    LoopStep,
    OwnWork,
    call_signature,
    canonical,
    change_signature,
    command_of,
    failures_in,
    is_empty,
    plain_line,
    replaced_texts,
    result_signature,
    says_nothing_found,
    texts_in,
)
from duckflow.state.action import RUN_AGENT

Gain = Literal["", "read", "passes", "fails_less", "made", "used", "changed", "completed"]

MOST_SEEN = 50_000
LINES = 2_000
"""The largest number of lines of one result that are examined."""
MANY_LINES = 50
"""The number of new lines that raise the worth of a result by one."""
FILE_NAME = r"(?<![\w-])[\w-]++(?:\.[\w-]+)+"
NUMBER = r"[0-9]+"
PROBED = r"[0-9]{1,18}"
PLACE = r"\s*(?:([\w./-]+):)?[0-9]+[:\t|→-]"
"""Matches the file and the line number before a line that a search shows."""
FOUND = 3
"""A text with at least this many new words from recent reading counts as a report on that reading."""


class Gained(NamedTuple):
    """The progress of a step. `solid` is the worth of progress that a model cannot make at will. If it is 0, the step
    earns only the first few extensions of the limit."""

    kind: Gain = ""
    solid: int = 0
    elsewhere: bool = False
    """True if the step only talked, handed work to an agent, or looked at or changed a place that has nothing to do
    with the request. It does not matter whether it found anything there."""


NOTHING = Gained()
FOREIGN_CHANGE = Gained("changed", elsewhere=True)


class SeenMaterial:
    """The lines that were seen in this turn, as signatures, and the names of files in them."""

    def __init__(self) -> None:
        self._lines: dict[int, None] = {}
        self._shown: dict[str, None] = {}
        self._mentioned: dict[str, None] = {}
        self._read: set[str] = set()
        self._terms: dict[str, None] = {}
        self._fresh_terms: set[str] = set()

    def news(self, step: LoopStep, own: OwnWork) -> tuple[int, bool]:
        """Returns how many lines of a result are new (neither seen before nor written by the model), and whether they
        are at least half of it. Printed output and headings are compared without numbers. Lines that a search shows
        from a file that was read are compared without the file's name and the line number before them."""
        is_printed = step.kind not in ("read", "search")
        sent_text = plain_line(canonical(step.args)) if is_printed else canonical(step.args)
        heading = f"{step.subject} ("
        shown_lines = step.result.split("\n")[:LINES]
        if step.kind != "read":
            shown_lines = map(self._without_place, shown_lines)
        lines = {plain_line(line) if is_printed or line.startswith(heading) else line.strip() for line in shown_lines}
        lines = {line for line in lines if not is_empty(line) and (len(line) > SHORT or line not in sent_text)}
        unseen_lines = [line for line in lines if hash(line) not in self._lines]
        new_lines = [line for line in unseen_lines if not own.holds(line)]
        _remember(self._lines, map(hash, [*unseen_lines, *([] if is_printed else map(plain_line, unseen_lines))]))
        terms = set(re.findall(TERM, "\n".join(new_lines).casefold())) - self._terms.keys()
        _remember(self._terms, terms)
        self._fresh_terms |= terms
        names = [name for line in new_lines for name in re.findall(FILE_NAME, line)]
        _remember(self._shown, names)
        if step.kind == "read":
            self._read.add(step.subject.rpartition("/")[2])
            _remember(self._mentioned, (name for name in names if name not in sent_text))
        return len(new_lines), 2 * len(new_lines) >= len(lines)

    def is_told_in(self, text: str, own: OwnWork) -> bool:
        """Says whether a text of the model reports on its reading. Such a text uses enough new words of the material
        that was seen since the last report."""
        terms = set(re.findall(TERM, text.casefold()))
        is_report = len([term for term in terms & self._fresh_terms if not own.said(term)]) >= FOUND
        _remember(self._terms, terms)
        self._fresh_terms = set() if is_report else self._fresh_terms - terms
        return is_report

    def _without_place(self, line: str) -> str:
        match = re.match(PLACE, line)
        if match is None or (match[1] and match[1].rpartition("/")[2] not in self._read):
            return line
        return line[match.end() :]

    def shows(self, path: str) -> bool:
        """Says whether a file's name was seen anywhere in this turn."""
        return path.rpartition("/")[2] in self._shown

    def mentions(self, path: str) -> bool:
        """Says whether a text that the model has read, such as a plan, names the file."""
        return path.rpartition("/")[2] in self._mentioned


def _remember(seen: dict[Any, None], items: Iterable[Any]) -> None:
    seen.update(dict.fromkeys(items))
    while len(seen) > MOST_SEEN:
        del seen[next(iter(seen))]


class FailedChecks:
    """Remembers the commands that were run in this turn, each with its fewest failures so far."""

    def __init__(self) -> None:
        self._least: dict[str, tuple[int | None, Counter[str]]] = {}
        self._most_tests: dict[str, int] = {}
        self._to_halve: dict[str, int] = {}
        """For each check of the model's own tests: the number of failures that must be halved. Only then is the
        progress solid (hard to fake)."""

    def look(self, step: LoopStep, of_own_tests: bool) -> Gained:
        """Returns a gain (progress) for a command that failed before and passes now, or fails less than ever in this
        turn. Fixing what this turn broke gains nothing, and neither does running fewer tests. For the model's own tests
        the gain is solid (hard to fake) only if half as many fail, because a model can make any number of failing tests
        and mend them one by one."""
        name = check_name(step)
        if step.tests < self._most_tests.get(name, 0):
            return NOTHING
        self._most_tests[name] = step.tests
        least_failures = self._least.get(name)
        count = failures_in(step.result) if step.is_error else 0
        lines = Counter(map(plain_line, step.result.split("\n")[1:LINES])) if step.is_error else Counter[str]()
        if least_failures is None:
            self._least[name] = count, lines
            if of_own_tests:
                self._to_halve[name] = count or 0
            return NOTHING
        fails_less = (
            count < least_failures[0]
            if count is not None and least_failures[0] is not None
            else lines < least_failures[1]
        )
        if not fails_less:
            return NOTHING
        self._least[name] = count, lines
        if not step.is_error:
            return Gained("passes", solid=1)
        failures = self._to_halve.get(name)
        is_enough_gain = failures is None or (count is not None and 2 * count <= failures)
        if failures is not None and is_enough_gain:
            self._to_halve[name] = count or 0
        return Gained("fails_less", solid=int(is_enough_gain))


class SearchAnswers:
    """Remembers the answers of checks in a search, such as a bisection. A search runs the same check on other versions
    of files, or with other arguments, and gets one of a few answers."""

    def __init__(self) -> None:
        self._versions: set[int] = set()
        self._questions: set[int] = set()
        self._answers: set[int] = set()
        self._last: dict[str, tuple[int, int]] = {}
        self._probes: dict[str, set[int]] = {}
        self._least_gap: dict[str, int] = {}

    def move(self, step: LoopStep) -> None:
        """Takes in a command that has put another version in place. The same command with the same output counts as the
        same version, whatever the name of the commit."""
        self._versions.add(change_signature(step))

    def look(self, step: LoopStep) -> Gained:
        """Returns the gain (progress) of a step in a search, such as a bisection. The gain is solid (hard to fake) if
        another version of the files gives another answer, or if the check closes in on a number. Any other new question
        gains little or nothing."""
        name, version, question = check_name(step), len(self._versions), call_signature(step.name, step.args)
        answer = hash((step.is_error, result_signature(step.result.partition("\n")[2], printed=True)))
        last_version, last_answer = self._last.get(name, (version, answer))
        is_probe = question not in self._questions and answer in self._answers
        self._questions.add(question)
        self._answers.add(answer)
        self._last[name] = version, answer
        differs = answer != last_answer
        if version != last_version:
            return Gained("read", solid=int(differs))
        if self._closes_in(step):
            return Gained("read", solid=1)
        return Gained("read") if is_probe and differs else NOTHING

    def _closes_in(self, step: LoopStep) -> bool:
        """Says whether a check closes in on a number, as a binary search does: the distance to the nearest earlier
        number is at most about half of any distance before. That can happen only a few dozen times, whatever the
        answers are."""
        *_, number = map(int, re.findall(PROBED, step.subject) or "0")
        numberless_subject = re.sub(NUMBER, "#", step.subject)
        probes = self._probes.setdefault(numberless_subject, set())
        gap = min((abs(number - probe) for probe in probes), default=0)
        least_gap = self._least_gap.get(numberless_subject, 0)
        probes.add(number)
        if gap and (not least_gap or gap < least_gap):
            self._least_gap[numberless_subject] = gap
        return 0 < gap < least_gap and gap <= (least_gap + 1) // 2


def check_name(step: LoopStep) -> str:
    """Returns a name for a check that ignores options: the first words of its last command."""
    command = step.subject[:SHORT]
    last_command = re.split(r"&&|\|\||;|\n", command)[-1] or command
    words = [word for word in last_command.partition("|")[0].split() if not word.startswith("-")]
    return f"{step.name} {' '.join(words[:2])}"


class TurnProgress:
    """Measures the progress of each step. Only material from elsewhere and results of checks count: text that the model
    itself wrote or printed is no progress."""

    def __init__(self, asked: str = "") -> None:
        self.begin(asked)

    def begin(self, asked: str) -> None:
        """Forgets all progress, because the user has made a new request."""
        self._request = UserRequest(asked)
        self._material = SeenMaterial()
        self._checks = FailedChecks()
        self._search = SearchAnswers()
        self._own = OwnWork()
        self._changed: set[str] = set()
        self._unused: set[str] = set()
        self._written: set[int] = set()
        self._calls: dict[int, int] = {}
        self._opened: set[str] = set()
        self.gains = 0
        self.is_told_in(asked)

    def gain(self, step: LoopStep) -> Gained:
        step_gain = self._weigh(step)
        self.gains += bool(step_gain.kind) and not step_gain.elsewhere
        return step_gain

    @property
    def has_named_places(self) -> bool:
        return self._request.names_places

    def is_told_in(self, text: str) -> bool:
        """Says whether a text of the model reports something new that the model has read."""
        return self._material.is_told_in(text, self._own)

    def _weigh(self, step: LoopStep) -> Gained:
        is_elsewhere, command = self._goes_elsewhere(step), command_of(step)
        brings_others = bool(step.changed) and self._own.brings_others(command)
        self._own.add(step, step.changed if brings_others else filter(self._was_there, step.changed))
        if step.kind in ("talk", "ask", "submit") or step.name == RUN_AGENT:
            # An agent's report is the model's own text. Progress of the agent was counted when it was made.
            return Gained(elsewhere=True)
        if step.changed and self._own.brings_version(command):
            self._search.move(step)
        is_check = bool(command) and self._own.is_check(command)
        check_gain = self._checks.look(step, self._own.has_tests_for(command)) if is_check else NOTHING
        best_check_gain = max(check_gain, self._search.look(step), key=_worth) if is_check else NOTHING
        if is_elsewhere and not self._changed:
            # Nothing was changed and the command has nothing to do with the request, so another outcome is no progress.
            best_check_gain = NOTHING
        # The command put other versions of files in place, as a bisection does, so its outcome is new.
        has_moved = brings_others and not is_elsewhere
        gains = [best_check_gain]
        if not has_moved and (step.is_error or (step.kind == "search" and says_nothing_found(step.result))):
            gains.append(self._used(command))
        else:
            if not step.is_error and (step.kind == "edit" or step.changed):
                gains.append(self._edited(step, command, is_elsewhere))
            if step.kind != "edit" or command:
                gains += self._used(command), self._seen(step, command, has_moved or self._opens(step, is_elsewhere))
        best_gain = max(gains, key=_worth)
        is_own_output = self._own.writes_output(command) if command else self._reads_own(step)
        has_only_looked = step.kind in ("read", "search", "run") and not step.changed and not is_own_output
        return best_gain._replace(
            elsewhere=best_gain.elsewhere
            or (is_elsewhere and (best_gain.kind == "read" or (has_only_looked and not best_gain.kind)))
        )

    def _opens(self, step: LoopStep, elsewhere: bool) -> bool:
        """Says whether a step is the first to read a file that the user asked for. This counts even if the file looks
        like another one that was read."""
        is_first_read = step.kind == "read" and not elsewhere and step.subject not in self._opened
        self._opened |= {step.subject} if is_first_read else set()
        return is_first_read

    def _goes_elsewhere(self, step: LoopStep) -> bool:
        """Says whether a step names nothing that has to do with the request. If a call names no file, all its texts
        together are compared with the request."""
        texts = list(texts_in(step.args))
        path = "" if isinstance(step.args, str) else str(step.args.get("path") or "").strip("./")
        file_words = {word for text in [*texts, path] for word in re.findall(FILE_WORD, text)} | {path} - {""}
        return not any(map(self._request.asks_for, file_words or {" ".join(texts)}))

    def rewrites(self, step: LoopStep) -> bool:
        """Says whether an edit only changes text that this turn has written. Call it before `gain`, which counts this
        edit as written, too."""
        if old_texts := replaced_texts(step.args):
            return self._written.issuperset(_lines(step, old_texts))
        return bool(step.changed) and self._changed.issuperset(step.changed)

    def _seen(self, step: LoopStep, command: str, moved: bool) -> Gained:
        """Returns a gain (progress) for text that the model sees for the first time and did not write. The gain is not
        solid (it is easy to fake) for output of the model's own programs, or for a call that is repeated without an
        edit in between. `moved` is true if a command put another version of the files in place: then any new line
        counts."""
        call = call_signature(step.name, step.args)
        is_repeated_call = self._calls.get(call) == len(self._written) and not moved
        self._calls[call] = len(self._written)
        shows_own_text = self._own.only_says(command) if command else self._reads_own(step)
        lines, is_mostly_new = self._material.news(step, self._own)
        if not lines or not (is_mostly_new or moved) or shows_own_text:
            return NOTHING
        return Gained("read", 0 if is_repeated_call or self._own.writes_output(command) else 1 + lines // MANY_LINES)

    def _reads_own(self, step: LoopStep) -> bool:
        return self._own.made(step.args if isinstance(step.args, str) else str(step.args.get("path", "")))

    def _edited(self, step: LoopStep, command: str, is_elsewhere: bool) -> Gained:
        """Returns a gain (progress) for making a file that was asked for, or for changing a place that this turn had
        not touched. In a file that nobody named, only the first change counts. A change that has nothing to do with a
        request for other places is no solid gain (it is easy to fake)."""
        is_rewrite, old_texts = self.rewrites(step), replaced_texts(step.args)
        is_move = not isinstance(step.args, str) and step.args.get("source") in set(step.changed) - self._changed
        newly_changed = set(step.changed) - self._changed
        self._changed |= newly_changed
        self._written.update(_lines(step, texts_in(step.args)))
        is_named = any(map(self._was_named, step.changed))
        if is_named and newly_changed:
            return Gained("made", solid=1)
        is_foreign = is_elsewhere and self._request.names_places and not self._request.shares_words(" ".join(old_texts))
        if (old_texts and not is_rewrite and (is_named or newly_changed)) or is_move:
            return FOREIGN_CHANGE if is_foreign and not is_named else Gained("changed", solid=1)
        if command and any(map(self._was_there, step.changed)):
            # It is not known how much of the file a command has changed.
            return FOREIGN_CHANGE if is_foreign and not is_named else Gained("changed", solid=int(bool(newly_changed)))
        if any(self._request.names_folder(path) for path in newly_changed):
            return Gained("made", solid=int(self._own.makes_from_material(command, step.changed)))
        self._unused |= newly_changed
        return NOTHING

    def _was_named(self, path: str) -> bool:
        """Says whether a file was named before the model made it: by the request, the plan, or a text that was read."""
        return self._request.names_file(path) or self._material.mentions(path)

    def _was_there(self, path: str) -> bool:
        return self._was_named(path) or self._material.shows(path)

    def _used(self, command: str) -> Gained:
        """Returns a gain (progress) for a command that uses a file made in this turn. The command may fail, as a test
        that shows a bug does."""
        used_paths = {path for path in self._unused if stem_of(path) in command}
        self._unused -= used_paths
        return Gained("used") if used_paths else NOTHING


def _worth(gained: Gained) -> tuple[int, bool]:
    return gained.solid, bool(gained.kind)


def _lines(step: LoopStep, texts: Iterable[str]) -> Iterator[int]:
    """Returns signatures of the lines of texts. The same line in another file has another signature."""
    path = step.changed[:1] or (step.subject,)
    return (hash((path, line)) for text in texts for line in text.strip().split("\n"))
