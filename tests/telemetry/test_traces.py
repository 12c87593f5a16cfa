"""Traces as a collector receives them, read by the official protobuf."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from duckflow.state.question import Answer
from duckflow.telemetry.export import CONTENTS, ENDPOINT, Exporter, collector_of
from duckflow.telemetry.spans import Tracer
from tests.journeys.cast import calls, hand, on_stage
from tests.journeys.story import Story, act, decide, respond

# Generated code without types.
PARSE: Any = import_module("google.protobuf.json_format").ParseDict
OFFICIAL: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2").ExportTraceServiceRequest
SECRET = "the word nobody may hear"
LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
SCRIPT = [
    decide(act("file_ops.write_file", path="a.txt", content=SECRET), next_step="continue"),
    *[LOOK] * 4,
    decide(respond("finished")),
]


class TraceServer:
    """Keeps what it is sent, as the official messages."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.raw = ""
        self.came = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.raw += body.decode()
                outer.spans += _official(json.loads(body))
                self.send_response(200)
                self.end_headers()
                outer.came.set()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _official(told: dict[str, Any]) -> list[Any]:
    """In OTLP's JSON ids are hexadecimal, in that of protobuf base64: they are all that differs."""
    for span in told["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    parsed = PARSE(told, OFFICIAL())
    return list(parsed.resource_spans[0].scope_spans[0].spans)


@pytest.fixture
def server() -> Iterator[TraceServer]:
    one = TraceServer()
    yield one
    one.close()


async def traced(top: Path, environ: dict[str, str]) -> None:
    collector = collector_of(environ)
    assert collector
    exporter = Exporter(collector)
    story = Story(top, SCRIPT, mode="ask")
    story.answers = [Answer(choice="yes"), Answer(choice="stop")]
    story.chat.hear(Tracer("s", exporter.take, collector.contents).hear)
    assert await story.tell("write a.txt and look around") == "pacemaker"
    exporter.close()


def drawn(spans: list[Any]) -> list[str]:
    """Each span with its place, and what happened in it."""
    names = {span.span_id: span.name for span in spans}
    lines: list[str] = []
    for span in spans:
        about = {one.key: one.value.string_value for one in span.attributes if one.value.string_value}
        told = " ".join(f"{key}={value}" for key, value in about.items() if key.startswith(("duckflow", "error")))
        lines.append(f"{names.get(span.parent_span_id, '')} > {span.name} {told}".strip())
        for event in span.events:
            values = ", ".join(
                one.value.string_value or one.value.array_value.values[0].string_value for one in event.attributes
            )
            lines.append(f"    {event.name}: {values}")
    return lines


async def test_a_turn_with_a_gate_and_a_duck_call(tmp_path: Path, server: TraceServer) -> None:
    await traced(tmp_path, {ENDPOINT: server.url})
    assert drawn(server.spans) == snapshot(
        [
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow > execute_tool file_ops.write_file",
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow > execute_tool file_ops.list_files",
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow > execute_tool file_ops.list_files",
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow > execute_tool file_ops.list_files",
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow > execute_tool file_ops.list_files",
            "> invoke_agent duckflow duckflow.outcome=pacemaker error.type=pacemaker",
            "    duckflow.gate.opened: medium, file_ops.write_file",
            "    duckflow.gate.answered: yes",
            "    duckflow.duck_call: STAGNATION",
            "    duckflow.duck_call.answered: stop",
        ]
    )
    agent = server.spans[-1]
    assert {one.trace_id for one in server.spans} == {agent.trace_id} and len(agent.trace_id) == 16
    assert all(agent.start_time_unix_nano <= one.start_time_unix_nano for one in server.spans)
    assert {one.key for one in agent.attributes} >= {"duckflow.vitals.mood", "duckflow.vitals.stamina"}
    assert SECRET not in server.raw and "look around" not in server.raw


async def test_an_agent_is_inside_its_turn(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    main = [calls(hand("look")), decide(respond("finished"))]
    story, _ = on_stage(tmp_path, main, {"explore-1": [calls(act("file_ops.list_files")), decide(respond("It."))]})
    story.chat.hear(Tracer("s", told.append).hear)
    assert await story.tell("look around") == "done"
    names = {span["spanId"]: span["name"] for span in told}
    drawn_in = [f"{names.get(span.get('parentSpanId', ''), '')} > {span['name'].strip()}" for span in told]
    assert drawn_in == snapshot(
        [
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow.explore > chat",
            "invoke_agent duckflow.explore > execute_tool file_ops.list_files",
            "invoke_agent duckflow.explore > chat",
            "invoke_agent duckflow > invoke_agent duckflow.explore",
            "invoke_agent duckflow > execute_tool agent.run",
            "invoke_agent duckflow > chat",
            "invoke_agent duckflow > execute_tool response",
            " > invoke_agent duckflow",
        ]
    )


async def test_contents_are_told_when_they_are_asked_for(tmp_path: Path, server: TraceServer) -> None:
    await traced(tmp_path, {ENDPOINT: f"{server.url}/", CONTENTS: "true"})
    assert SECRET in server.raw and "look around" in server.raw


async def test_without_a_collector_nothing_waits(tmp_path: Path, server: TraceServer) -> None:
    server.close()
    collector = collector_of({ENDPOINT: server.url})
    assert collector
    exporter, slowest = Exporter(collector), 0.0
    tracer = Tracer("s", exporter.take)
    story = Story(tmp_path, SCRIPT[-1:])

    def timed(number: int, event: Any) -> None:
        nonlocal slowest
        began = time.thread_time()
        tracer.hear(number, event)
        slowest = max(slowest, time.thread_time() - began)

    story.chat.hear(timed)
    assert await story.tell("hello") == "done"
    for _ in range(10_000):
        exporter.take({})
    exporter.close()
    assert slowest < 0.005


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, None),
        ({ENDPOINT: "http://c:4318"}, "http://c:4318/v1/traces"),
        ({ENDPOINT: "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://d/x"}, "https://d/x"),
        ({ENDPOINT: "c:4317"}, None),
        ({ENDPOINT: "http://c", "OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_where_traces_go(environ: dict[str, str], url: str | None) -> None:
    collector = collector_of(environ)
    assert (collector.url if collector else None) == url


def test_what_the_environment_adds() -> None:
    collector = collector_of(
        {
            ENDPOINT: "http://c",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x,b=c",
            "OTEL_SERVICE_NAME": "mine",
            "OTEL_RESOURCE_ATTRIBUTES": "team=duck",
        }
    )
    assert collector and collector.headers == {"authorization": "Bearer x", "b": "c"}
    assert collector.resource["service.name"] == "mine" and collector.resource["team"] == "duck"
