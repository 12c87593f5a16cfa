"""Turns as spans, after the conventions for generative AI: `invoke_agent` for a turn, a job or an agent, in it `chat`
for each call of the model and `execute_tool` for each action; Gates, Duck Calls and vitals as events and attributes.
What was said, written or printed is left out unless it is asked for."""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from duckflow.events.types import Event
from duckflow.outcome import ended_well
from duckflow.state.question import Question
from duckflow.view.items import (
    ActionItem,
    AgentItem,
    Item,
    NoticeItem,
    QuestionItem,
    ReportItem,
    RequestItem,
    TextItem,
    TurnItem,
    VitalsItem,
)
from duckflow.view.view import View

INTERNAL, CLIENT = 1, 3
FAILED = 2
ROLES = {"user": "user", "model": "assistant"}


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
        """As the wire has it."""
        span: dict[str, Any] = {
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
            span["parentSpanId"] = self.parent
        if self.failure:
            span["status"] = {"code": FAILED}
            span["attributes"] += listed({"error.type": self.failure})
        return span


class Tracer:
    """Listens to a conversation, and hands on each span that has ended."""

    def __init__(self, session_id: str, ended: Callable[[dict[str, Any]], None], contents: bool = False) -> None:
        self._session = session_id
        self._ended = ended
        self._contents = contents
        self._view = View()
        self._turn: Span | None = None
        self._jobs: dict[str, Span] = {}
        """The spans of jobs and agents, by their ids."""
        self._actions: dict[str, Span] = {}
        self._questions: dict[str, tuple[Span, str]] = {}
        """Where each open question belongs, and whether it is a Gate or a Duck Call."""

    def hear(self, number: int, event: Event) -> None:
        for item in self._view.hear(number, event):
            self._draw(item, event.at)

    def _draw(self, item: Item, at: float) -> None:
        match item:
            case TurnItem(outcome=None):
                self._turn = self._agent("duckflow", at)
            case TurnItem(outcome=outcome) if self._turn and outcome:
                self._end(self._turn, at, outcome, "" if ended_well(outcome) else outcome)
                self._turn = None
            case NoticeItem(about="job", subject="started"):
                self._jobs[item.job] = self._agent("duckflow.job", at)
            case ReportItem(status=status) if job := self._jobs.pop(item.job, None):
                self._end(job, at, status, status if status == "failed" else "")
            case AgentItem():
                self._draw_agent(item, at)
            case RequestItem():
                self._chat(item, at)
            case ActionItem():
                self._act(item, at)
            case _:
                self._note(item, at)

    def _draw_agent(self, item: AgentItem, at: float) -> None:
        if item.status == "running":
            agent = self._jobs[item.agent_id] = self._agent(f"duckflow.{item.agent_kind}", at)
            if self._turn:
                agent.trace_id, agent.parent = self._turn.trace_id, self._turn.span_id
        elif agent := self._jobs.pop(item.agent_id, None):
            self._end(agent, at, item.status, item.status if item.status == "failed" else "")

    def _act(self, item: ActionItem, at: float) -> None:
        if item.state == "running":
            self._begin_action(item, at)
        elif action := self._actions.pop(item.id, None) if item.result else None:
            action.failure = "" if item.state == "done" else "tool_error"
            if self._contents and item.result:
                action.attributes["gen_ai.tool.call.result"] = item.result.for_model
            self._close(action, at)

    def _note(self, item: Item, at: float) -> None:
        """What happens inside a turn or a job."""
        match item:
            case QuestionItem(closed=False, question=question) if question and question.on_record:
                self._ask(question, at)
            case QuestionItem(closed=True) if asked := self._questions.pop(item.id, None):
                span, name = asked
                if item.answer:
                    about = {f"duckflow.{name}.answer": item.answer.choice}
                    span.happened(f"duckflow.{name}.answered", at, **about)
            case VitalsItem() if self._turn:
                for name, value in item.vitals.model_dump().items():
                    self._turn.attributes[f"duckflow.vitals.{name}"] = value
            case TextItem(by="user" | "model", state="whole") if self._contents and self._turn:
                about = {"gen_ai.role": ROLES[item.by], "gen_ai.content": item.text}
                self._turn.happened("gen_ai.message", at, **about)
            case _:
                pass

    def _ask(self, question: Question, at: float) -> None:
        gate = question.gate
        if question.question_id in self._questions or (span := self._owner(question.job)) is None:
            return
        self._questions[question.question_id] = span, "gate" if gate else "duck_call"
        if gate:
            about = {"duckflow.gate.risk": gate.risk, "duckflow.gate.operations": gate.operations}
            span.happened("duckflow.gate.opened", at, **about)
        else:
            span.happened("duckflow.duck_call", at, **{"duckflow.duck_call.reason": question.reason})

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

    def _chat(self, item: RequestItem, at: float) -> None:
        endpoint, _, model = item.model.partition(":")
        owner = self._owner(item.job) or self._turn or next(iter(self._jobs.values()), None)
        span = self._inside(owner, f"chat {model}", "chat", item.at)
        span.kind = CLIENT
        used = item.usage
        span.attributes = {
            "gen_ai.provider.name": endpoint,
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": used.prompt_tokens,
            "gen_ai.usage.output_tokens": used.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": used.cached_tokens,
            "duckflow.cost_usd": used.cost_usd,
        }
        self._close(span, at)

    def _begin_action(self, item: ActionItem, at: float) -> None:
        span = self._inside(self._owner(item.job), f"execute_tool {item.operation}", "execute_tool", at)
        span.attributes = {
            "gen_ai.tool.name": item.operation,
            "gen_ai.tool.call.id": item.id,
            "gen_ai.tool.type": "function",
        }
        if self._contents and item.action:
            span.attributes["gen_ai.tool.call.arguments"] = json.dumps(item.action.args, ensure_ascii=False)
        self._actions[item.id] = span

    def _end(self, span: Span, at: float, outcome: str, failure: str) -> None:
        """A turn, a job or an agent is over."""
        span.attributes["duckflow.outcome"] = outcome
        span.failure = failure
        self._close(span, at)

    def _close(self, span: Span, at: float) -> None:
        self._ended(span.ended(at))


def listed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as the wire has them."""
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
