"""Operations that a model may call, its Decision to call them, and what their results show."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import Field, field_validator, model_validator

from duckflow.state.checks import NOT_STARTED, CheckReport
from duckflow.state.data import SAID, FrozenData, Line100, Line200, Phrase, Unit, new_id, shorten
from duckflow.state.phase import Phase, Rating, ReviewVerdict, StateDelta
from duckflow.state.picture import Picture

Effect = Literal["read", "write", "run", "network", "talk", "plan", "memory"]
CHANGING: frozenset[Effect] = frozenset(("write", "run", "memory"))
StepKind = Literal["read", "search", "edit", "run", "submit", "ask", "talk", "other", "user"]
"""The kinds of actions that are told apart by the Pacemaker, which watches how the work goes."""
PlanMoment = Literal["none", "draft", "approved", "jobs", "over", "changed"]
"""Stages of planning: no open plan, a draft that waits for the user's yes, an approved plan, background jobs at work on
it, a completed plan. `changed` means that an earlier turn has changed files."""

# The operations that Duckflow itself calls, or looks for in the journal.
RESPOND = "response"
EXIT = "exit"
DUCK_CALL = "duck_call"
RECALL = "memory.recall"
DECIDE = "decision"
"""The tool by which a model with native tool calls states the fields of its Decision."""
CALL = "call"
"""The tool through which a model with native tool calls uses the operations that are offered only at times. The list of
tools itself never changes, so that the endpoint's cache of the prompt stays valid."""
LIST_FILES = "file_ops.list_files"
READ_FILE = "file_ops.read_file"
WRITE_FILE = "file_ops.write_file"
EDIT_FILE = "file_ops.edit_file"
GREP = "file_ops.grep"
RUN_COMMAND = "shell.run"
PROPOSE_PLAN = "plan_tool.propose"
REVISE_PLAN = "plan_tool.revise"
MESSAGE_JOB = "task_loop.message"
APPROVE_PLAN = "plan_tool.approve"
OUTSIDE = "mcp__"
"""The beginning of the names of servers' tools."""
STEERS_JOBS = frozenset((MESSAGE_JOB, APPROVE_PLAN, "task_loop.pause", "task_loop.resume", "task_loop.cancel"))
"""Operations that start, steer or end jobs. What comes of them the user sees at once."""
STEERING = (REVISE_PLAN, MESSAGE_JOB)
"""The operations by which the conversation passes the user's words on to work that is going on."""
REMEMBER = "memory.remember"
READ_SKILL = "skill.read"
RUN_AGENT = "agent.run"
READING_AGENTS = ("explore", "review")


def wire_name(operation: str) -> str:
    """Returns the operation's name as a tool: endpoints accept no dots in it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", operation)[:64]


def all_names(operation: str, known_as: str) -> tuple[str, ...]:
    """Returns every name of an operation, beginning with the name that other assistants use for it."""
    return tuple(dict.fromkeys(filter(None, (known_as, operation, wire_name(operation)))))


def first_given(names: Iterable[str], args: Mapping[str, Any]) -> str:
    """Returns the name of the first of these arguments that has a value in the call, or an empty text."""
    return next((name for name in names if args.get(name)), "")


class Operation(FrozenData):
    """A tool's description of itself (tools/tool.py), for packages that must not import tools."""

    name: str
    parameters: dict[str, Any]
    """The JSON schema of the operation's arguments."""
    effect: Effect = "read"
    kind: StepKind = "other"
    told: dict[str, str] = Field(default_factory=dict[str, str])
    """The description for the model, by language. Only tools that are not built in have one; i18n describes the
    built-in ones."""
    more: str = ""
    """A part of the description for the model that is known only at run time."""
    body: str = ""
    """The name of the argument whose text is sent outside the JSON (a file's content, an edit), else empty."""
    says: str = ""
    """The name of the argument that is shown to the user while it streams in, else empty."""
    paths: tuple[str, ...] = ()
    """Names of the arguments that hold paths of files which a call may change."""
    subject: tuple[str, ...] = ()
    """Names of the arguments that say what a call is about; the first one with a value counts."""
    known_as: str = ""
    """The name of the same tool in other assistants; hooks and kinds of agents written for them use it."""
    makes: tuple[str, ...] = ()
    """Names of those arguments in `paths` whose files will exist after the call."""
    expects: Literal["", "there", "file", "folder"] = ""
    """Says what the argument `path` must name: something that exists (`there`), or a file or folder that the call will
    make."""
    when: tuple[PlanMoment, ...] = ()
    """The stages of planning at which the operation is offered to the model; empty means always."""
    led: bool = False
    """True if the operation is offered to small models too, which Duckflow leads step by step."""
    rare: bool = False
    """True if the model gets only one line about the operation. Models with native tool calls call it through the tool
    `call`."""
    in_tasks: bool = True
    """True if a background task may use the operation."""
    led_in_tasks: bool = False
    """True if a small model may plan tasks with the operation."""

    @property
    def changes(self) -> bool:
        return self.effect in CHANGING

    @property
    def says_why(self) -> bool:
        """Says whether a call of this operation must give a reason of its own."""
        return self.changes or self.effect == "network"

    @property
    def names(self) -> tuple[str, ...]:
        return all_names(self.name, self.known_as)

    def touched(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the files that a call may change, as far as its arguments tell."""
        return tuple(str(args[name]) for name in self.paths if args.get(name))

    def made(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the files that will exist after a call, as far as its arguments tell."""
        return tuple(str(args[name]) for name in self.makes if args.get(name))


CHECK_PATTERN = r'^(yes|no: [^"\\]+)$'
"""The form that the texts `goal_consistency` and `constraint_check` must have in a Decision."""
NextStep = Literal["done", "pending_user", "defer", "continue"]
PromptPattern = Literal["base_main", "base_main_specialized"]

ALIASES = {"name": "operation", "parameters": "args", "thought": "reasoning"}


class TaskProfile(StrEnum):
    SIMPLE_QUESTION = "SIMPLE_QUESTION"
    GENERAL_CHAT = "GENERAL_CHAT"
    FILE_OPERATION = "FILE_OPERATION"
    CREATIVE_WRITING = "CREATIVE_WRITING"
    CODE_ANALYSIS = "CODE_ANALYSIS"
    DEBUGGING = "DEBUGGING"
    MULTI_STEP_TASK = "MULTI_STEP_TASK"
    RESEARCH = "RESEARCH"
    COMPLEX_REASONING = "COMPLEX_REASONING"


class Action(FrozenData):
    """One tool call of the model. It must give a reason."""

    action_id: str = Field(default_factory=new_id("act"))
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning: str
    subject: str = ""
    """Name of the argument that says what the call is about. The tool chooses it."""

    @property
    def about(self) -> str:
        """Returns the value of the argument that says what the call is about."""
        return str(self.args.get(self.subject, ""))

    @property
    def why(self) -> str:
        """Returns the model's reason; an empty text if the model only repeats the operation's name."""
        return "" if self.reasoning in (self.operation, wire_name(self.operation)) else self.reasoning

    @model_validator(mode="before")
    @classmethod
    def _accept_aliases(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, Any]", data).copy()
        for alias, field in ALIASES.items():
            if alias in fields and field not in fields:
                fields[field] = fields.pop(alias)
        return fields

    @field_validator("reasoning")
    @classmethod
    def _say_why(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("reasoning must say why this action is needed")
        return text


class Decision(FrozenData):
    """The model's reply to one loop: what it thinks, and what it wants to do next."""

    rationale: Line200
    goal_consistency: str
    constraint_check: str
    confidence: Unit
    task_profile: TaskProfile
    step: Phase
    next_step: NextStep
    prompt_pattern: PromptPattern
    alternative: Line200 | None = None
    """Another real way to do the same, if there is one. It is shown when the user is asked."""
    state_delta: StateDelta | None = None
    rating: Rating | None = None
    """The model's rating of the work; None outside of a review."""
    verdict: ReviewVerdict | None = None
    actions: list[Action]
    declared: tuple[str, ...] = ()
    """The fields that the model stated itself. The others were computed from its actions."""

    @field_validator("step")
    @classmethod
    def _working_phase(cls, step: Phase) -> Phase:
        if step is Phase.DONE:
            raise ValueError("step is one of PLANNING, EXECUTION, REVIEW, AWAITING_APPROVAL")
        return step

    @classmethod
    def made_up(
        cls,
        rationale: str,
        actions: list[Action],
        task_profile: TaskProfile,
        step: Phase,
        next_step: NextStep = "continue",
        confidence: float = 1.0,
        prompt_pattern: PromptPattern = "base_main",
    ) -> "Decision":
        """Makes a Decision that no model wrote, because what to do next is known already. Both of its checks
        say yes."""
        return cls(
            rationale=rationale,
            goal_consistency="yes",
            constraint_check="yes",
            confidence=confidence,
            task_profile=task_profile,
            step=step,
            next_step=next_step,
            prompt_pattern=prompt_pattern,
            actions=actions,
        )

    def said(self, *operations: str) -> list[str]:
        """Returns the texts that the Decision passes to these operations; by default the answers to the user."""
        names = operations or (RESPOND,)
        return [str(action.args.get("text", "")) for action in self.actions if action.operation in names]

    def objection(self) -> str:
        """Returns the reason if the check of the goal or of the constraints says no, else an empty text."""
        for check_text in (self.goal_consistency, self.constraint_check):
            verdict, _, reason = check_text.partition(": ")
            if verdict.lower() == "no":
                return reason or verdict
        return ""


def looks_only(operation: str, effect: str, args: Mapping[str, Any]) -> bool:
    """Says whether a call only reads. Starting an agent that may change something is not only reading."""
    if operation == RUN_AGENT:
        return args.get("kind", READING_AGENTS[0]) in READING_AGENTS
    return effect == "read"


class ActionResult(FrozenData):
    """The result of one action: a text for the model, a phrase for people, and the files it changed."""

    action_id: str
    operation: str
    ok: bool
    for_model: str
    for_user: Phrase
    changed: tuple[str, ...] = ()
    seconds: float = 0.0
    effect: Effect | Literal[""] = ""
    """The effect of the tool that was called; empty when there is no tool of that name."""
    kind: StepKind = "other"
    pictures: tuple[Picture, ...] = ()
    check: CheckReport | None = None
    """The report of a test run or of another check, if the action was one."""
    altered: tuple[str, ...] = ()
    """Files that the command runs and that are older than the work, but that the work changed before the command
    passed."""

    @property
    def well(self) -> bool:
        """Says whether the action succeeded, and the work that it started ended well, too. A command with an exit code
        other than 0 did not end well, nor did an agent that was stopped."""
        key, code = self.for_user.key, self.for_user.values.get("code", 0)
        return self.ok and code in (0, "0") and (not key.startswith("agent.ended.") or key == "agent.ended.done")

    @property
    def shows(self) -> bool:
        """Says whether the result's text tells more than the fact that something was changed."""
        return not self.changed or self.effect == "run"

    @property
    def said(self) -> str | None:
        """Returns the text that the user was told, if the action did nothing but talk; else None."""
        return str(self.for_user.values.get("text", "")) if self.ok and self.for_user.key == SAID else None


FAILED_CODE = "code"
SHOWN_SUBJECT = 50
OUTPUT = 2000
NO_OUTPUT = "(no output)"
OTHER_OUTPUT = r"(?m)^Background \S+ has ended with exit code "
"""The line at which a result begins to report on another command, which ended in the background meanwhile."""
DOCUMENTS = (".md", ".rst", ".adoc")
DOCUMENT_NAMES = frozenset(
    ("authors", "changelog", "changes", "contributors", "copying", "history", "licence", "license", "news", "notice")
    + ("readme", "thanks")
)


def is_checked(path: str) -> bool:
    """Says whether a check could look at this file. Documents are written for people, so no check looks at them."""
    name = path.casefold().rpartition("/")[2]
    return not (name.endswith(DOCUMENTS) or name in DOCUMENT_NAMES)


class Evidence(FrozenData):
    """A command and how it ended. Nothing that concerns the command was changed after it ran."""

    command: str = ""
    code: int = 0
    ok: bool
    text: Line100
    output: str = ""
    """The end of the command's output."""
    check: CheckReport | None = None
    altered: tuple[str, ...] = ()
    """Files of the check itself that the work changed before the check passed."""

    @property
    def ran(self) -> bool:
        """Says whether the command really ran. A check that did not start, or found nothing to run,
        disproves nothing."""
        return self.ok or not (self.code in NOT_STARTED or (self.check and self.check.ok is None))

    def outdated_by(self, path: str) -> bool:
        """Says whether a change of this file makes the evidence worthless. A changed document does so only where the
        command names it."""
        return is_checked(path) or path.rpartition("/")[2] in self.command


def subjects_of(actions: Sequence[Action], *, together: bool) -> list[str]:
    """Returns for each action what it is about, for people; with `together`, for each the same short text about all."""
    subjects = [action.about or action.operation for action in actions]
    return (
        [", ".join(shorten(subject, SHOWN_SUBJECT) for subject in subjects)] * len(subjects) if together else subjects
    )


def exit_code(result: ActionResult) -> int | None:
    """Returns the exit code of a command, or None for other operations."""
    code = result.for_user.values.get(FAILED_CODE)
    return int(code) if result.effect == "run" and isinstance(code, int) else None


def succeeded(result: ActionResult) -> bool:
    """Says whether the action succeeded. A command that ran but ended with an error did not."""
    return result.ok and not exit_code(result)


DOCTEST_FAILED = "***Test Failed***"
"""The line that doctest prints. A program that calls doctest itself ends with 0 all the same."""


def evidence_of(result: ActionResult) -> Evidence | None:
    """Returns what a result proves, or None: only a command with its exit code proves that something works."""
    code = exit_code(result)
    if code is None:
        return None
    phrase_values = result.for_user.values
    command = str(phrase_values.get("whole", phrase_values.get("command", "")))
    summary = f"{shorten(command or str(phrase_values.get('command', '')), 70)}: exit code {code}"
    output = re.split(OTHER_OUTPUT, result.for_model.partition("\n")[2])[0].removeprefix(NO_OUTPUT)
    is_failed_doctest = DOCTEST_FAILED in output
    return Evidence(
        command=command,
        code=code,
        ok=code == 0 and not is_failed_doctest,
        text=f"{summary}, {DOCTEST_FAILED}" if is_failed_doctest else summary,
        output=output[-OUTPUT:],
        check=result.check,
        altered=result.altered,
    )
