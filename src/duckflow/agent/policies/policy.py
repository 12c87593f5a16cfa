"""The base class of turn policies, and the record of a turn that they see."""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from duckflow.agent.dispatcher import Dispatched
from duckflow.agent.thinker import Narrow
from duckflow.errors import OUTCOMES, Outcome
from duckflow.events.views import Attachment
from duckflow.i18n.template import note
from duckflow.i18n.words import in_language, languages_in, search
from duckflow.pacemaker.limits import guess_profile
from duckflow.pacemaker.signatures import failures_in
from duckflow.state.action import Decision, TaskProfile, evidence_of
from duckflow.state.agent import AgentState
from duckflow.state.checks import CheckReport, CheckRun, belongs_to_tests
from duckflow.state.data import LEFT_OUT, Phrase, shorten
from duckflow.state.profile import ModelProfile
from duckflow.tools.shell.calls import tries_out

FAILURE = 120
CLAUSE = r"[,;.!?:](?=\s(?!\s*\d+\W*$)|$)|[。、！？\n]"
"""A pattern for the end of a clause. A colon before a number, as in `failed: 2`, is not such an end."""

WORK = frozenset(("write", "run", "deed", "rest"))
"""The kinds of orders in a request that must leave a trace in the journal when they are carried out."""


class Ending(NamedTuple):
    """The outcome of a turn, and what the user is told about it."""

    outcome: Outcome
    why: Phrase | None = None
    waits: bool = False
    """True if the work cannot go on without an answer of the user."""

    @property
    def well(self) -> bool:
        return OUTCOMES[self.outcome].kind == "well"


class Guidance(NamedTuple):
    """Advice for the next request: a note, which counts only if there is no other note, and a limit to the operations
    that are offered."""

    note: str
    narrow: Narrow | None = None


@dataclass(slots=True)
class Loop:
    """One loop: the model's reply (a Decision), and the results of its actions."""

    decision: Decision
    done: Dispatched
    text: str = ""
    """The text beside the calls, which the user has seen."""
    tried: bool = False
    """True if a script that calls the newly written code ran to its end."""
    fault: str = ""
    """The fault that a try-out of the written code has shown."""


class Checks(NamedTuple):
    """Says what failed since the last change, if anything did."""

    failed: str = ""
    by_command: bool = False
    """True if the failure was a command that ran after a change, and not merely an action that could not be done."""
    unmade: bool = False
    """True if a change was tried, failed, and has not been made since."""
    wanted: bool = False
    """True if the user asked for checks, and the answer does not tell that one failed."""


@dataclass(slots=True)
class TurnSoFar:
    """Everything that has happened in this turn."""

    state: AgentState
    request: str
    attachments: Sequence[Attachment]
    profile: Callable[[], Awaitable[ModelProfile]]
    """A function that returns the properties of the model, and connects the model if need be."""
    meanwhile: Callable[[], str] = lambda: ""
    """A function that returns what the user has said since it was last called."""
    wish: str = ""
    """The user's own words in the request. Text that a custom command has added to them orders nothing."""
    read: str | None = None
    """The fingerprint of the plan's draft that the user had read before sending the request. Empty for a request that
    was typed while another turn ran, since it cannot be about what that turn showed at its end; None means every
    draft."""
    loops: list[Loop] = field(default_factory=list[Loop])
    ending: Ending | None = None
    """The ending that the model's last reply asks for, if it asks for any."""
    doubt: str = ""
    """The reason to doubt the model's last `done`, such as a file that is still missing. The model was already asked
    about it."""

    @property
    def last(self) -> Loop:
        return self.loops[-1]

    def note(self, key: str, **values: str) -> str:
        """Returns a sentence for the model, in the session's language."""
        return note(self.state.language, key, **values)

    def checks(self) -> Checks:
        """Returns the failures that speak against the turn's work: checks, commands and actions that failed and were
        not made good since. A failure that the turn has not caused, and that the answer reports, does not count."""
        has_changed, failure, failed_calls, broken_operations = False, "", dict[str, str](), set[str]()
        are_checks_wanted = _wants_checks(self.request, self.state.language) and not self._tells_of_failure()
        for loop in self.loops:
            for result in loop.done.results:
                command_evidence = evidence_of(result)
                if result.changed:
                    has_changed = True
                    failed_calls.clear()
                is_tryout = command_evidence is not None and tries_out(command_evidence.command)
                if result.changed or (command_evidence and command_evidence.ok and is_tryout):
                    failure = ""
                if (
                    command_evidence
                    and not command_evidence.ok
                    and command_evidence.ran
                    and (has_changed or are_checks_wanted)
                    and is_tryout
                    and result.check is None
                ):
                    failure = command_evidence.text
                if result.ok:
                    failed_calls.pop(result.operation, None)
                elif result.for_user.key != LEFT_OUT:
                    failed_calls[result.operation] = shorten(f"{result.operation}: {result.for_model}", FAILURE)
                    # An action that the user refused, or that the model gave up, is not a change that broke.
                    was_wanted = loop.done.stop == "error" and not loop.decision.objection()
                    broken_operations |= {result.operation} if result.effect == "write" and was_wanted else set[str]()
            failure = loop.fault or failure
        blamed_runs = [run for run in self.state.check_runs if run.failing and not self._excused(run)]
        if blamed_runs:
            failure = ", ".join(run.report.line() for run in blamed_runs)
        if failure:
            return Checks(failure, by_command=True, wanted=are_checks_wanted)
        return Checks(next(reversed(failed_calls.values()), ""), unmade=not broken_operations.isdisjoint(failed_calls))

    def _excused(self, run: CheckRun) -> bool:
        """Says whether a failing check does not count against the turn: its failure is older than the turn's changes,
        or the turn did not cause the failure and the answer reports it."""
        state = self.state
        if not state.changed_in_turn or self._wrote_only_tests():
            return run.turn != state.turn or self._tells_of(run.report)
        if not run.as_before:
            return False
        fails_as_before = (
            run.same_as_before and not run.before_in_turn and not _wants_checks(self.request, state.language)
        )
        return fails_as_before or self._tells_of(run.report)

    def _wrote_only_tests(self) -> bool:
        changed_paths = {path for loop in self.loops for result in loop.done.results for path in result.changed}
        return bool(changed_paths) and all(map(belongs_to_tests, changed_paths))

    def _answer(self) -> str:
        answers = [result.said for loop in self.loops for result in loop.done.results if result.said]
        return unicodedata.normalize("NFKC", answers[-1]) if answers else ""

    def _tells_of_failure(self) -> bool:
        return any(_Clause.read(text, self.state.language).fails for text in re.split(CLAUSE, self._answer()))

    def _tells_of(self, report: CheckReport) -> bool:
        """Says whether the model's last answer tells of this failure: how many tests failed, which ones, or the exit
        code if the output has no count. For a linter or a build it is enough if the answer tells of a failure, and of
        no success."""
        answer = self._answer()
        clauses = [_Clause.read(text, self.state.language) for text in re.split(CLAUSE, answer)]
        run = next((evidence for evidence in reversed(self.state.evidence) if evidence.check == report), None)
        number = report.failed or (failures_in(run.output) or run.code if run else 0)
        names = [re.split(r"\s", name.rpartition("::")[2])[0] for name in report.failures] if report.all_named else []
        number_pattern = rf"(?<![\d./])(?:{number})(?![\d.]\d|\d)"
        if any(clause.fails and re.search(number_pattern, clause.text) for clause in clauses):
            return True
        if report.kind != "tests" and any(clause.fails for clause in clauses):
            # A linter or a build as a whole has failed; there is nothing to count.
            return not any(clause.unsaid for clause in clauses)
        is_failure_denied = any(clause.unsaid and name in clause.text for clause in clauses for name in names)
        all_named = bool(names) and all(name in answer for name in names)
        return all_named and not is_failure_denied and any(clause.fails for clause in clauses)

    def owes_work(self) -> bool:
        """Says whether the request orders a change or a run, but only reads and other commands were carried out."""
        results = [result for loop in self.loops for result in loop.done.results if result.ok]
        if not all(result.effect in ("read", "talk") or evidence_of(result) for result in results):
            return False
        return any(_orders_work(self.request, language) for language in languages_in(self.request, self.state.language))

    def said(self) -> frozenset[str]:
        """Returns what the user was told in this turn, word for word."""
        results = (result for loop in self.loops for result in loop.done.results)
        return frozenset(result.said for result in results if result.said)

    def ran_commands(self) -> bool:
        return any(evidence_of(result) for loop in self.loops for result in loop.done.results)


def _orders_work(request: str, language: str) -> bool:
    """Says whether a sentence of the request orders a change or a run, or asks politely for something that no rule
    knows."""
    part_pattern, order_pattern = in_language(language, "requests.part"), in_language(language, "requests.bids")
    for sentence in in_language(language, "requests.sentence_end").split(request):
        kinds = [order.lastgroup for order in part_pattern.finditer(sentence)]
        if not WORK.isdisjoint(kinds) or (not kinds and order_pattern.search(sentence)):
            return True
    return False


class _Clause(NamedTuple):
    """A clause of an answer. `fails` means that it reports a failure; `unsaid` means that it reports the opposite, a
    success."""

    text: str
    fails: bool
    unsaid: bool

    @classmethod
    def read(cls, text: str, language: str) -> "_Clause":
        failure = search("checks.fails", text, language)
        remaining_text = text[: failure.start()] + text[failure.end() :] if failure else text
        denies_failure = search("checks.unsays", remaining_text, language) is not None
        return cls(text, failure is not None and not denies_failure, denies_failure)


def _wants_checks(request: str, language: str) -> bool:
    return guess_profile(request, language) is TaskProfile.DEBUGGING or bool(
        search("requests.of_checks", request, language)
    )


class Policy:
    """Handles one special situation of turns. Most policies override one or two of these methods. No policy knows
    another."""

    async def objection(self, message: str) -> Phrase | None:
        """Is called before a message of the user is taken up. Returns the reason why it may not be taken up, if there
        is one."""
        return None

    async def opening(self, turn: TurnSoFar) -> str | Ending | None:
        """Is called when the user has spoken, before the model is asked. A returned note goes into the first prompt."""
        return None

    async def heard(self, message: str) -> None:
        """Is called when the user has said more while the turn is at work. `turn.request` is already the new
        message."""

    async def before(self, turn: TurnSoFar) -> Guidance | None:
        """Is called when a loop begins. If several policies return something, the first one counts."""
        return None

    async def ending(self, turn: TurnSoFar, ending: Ending) -> str | None:
        """Is called when the turn is about to end. If a policy returns a note, the turn goes on instead."""
        return None

    async def closing(self, turn: TurnSoFar, ending: Ending) -> None:
        """Is called when the turn ends with this ending, and no policy can keep it going any more."""

    async def after(self, turn: TurnSoFar) -> str | Ending | None:
        """Is called when a loop is over, unless a question to the user has ended the turn. If a policy returns a note,
        the turn goes on, even if the model's reply ends it, and the policies after this one are not asked."""
        return None


class Policies:
    """The policies of a turn, in this order: those that `first` returns for this turn, those for a small model (once
    the model is known), and the `last` ones."""

    def __init__(
        self,
        first: Callable[[], Sequence[Policy]],
        last: Sequence[Policy] = (),
        leading: Callable[[], Sequence[Policy]] = tuple,
    ) -> None:
        self._find_first = first
        self._first: Sequence[Policy] = ()
        self._last = last
        self._make_leading = leading
        self._leading: Sequence[Policy] = ()

    def before_the_model_is_known(self) -> tuple[Policy, ...]:
        self._first = self._find_first()
        return (*self._first, *self._last)

    def leading(self, profile: ModelProfile) -> Sequence[Policy]:
        """Returns the policies that guide a small model; none for another model."""
        if not profile.led:
            return ()
        self._leading = self._leading or self._make_leading()
        return self._leading

    def of(self, profile: ModelProfile) -> tuple[Policy, ...]:
        return (*self._first, *self.leading(profile), *self._last)
