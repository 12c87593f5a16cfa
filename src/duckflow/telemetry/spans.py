"""Turns as spans, after the conventions for generative AI: `invoke_agent` for a turn, a job or an agent, in it `chat`
for each call of the model and `execute_tool` for each action; Gates, Duck Calls and vitals as events and attributes.
What was said, written or printed is left out unless it is asked for."""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    Event,
    MessageAdded,
    QuestionAsked,
    QuestionClosed,
    TurnBegan,
    TurnEnded,
    UsageReported,
    VitalsChanged,
    Waiting,
)
from duckflow.events.work import AgentEnded, AgentStarted, JobEnded, JobStarted
from duckflow.outcome import ended_well

INTERNAL, CLIENT = 1, 3
FAILED = 2
ASKS_MODEL = "wait.model"


@dataclass
class Span:
    """A stretch of work that has begun."""

    name: str
    operation: str
    began: float
    parent: str = ""
    kind: int = INTERNAL
    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    failure: str = ""

    def happened(self, name: str, at: float, **attributes: Any) -> None:
        self.events.append({"timeUnixNano": _nanos(at), "name": name, "attributes": listed(attributes)})

    def ended(self, at: float) -> dict[str, Any]:
        """As the protocol has it."""
        told: dict[str, Any] = {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": _nanos(self.began),
            "endTimeUnixNano": _nanos(max(at, self.began)),
            "attributes": listed({"gen_ai.operation.name": self.operation} | self.attributes),
            "events": self.events,
        }
        if self.parent:
            told["parentSpanId"] = self.parent
        if self.failure:
            told["status"] = {"code": FAILED}
            told["attributes"] += listed({"error.type": self.failure})
        return told


class Tracer:
    """Listens to a conversation, and hands on each span that has ended."""

    def __init__(self, session_id: str, ended: Callable[[dict[str, Any]], None], contents: bool = False) -> None:
        self._session = session_id
        self._ended = ended
        self._contents = contents
        self._turn: Span | None = None
        self._jobs: dict[str, Span] = {}
        self._asked: list[float] = []
        self._actions: dict[str, Span] = {}
        self._questions: dict[str, tuple[Span, str]] = {}
        """Where each open question belongs, and whether it is a Gate or a Duck Call."""

    def hear(self, _number: int, event: Event) -> None:
        match event:
            case TurnBegan():
                self._turn = self._agent("duckflow", event.at)
            case TurnEnded() if self._turn:
                self._turn.attributes["duckflow.outcome"] = event.outcome
                self._turn.failure = "" if ended_well(event.outcome) else event.outcome
                self._close(self._turn, event.at)
                self._turn = None
            case JobStarted():
                self._jobs[event.job.job_id] = self._agent("duckflow.job", event.at)
            case AgentStarted():
                agent = self._jobs[event.agent.agent_id] = self._agent(f"duckflow.{event.agent.kind}", event.at)
                if self._turn:
                    agent.trace_id, agent.parent = self._turn.trace_id, self._turn.span_id
            case AgentEnded() if agent := self._jobs.pop(event.agent_id, None):
                agent.attributes["duckflow.outcome"] = event.status
                agent.failure = event.status if event.status == "failed" else ""
                self._close(agent, event.at)
            case JobEnded() if job := self._jobs.pop(event.job_id, None):
                job.attributes["duckflow.outcome"] = event.status
                job.failure = event.status if event.status == "failed" else ""
                self._close(job, event.at)
            case Waiting() if event.why.key == ASKS_MODEL:
                self._asked.append(event.at)
            case UsageReported():
                self._chat(event)
            case ActionStarted():
                self._begin_action(event)
            case ActionFinished() if action := self._actions.pop(event.result.action_id, None):
                action.failure = "" if event.result.ok else "tool_error"
                if self._contents:
                    action.attributes["gen_ai.tool.call.result"] = event.result.for_model
                self._close(action, event.at)
            case _:
                self._note(event)

    def _note(self, event: Event) -> None:
        """What happens inside a turn or a job."""
        match event:
            case QuestionAsked() if event.journaled:
                self._ask(event)
            case QuestionClosed() if asked := self._questions.pop(event.question_id, None):
                span, name = asked
                if event.answer:
                    told = {f"duckflow.{name}.answer": event.answer.choice}
                    span.happened(f"duckflow.{name}.answered", event.at, **told)
            case VitalsChanged() if self._turn:
                for name, value in event.vitals.model_dump().items():
                    self._turn.attributes[f"duckflow.vitals.{name}"] = value
            case MessageAdded() if self._contents and self._turn and not event.message.job:
                role, text = event.message.role, event.message.text
                self._turn.happened("gen_ai.message", event.at, **{"gen_ai.role": role, "gen_ai.content": text})
            case _:
                pass

    def _ask(self, event: QuestionAsked) -> None:
        question, gate = event.question, event.question.gate
        if (span := self._owner(question.job)) is None:
            return
        self._questions[question.question_id] = span, "gate" if gate else "duck_call"
        if gate:
            about = {"duckflow.gate.risk": gate.risk, "duckflow.gate.operations": gate.operations}
            span.happened("duckflow.gate.opened", event.at, **about)
        else:
            span.happened("duckflow.duck_call", event.at, **{"duckflow.duck_call.reason": question.reason})

    def _agent(self, name: str, at: float) -> Span:
        about = {"gen_ai.agent.name": name, "gen_ai.conversation.id": self._session}
        return Span(f"invoke_agent {name}", "invoke_agent", at, attributes=about)

    def _owner(self, job: str) -> Span | None:
        return self._jobs.get(job) if job else self._turn

    def _inside(self, owner: Span | None, name: str, operation: str, at: float) -> Span:
        span = Span(name, operation, at)
        if owner:
            span.trace_id, span.parent = owner.trace_id, owner.span_id
        return span

    def _chat(self, event: UsageReported) -> None:
        endpoint, _, model = event.model.partition(":")
        owner = self._owner(event.job) or self._turn or next(iter(self._jobs.values()), None)
        span = self._inside(owner, f"chat {model}", "chat", self._asked.pop(0) if self._asked else event.at)
        span.kind = CLIENT
        used = event.usage
        span.attributes = {
            "gen_ai.provider.name": endpoint,
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": used.prompt_tokens,
            "gen_ai.usage.output_tokens": used.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": used.cached_tokens,
            "duckflow.cost_usd": used.cost_usd,
        }
        self._close(span, event.at)

    def _begin_action(self, event: ActionStarted) -> None:
        action = event.action
        span = self._inside(self._owner(event.job), f"execute_tool {action.operation}", "execute_tool", event.at)
        span.attributes = {
            "gen_ai.tool.name": action.operation,
            "gen_ai.tool.call.id": action.action_id,
            "gen_ai.tool.type": "function",
        }
        if self._contents:
            span.attributes["gen_ai.tool.call.arguments"] = json.dumps(action.args, ensure_ascii=False)
        self._actions[action.action_id] = span

    def _close(self, span: Span, at: float) -> None:
        self._ended(span.ended(at))


def listed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as the protocol has them."""
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case tuple() | list():
            return {"arrayValue": {"values": [_value(str(one)) for one in cast("Sequence[Any]", value)]}}
        case _:
            return {"stringValue": str(value)}


def _nanos(at: float) -> str:
    return str(int(at * 1_000_000) * 1000)
