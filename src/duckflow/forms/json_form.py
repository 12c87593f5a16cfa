"""The form for models without tools: a Decision is one JSON object in the text of the reply."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

from pydantic import ValidationError

from duckflow.errors import ReplyUnusable
from duckflow.forms.bodies import take_blocks, without_thoughts
from duckflow.forms.broken_json import ReadJson, json_values
from duckflow.forms.calls import few, listed, spoken_by_others, timely, without_body
from duckflow.forms.decision import (
    PLAIN_FIELDS,
    action_fields,
    action_problems,
    is_too_deep,
    make_decision,
    refuse_too_many,
)
from duckflow.forms.form import Form, LiveWords, ParsedReply, ReplyRoom
from duckflow.forms.live import LiveText
from duckflow.forms.schema import STEPS, decision_schema
from duckflow.i18n.template import render
from duckflow.llm.provider import Reply, Request
from duckflow.state.action import RESPOND, Action, Decision, Operation, TaskProfile
from duckflow.state.agent import AgentState
from duckflow.state.data import as_table, tables, text_of
from duckflow.state.message import Message, PromptMessage
from duckflow.state.phase import Phase

CUT_OFF = (
    "The reply was cut off before its end, so none of it was used. "
    "Send the whole Decision again, shorter: fewer actions, short texts, no file contents inside the JSON."
)
NO_PROSE = ("[", "<")
"""Beginnings of text that is no prose: of broken JSON, or of an error page from a server between here and the model."""
WRITTEN_FIRST = (
    "rationale", "goal_consistency", "constraint_check", "confidence", "task_profile", "step", "alternative",
    "state_delta", "rating", "verdict", "actions", "next_step", "prompt_pattern",
)  # fmt: skip
"""The fields of a Decision in the order in which a model writes them: reasons first, then actions."""


class JsonForm:
    """A Decision as JSON, with the texts of files in its actions. A text that is left out, or that made a reply
    unreadable, is asked for in a separate request."""

    format_name = "JSON"
    template = "format"
    body_rule = "body_inline"

    def offered(self, operations: Sequence[Operation], state: AgentState) -> tuple[Operation, ...]:
        return timely(operations, state)

    def told_first(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Returns the operations that are not about plans. Those about plans change as a plan goes on; at the beginning
        of the prompt they would spoil the cache of everything after them."""
        return tuple(operation for operation in operations if not operation.when)

    def instructions(self, language: str, operations: Sequence[Operation]) -> str:
        with_body = ", ".join(operation.name for operation in operations if operation.body)
        rule = render(language, self.body_rule, body_operations=with_body) if with_body else ""
        return render(language, self.template, body_rule=rule, operations=self._instructed(operations, language))

    def listed(self, operations: Sequence[Operation], language: str) -> str:
        return listed(operations, language)

    def name(self, operation: str) -> str:
        return operation

    def spoken(self, history: Sequence[Message], operations: Sequence[Operation], language: str) -> list[PromptMessage]:
        unrepeated_args = self._not_repeated(operations)
        return [
            PromptMessage("assistant", as_written(message.decision, unrepeated_args))
            if message.decision
            else spoken_by_others(message, language)
            for message in history
        ]

    def without_texts(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(map(without_body, operations))

    def for_tasks(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(operations)

    def for_texts(self) -> Form:
        return self

    def request(
        self, messages: tuple[PromptMessage, ...], operations: Sequence[Operation], state: AgentState, room: ReplyRoom
    ) -> Request:
        schema = decision_schema(operations, steps=_steps(operations), review=state.phase is Phase.REVIEW)
        return Request(messages, schema, room.with_texts)

    def live(self, operations: Iterable[Operation]) -> LiveWords:
        return LiveText({operation.name: operation.says for operation in operations if operation.says})

    def read(self, reply: Reply, operations: Sequence[Operation], state: AgentState) -> ParsedReply:
        return read_decision(reply.text, operations, reply.finish, state.phase)

    def _instructed(self, operations: Sequence[Operation], language: str) -> str:
        return listed(operations, language, marked=True)

    def _not_repeated(self, operations: Sequence[Operation]) -> Collection[str]:
        """Returns the arguments that are left out when an earlier Decision is shown to the model again."""
        return ()


class CompactJsonForm(JsonForm):
    """The form for small models: few operations, one action at a time, and every text of a file in a reply of its
    own."""

    template = "format_compact"
    body_rule = "body_rule"

    def offered(self, operations: Sequence[Operation], state: AgentState) -> tuple[Operation, ...]:
        return few(operations, state)

    def for_tasks(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(without_body(operation) for operation in operations if operation.led_in_tasks)

    def told_first(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Returns all operations: a small model has little history to read again, and works better with a single
        list."""
        return tuple(operations)

    def request(
        self, messages: tuple[PromptMessage, ...], operations: Sequence[Operation], state: AgentState, room: ReplyRoom
    ) -> Request:
        review = state.phase is Phase.REVIEW
        schema = decision_schema(operations, False, several_actions=False, steps=_steps(operations), review=review)
        return Request(messages, schema, room.decision)

    def _instructed(self, operations: Sequence[Operation], language: str) -> str:
        return listed(operations, language)

    def _not_repeated(self, operations: Sequence[Operation]) -> Collection[str]:
        return {operation.body for operation in operations if operation.body}


def _steps(operations: Sequence[Operation]) -> Sequence[Phase]:
    return (Phase.EXECUTION,) if all(operation.changes for operation in operations) else STEPS


def as_written(decision: Decision, without: Collection[str] = ()) -> str:
    """Returns the Decision as the model itself writes it, without these arguments."""
    fields = decision.model_dump(mode="json", exclude_none=True, exclude={"declared"})
    fields["actions"] = [
        {
            "operation": action.operation,
            "reasoning": action.reasoning,
            "args": {name: value for name, value in action.args.items() if name not in without},
        }
        for action in decision.actions
    ]
    ordered_fields = {name: fields[name] for name in WRITTEN_FIRST if name in fields}
    return json.dumps(ordered_fields, ensure_ascii=False, separators=(",", ":"))


def read_decision(
    text: str, operations: Sequence[Operation], finish: str = "stop", phase: Phase = Phase.PLANNING
) -> ParsedReply:
    """Reads the Decision in a reply. Raises a ReplyUnusable that says what the model should change.

    Unknown operations and bad arguments raise nothing here: the model learns of them as results of its actions. The
    same holds for one unreadable action among others of a complete reply. Prose without any `{` or markup is taken as
    one `response`, because a response can harm nothing. It is marked doubtful, and leaves the `phase` as it is.
    """
    answer = without_thoughts(text)
    if not answer.strip() and finish == "length":
        raise ReplyUnusable(CUT_OFF)
    if not answer.strip():
        raise ReplyUnusable("The reply was empty. Send one JSON object, the Decision.")
    if "{" not in answer and "｛" not in answer:
        return _prose(answer.strip(), operations, finish, phase)
    try:
        reading, value = _find(answer)
    except ReplyUnusable:
        if finish == "length":
            raise ReplyUnusable(CUT_OFF) from None
        raise
    if reading.cut or (reading.repaired and finish == "length"):
        raise ReplyUnusable(CUT_OFF)
    refuse_too_many(len(tables(value.get("actions"))))
    is_doubtful = reading.repaired or finish == "length"
    # A repaired or cut reply may be broken because half of it is missing.
    faults = {} if is_doubtful else _faults(value, operations)
    if faults:
        value = value | {
            "actions": [_named(action) if index in faults else action for index, action in enumerate(value["actions"])]
        }
    decision = make_decision(value | {"declared": [name for name in PLAIN_FIELDS if name in value]}, operations)
    faults_by_id = {decision.actions[index].action_id: fault for index, fault in faults.items()}
    # With an unreadable action it is unclear which text belongs to which: the texts are asked for instead.
    blocks = () if faults_by_id else take_blocks(reading.rest)
    return ParsedReply(decision, "\n\n".join(decision.said()), is_doubtful, blocks, broken=faults_by_id)


def _faults(value: dict[str, Any], operations: Sequence[Operation]) -> dict[int, str]:
    """Returns, by their index, why some actions cannot be read although others can. If one of them speaks to the user,
    it returns nothing: such an action must be complete, so the whole reply is refused."""
    operations_by_name = {operation.name: operation for operation in operations}
    actions = cast("list[Any]", value["actions"]) if isinstance(value.get("actions"), list) else []
    faults: dict[int, str] = {}
    for index, action in enumerate([] if is_too_deep(value) else actions):
        try:
            Action.model_validate(action_fields(action, operations_by_name))
        except ValidationError as error:
            faults[index] = "; ".join(action_problems(error, operations, index))
    says_text = any(
        (operation := operations_by_name.get(_named(actions[index])["operation"])) and operation.says
        for index in faults
    )
    return {} if says_text or len(faults) == len(actions) else faults


def _named(fields: Any) -> dict[str, Any]:
    """Returns a stand-in for an action that cannot be read, with those fields that can be read. It is not run."""
    action = as_table(action_fields(fields, {}))
    named_action = {"operation": text_of(action, "operation") or "unnamed", "args": as_table(action.get("args"))}
    return named_action | {"reasoning": text_of(action, "reasoning").strip() or "-"}


def _prose(text: str, operations: Sequence[Operation], finish: str, phase: Phase) -> ParsedReply:
    if finish == "length":
        raise ReplyUnusable(CUT_OFF)
    if text.startswith(NO_PROSE) or RESPOND not in {operation.name for operation in operations}:
        raise ReplyUnusable("There is no Decision in the reply. Send one JSON object, the Decision.")
    answer = Action(operation=RESPOND, args={"text": text}, reasoning="the model answered in plain text")
    step = Phase.PLANNING if phase is Phase.DONE else phase
    decision = Decision.made_up(
        "answered in plain text", [answer], TaskProfile.GENERAL_CHAT, step, "pending_user", confidence=0.5
    )
    return ParsedReply(decision, text, doubtful=True)


def _find(text: str) -> tuple[ReadJson, dict[str, Any]]:
    """Returns the first object that has a Decision's fields. Other JSON counts as part of the prose around it."""
    is_list = False
    for reading in json_values(text):
        listed_values = isinstance(reading.value, list)
        is_list = is_list or listed_values
        objects = tables(reading.value if listed_values else [reading.value])
        decisions = [fields for fields in objects if not Decision.model_fields.keys().isdisjoint(fields)]
        if len(decisions) == 1:
            return reading, decisions[0]
    problem = "The reply is a list" if is_list else "The JSON in the reply is not a Decision"
    raise ReplyUnusable(f"{problem}. Send one JSON object with {', '.join(PLAIN_FIELDS)}.")
