"""Turns as spans, after the conventions for generative AI: `invoke_agent` for a turn, a job or an agent, in it `chat`
for each call of the model and `execute_tool` for each action; Gates, Duck Calls and vitals as events and attributes.
Messages, arguments and outputs are left out unless they are asked for.

The official SDK makes the spans and sends them from a thread of its own. It reads the standard's environment variables
itself. Spans that a collector does not take are lost, and nobody waits for them."""

import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context

from duckflow import __version__
from duckflow.errors import ended_well
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.state.question import Question
from duckflow.view.items import (
    ActionItem,
    AgentItem,
    Item,
    NoticeItem,
    NowItem,
    QuestionItem,
    ReportItem,
    RequestItem,
    TextItem,
    TurnItem,
    VitalsItem,
)
from duckflow.view.view import ASKS_MODEL, View
from duckflow.whole_text import without_keys

CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LEAVE_SECONDS = 0.5
ROLES = {"user": "user", "model": "assistant"}


def trace_conversation(conversation: Conversation) -> Callable[[], None]:
    """Sends spans of a conversation to the collector that the environment names. Returns a function that sends the
    remaining spans, and waits only a moment for that."""
    name = os.environ.get("OTEL_SERVICE_NAME") or "duckflow"
    resource = Resource.create({"service.name": name, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    contents = os.environ.get(CONTENTS, "").lower() == "true"
    conversation.hear(TurnTracer(conversation.state.session_id, provider.get_tracer("duckflow"), contents).hear)

    def close() -> None:
        shutdown_thread = threading.Thread(target=provider.shutdown, daemon=True)
        shutdown_thread.start()
        shutdown_thread.join(LEAVE_SECONDS)

    return close


class TurnTracer:
    """Listens to a conversation, and begins and ends its spans."""

    def __init__(self, session_id: str, tracer: Tracer, contents: bool = False) -> None:
        self._session = session_id
        self._tracer = tracer
        self._contents = contents
        self._view = View()
        self._turn: Span | None = None
        self._jobs: dict[str, Span] = {}
        """The spans of jobs and agents, by their ids."""
        self._actions: dict[str, Span] = {}
        self._questions: dict[str, tuple[Span, str]] = {}
        """The span of each open question, and whether it is a Gate (a question before a risky action) or a Duck Call (a
        call for the user's help)."""
        self._asked: tuple[float, str] | None = None
        """The time and the model of a request in this turn that has no answer yet."""

    def hear(self, number: int, event: Event) -> None:
        for item in self._view.hear(number, event):
            self._draw(item, event.at)

    def _draw(self, item: Item, at: float) -> None:
        match item:
            case TurnItem(outcome=None):
                self._turn = self._agent("duckflow", at)
            case TurnItem(outcome=outcome) if self._turn and outcome:
                failure = "" if ended_well(outcome) else outcome
                self._fail_chat(at, failure)
                self._end(self._turn, at, failure, {"duckflow.outcome": outcome})
                self._turn = None
            case NoticeItem(about="job", subject="started"):
                self._jobs[item.job] = self._agent("duckflow.job", at)
            case ReportItem(status=status) if job := self._jobs.pop(item.job, None):
                self._end(job, at, status if status == "failed" else "", {"duckflow.outcome": status})
            case AgentItem(status="running"):
                self._jobs[item.agent_id] = self._agent(f"duckflow.{item.agent_kind}", at, self._turn)
            case AgentItem(status=status) if agent := self._jobs.pop(item.agent_id, None):
                self._end(agent, at, status if status == "failed" else "", {"duckflow.outcome": status})
            case NowItem(doing=doing) if doing and doing.key == ASKS_MODEL:
                self._asked = at, str(doing.values.get("model", ""))
            case NoticeItem(about="retry", what=what):
                self._fail_chat(at, what.key if what else "retry")
            case RequestItem():
                self._chat(item, at)
            case ActionItem():
                self._act(item, at)
            case _:
                self._note(item, at)

    def _act(self, item: ActionItem, at: float) -> None:
        if item.state == "running":
            attributes = {
                "gen_ai.tool.name": item.operation,
                "gen_ai.tool.call.id": item.id,
                "gen_ai.tool.type": "function",
            }
            if self._contents and item.action:
                attributes["gen_ai.tool.call.arguments"] = json.dumps(item.action.args, ensure_ascii=False)
            self._actions[item.id] = self._begin("execute_tool", item.operation, at, attributes, self._owner(item.job))
        elif action := self._actions.pop(item.id, None) if item.result else None:
            result = {"gen_ai.tool.call.result": item.result.for_model} if self._contents and item.result else {}
            self._end(action, at, "" if item.state == "done" else "tool_error", result)

    def _note(self, item: Item, at: float) -> None:
        """Adds an item that happens inside a turn or a job to the span of that turn or job."""
        match item:
            case QuestionItem(closed=False, question=question) if question and question.on_record:
                self._ask(question, at)
            case QuestionItem(closed=True) if open_question := self._questions.pop(item.id, None):
                question_span, name = open_question
                if item.answer:
                    answer = {f"duckflow.{name}.answer": item.answer.choice}
                    question_span.add_event(f"duckflow.{name}.answered", answer, _nanos(at))
            case VitalsItem() if self._turn:
                vitals = item.vitals.model_dump().items()
                self._turn.set_attributes({f"duckflow.vitals.{name}": value for name, value in vitals})
            case TextItem(by="user" | "model", state="whole") if self._contents and self._turn:
                attributes = {"gen_ai.role": ROLES[item.by], "gen_ai.content": item.text}
                self._turn.add_event("gen_ai.message", _without_keys(attributes), _nanos(at))
            case _:
                pass

    def _ask(self, question: Question, at: float) -> None:
        gate = question.gate
        if question.question_id in self._questions or (span := self._owner(question.job)) is None:
            return
        self._questions[question.question_id] = span, "gate" if gate else "duck_call"
        if gate:
            attributes = {"duckflow.gate.risk": gate.risk, "duckflow.gate.operations": gate.operations}
            span.add_event("duckflow.gate.opened", attributes, _nanos(at))
        else:
            span.add_event("duckflow.duck_call", {"duckflow.duck_call.reason": question.reason}, _nanos(at))

    def _chat(self, item: RequestItem, at: float) -> None:
        self._asked = None
        usage = item.usage
        attributes = {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "duckflow.cost_usd": usage.cost_usd,
        }
        owner = self._owner(item.job) or self._turn or next(iter(self._jobs.values()), None)
        self._end(self._begin_chat(item.model, item.at, owner), at, "", attributes)

    def _fail_chat(self, at: float, why: str) -> None:
        """Makes a span for a request without an answer, because it was a call of the model, too."""
        if self._asked and why:
            asked_at, model = self._asked
            self._end(self._begin_chat(model, asked_at, self._turn), at, why)
        self._asked = None

    def _begin_chat(self, name: str, at: float, owner: Span | None) -> Span:
        endpoint, _, model = name.partition(":")
        attributes = {"gen_ai.provider.name": endpoint, "gen_ai.request.model": model}
        return self._begin("chat", model, at, attributes, owner, SpanKind.CLIENT)

    def _agent(self, name: str, at: float, owner: Span | None = None) -> Span:
        attributes = {"gen_ai.agent.name": name, "gen_ai.conversation.id": self._session}
        return self._begin("invoke_agent", name, at, attributes, owner)

    def _owner(self, job: str) -> Span | None:
        return self._jobs.get(job) if job else self._turn

    def _begin(
        self,
        operation: str,
        name: str,
        at: float,
        about: Mapping[str, Any],
        owner: Span | None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        context = set_span_in_context(owner) if owner else None
        attributes = _without_keys({"gen_ai.operation.name": operation, **about})
        return self._tracer.start_span(f"{operation} {name}", context, kind, attributes, start_time=_nanos(at))

    def _end(self, span: Span, at: float, failure: str, about: Mapping[str, Any] | None = None) -> None:
        span.set_attributes(_without_keys({**(about or {}), **({"error.type": failure} if failure else {})}))
        if failure:
            span.set_status(StatusCode.ERROR)
        span.end(_nanos(at))


def _without_keys(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: without_keys(value) if isinstance(value, str) else value for name, value in attributes.items()}


def _nanos(at: float) -> int:
    return int(at * 1_000_000) * 1000
