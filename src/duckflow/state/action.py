"""What can be done (operations), what is decided, and what results show."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import Field, field_validator, model_validator

from duckflow.state.checks import NOT_STARTED, CheckReport
from duckflow.state.five import StateDelta
from duckflow.state.noun import Line100, Line200, Value, new_id, shorten
from duckflow.state.phase import Phase, Rating, ReviewVerdict
from duckflow.state.phrase import SAID, Phrase
from duckflow.state.picture import Picture
from duckflow.state.vitals import Unit

Effect = Literal["read", "write", "run", "network", "talk", "plan", "memory"]
CHANGING: frozenset[Effect] = frozenset(("write", "run", "memory"))
StepKind = Literal["read", "search", "edit", "run", "submit", "ask", "talk", "other", "user"]
"""What the Pacemaker counts a step as."""
PlanMoment = Literal["none", "draft", "approved", "jobs", "over", "changed"]
"""How far planning is: no plan that is open, one that waits for its yes, one being carried out, jobs at work on it,
one that is completed; and whether an earlier turn has changed files."""

# The operations that Duckflow itself calls, or looks for on the record.
RESPOND = "response"
EXIT = "exit"
DUCK_CALL = "duck_call"
RECALL = "memory.recall"
DECIDE = "decision"
"""The tool by which a model that calls tools says what changed in its Decision."""
CALL = "call"
"""The tool through which such a model calls what is offered only at times: the list of tools itself never changes, so
that an endpoint's cache of the prompt holds."""
LIST_FILES = "file_ops.list_files"
READ_FILE = "file_ops.read_file"
WRITE_FILE = "file_ops.write_file"
GREP = "file_ops.grep"
RUN_COMMAND = "shell.run"
PROPOSE_PLAN = "plan_tool.propose"
REVISE_PLAN = "plan_tool.revise"
MESSAGE_JOB = "task_loop.message"
STEERING = (REVISE_PLAN, MESSAGE_JOB)
"""The operations by which the conversation hands the user's words to work that is going on."""
REMEMBER = "memory.remember"
READ_SKILL = "skill.read"
RUN_AGENT = "agent.run"
READING_AGENTS = ("explore", "review")


def wire_name(operation: str) -> str:
    """What an operation is called as a tool: wires want names without dots."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", operation)[:64]


def all_names(operation: str, known_as: str) -> tuple[str, ...]:
    """Every name that stands for an operation, that of other assistants first."""
    return tuple(dict.fromkeys(filter(None, (known_as, operation, wire_name(operation)))))


def first_given(names: Iterable[str], args: Mapping[str, Any]) -> str:
    """The first of these arguments that a call has, by its name."""
    return next((name for name in names if args.get(name)), "")


class Operation(Value):
    """What a tool says about itself (tools/tool.py), for the rooms that know no tools."""

    name: str
    parameters: dict[str, Any]
    """The JSON schema of its arguments."""
    effect: Effect = "read"
    kind: StepKind = "other"
    told: dict[str, str] = Field(default_factory=dict[str, str])
    """What the model is told of a tool that is not ours, by language; i18n tells of ours."""
    more: str = ""
    """A part of that text that is known only while it runs."""
    body: str = ""
    """Name of the argument that travels outside the JSON (a file's content, an edit), or nothing."""
    says: str = ""
    """Name of the argument that is shown to the user while it streams in, or nothing."""
    paths: tuple[str, ...] = ()
    """Names of the arguments that hold the files it may change."""
    subject: tuple[str, ...] = ()
    """Names of the arguments that say what a call is about; the first that is given counts."""
    known_as: str = ""
    """The name of the same tool in other assistants, by which their hooks and kinds of agents mean it."""
    makes: tuple[str, ...] = ()
    """Those of them that are there afterwards."""
    expects: Literal["", "there", "file", "folder"] = ""
    """What its `path` must name: something that is there, or a file or folder to be made."""
    when: tuple[PlanMoment, ...] = ()
    """When the model is told of it; empty: always."""
    led: bool = False
    """Whether a small model, which is led, is told of it."""
    rare: bool = False
    """Whether a line is enough to tell of it: models that call tools call it through another one."""
    in_tasks: bool = True
    """Whether a background task may use it."""
    led_in_tasks: bool = False
    """Whether a small model may plan tasks with it."""

    @property
    def changes(self) -> bool:
        return self.effect in CHANGING

    @property
    def says_why(self) -> bool:
        """Whether a call of it as a tool must give a reason of its own."""
        return self.changes or self.effect == "network"

    @property
    def names(self) -> tuple[str, ...]:
        return all_names(self.name, self.known_as)

    def touched(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """The files that a call may change, as far as its arguments tell."""
        return tuple(str(args[name]) for name in self.paths if args.get(name))

    def made(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """The files that are there after a call."""
        return tuple(str(args[name]) for name in self.makes if args.get(name))


CHECK_PATTERN = r'^(yes|no: [^"\\]+)$'
"""What the two checks of a Decision may be."""
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


class Action(Value):
    """One tool call. It must say why."""

    action_id: str = Field(default_factory=new_id("act"))
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning: str
    subject: str = ""
    """Name of the argument that says what the call is about, as its tool says."""

    @property
    def about(self) -> str:
        """What the call is about, in the words of its most telling argument."""
        return str(self.args.get(self.subject, ""))

    @property
    def why(self) -> str:
        """The reason that the model gave; nothing where only the call's name stands there."""
        return "" if self.reasoning in (self.operation, wire_name(self.operation)) else self.reasoning

    @model_validator(mode="before")
    @classmethod
    def _accept_aliases(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data).copy()
        for alias, field in ALIASES.items():
            if alias in given and field not in given:
                given[field] = given.pop(alias)
        return given

    @field_validator("reasoning")
    @classmethod
    def _say_why(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("reasoning must say why this action is needed")
        return text


class Decision(Value):
    """What the main LLM returns for one loop."""

    rationale: Line200
    goal_consistency: str
    constraint_check: str
    confidence: Unit
    task_profile: TaskProfile
    step: Phase
    next_step: NextStep
    prompt_pattern: PromptPattern
    alternative: Line200 | None = None
    """Another real way, if there is one: shown when the user is asked."""
    state_delta: StateDelta | None = None
    rating: Rating | None = None
    """In a review: what it thinks of the work."""
    verdict: ReviewVerdict | None = None
    actions: list[Action]
    declared: tuple[str, ...] = ()
    """The fields that the model has said itself. The others were computed from what it did."""

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
        """One that no model wrote: it follows from what was said or decided before, and nothing speaks against it."""
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
        """The texts that it gives to these operations; by default the answers to the user."""
        wanted = operations or (RESPOND,)
        return [str(action.args.get("text", "")) for action in self.actions if action.operation in wanted]

    def objection(self) -> str:
        """The reason, when one of the two checks says no; else nothing."""
        for check in (self.goal_consistency, self.constraint_check):
            said, _, reason = check.partition(": ")
            if said.lower() == "no":
                return reason or said
        return ""


def looks_only(operation: str, effect: str, args: Mapping[str, Any]) -> bool:
    """Says whether a call only looks around. An agent of a kind that may change something does more than that."""
    if operation == RUN_AGENT:
        return args.get("kind", READING_AGENTS[0]) in READING_AGENTS
    return effect == "read"


class ActionResult(Value):
    """What one action brought: a text for the model, a phrase for people, and the files it changed."""

    action_id: str
    operation: str
    ok: bool
    for_model: str
    for_user: Phrase
    changed: tuple[str, ...] = ()
    seconds: float = 0.0
    effect: Effect | Literal[""] = ""
    """Of the tool that was called; nothing when there is none of that name."""
    kind: StepKind = "other"
    pictures: tuple[Picture, ...] = ()
    check: CheckReport | None = None
    """The report of a run of tests or of another check."""
    altered: tuple[str, ...] = ()
    """Files that the command itself runs, and that were there before: the work has changed them until this passes."""

    @property
    def well(self) -> bool:
        """Whether what was done has ended well, too: a command with another exit code than 0 or an agent that was
        stopped has not."""
        key, code = self.for_user.key, self.for_user.values.get("code", 0)
        return self.ok and code in (0, "0") and (not key.startswith("agent.ended.") or key == "agent.ended.done")

    @property
    def shows(self) -> bool:
        """Whether its text holds more than that something was changed."""
        return not self.changed or self.effect == "run"

    @property
    def said(self) -> str | None:
        """What was said to the user, where that is all that was done."""
        return str(self.for_user.values.get("text", "")) if self.ok and self.for_user.key == SAID else None


FAILED_CODE = "code"
OUTPUT = 2000
NO_OUTPUT = "(no output)"
OTHER_OUTPUT = r"(?m)^Background \S+ has ended with exit code "
"""From there on a result tells of another command, which has ended meanwhile."""
DOCUMENTS = (".md", ".rst", ".adoc")


def is_checked(path: str) -> bool:
    """Says whether a check could look at this file: a document tells people something, not programs."""
    return not path.casefold().endswith(DOCUMENTS)


class Evidence(Value):
    """A command since the last change that concerns it."""

    command: str = ""
    code: int = 0
    ok: bool
    text: Line100
    output: str = ""
    """The end of what it printed."""
    check: CheckReport | None = None
    altered: tuple[str, ...] = ()
    """The files of a check that were changed until it passes."""

    @property
    def ran(self) -> bool:
        """Says whether it can speak against something: a check that did not start, or found nothing to run, cannot."""
        return self.ok or not (self.code in NOT_STARTED or (self.check and self.check.ok is None))

    def outdated_by(self, path: str) -> bool:
        """Whether a change of this file makes it worthless. A document that the command does not name does not."""
        return is_checked(path) or path.rpartition("/")[2] in self.command


def exit_code(result: ActionResult) -> int | None:
    """What a command ended with; nothing for other operations."""
    code = result.for_user.values.get(FAILED_CODE)
    return int(code) if result.effect == "run" and isinstance(code, int) else None


def succeeded(result: ActionResult) -> bool:
    """A command that ran but ended with an error has not succeeded."""
    return result.ok and not exit_code(result)


def evidence_of(result: ActionResult) -> Evidence | None:
    """What a result proves: only a command, with its exit code, proves that something works."""
    code = exit_code(result)
    if code is None:
        return None
    values = result.for_user.values
    command = str(values.get("whole", values.get("command", "")))
    shown = f"{shorten(command or str(values.get('command', '')), 70)}: exit code {code}"
    printed = re.split(OTHER_OUTPUT, result.for_model.partition("\n")[2])[0].removeprefix(NO_OUTPUT)
    return Evidence(
        command=command,
        code=code,
        ok=code == 0,
        text=shown,
        output=printed[-OUTPUT:],
        check=result.check,
        altered=result.altered,
    )
