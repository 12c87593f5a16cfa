"""Traces as a collector receives them, read by the official protobuf."""

import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from duckflow.cli.setup import traced
from duckflow.llm.scripted import Line
from duckflow.state.question import Answer
from duckflow.telemetry.spans import CONTENTS, LEAVE_SECONDS
from tests.journeys.cast import calls, hand, on_stage
from tests.journeys.story import Story, act, decide, respond

# Generated code without types.
OFFICIAL: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2").ExportTraceServiceRequest
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SECRET = "the word nobody may hear"
LOOK = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
SCRIPT = [
    decide(act("file_ops.write_file", path="a.txt", content=SECRET), next_step="continue"),
    *[LOOK] * 4,
    decide(respond("finished")),
]


class TraceServer:
    """A collector that keeps what it is sent, as the official messages."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.raw = b""
        self.headers: dict[str, str] = {}
        self.resource: dict[str, str] = {}
        self.came = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.raw += body
                outer.headers |= dict(self.headers)
                for told in OFFICIAL.FromString(body).resource_spans:
                    outer.resource |= {one.key: one.value.string_value for one in told.resource.attributes}
                    outer.spans += told.scope_spans[0].spans
                self.send_response(200)
                self.end_headers()
                outer.came.set()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[TraceServer]:
    one = TraceServer()
    yield one
    one.close()


async def told(top: Path, patch: pytest.MonkeyPatch, environ: dict[str, str], script: Sequence[Line] = SCRIPT) -> None:
    story = Story(top, script, mode="ask")
    # Only now, so that the conversation has no tracer of its own: nothing would end that.
    for name, value in environ.items():
        patch.setenv(name, value)
    story.answers = [Answer(choice="yes"), Answer(choice="stop")]
    end = traced(story.chat, story.session.emit)
    await story.tell("write a.txt and look around")
    end()


def drawn(spans: list[Any]) -> list[str]:
    """Draws each span with its place, and the events in it."""
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


async def test_a_turn_with_a_gate_and_a_duck_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer
) -> None:
    await told(tmp_path, monkeypatch, {ENDPOINT: server.url})
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
    assert SECRET.encode() not in server.raw and b"look around" not in server.raw


async def test_an_agent_is_inside_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer
) -> None:
    main = [calls(hand("look")), decide(respond("finished"))]
    story, _ = on_stage(tmp_path, main, {"explore-1": [calls(act("file_ops.list_files")), decide(respond("It."))]})
    monkeypatch.setenv(ENDPOINT, server.url)
    end = traced(story.chat, story.session.emit)
    assert await story.tell("look around") == "done"
    end()
    names = {span.span_id: span.name for span in server.spans}
    drawn_in = [f"{names.get(span.parent_span_id, '')} > {span.name.strip()}" for span in server.spans]
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


async def test_contents_are_sent_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer
) -> None:
    await told(tmp_path, monkeypatch, {ENDPOINT: f"{server.url}/", CONTENTS: "true"})
    assert SECRET.encode() in server.raw and b"look around" in server.raw


async def test_a_call_that_fails_has_a_span(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer
) -> None:
    await told(tmp_path, monkeypatch, {ENDPOINT: server.url}, script=[])
    assert drawn(server.spans) == snapshot(
        [
            "invoke_agent duckflow > chat  error.type=failed",
            "> invoke_agent duckflow duckflow.outcome=failed error.type=failed",
        ]
    )


async def test_without_a_collector_nothing_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer
) -> None:
    server.close()
    story = Story(tmp_path, SCRIPT[-1:])
    monkeypatch.setenv(ENDPOINT, server.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    threads_before = set(threading.enumerate())
    end = traced(story.chat, story.session.emit)
    assert await story.tell("hello") == "done"
    began = time.monotonic()
    end()
    assert time.monotonic() - began < LEAVE_SECONDS + 1
    # The exporter tries again until its time is up. Later tests must not see its requests.
    for thread in (thread for thread in set(threading.enumerate()) - threads_before if thread.daemon):
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {ENDPOINT: ""}])
async def test_nothing_is_sent_where_traces_are_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer, off: dict[str, str]
) -> None:
    await told(tmp_path, monkeypatch, {ENDPOINT: server.url} | off)
    assert not server.spans


async def test_the_environment_adds_attributes_as_the_standard_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: TraceServer
) -> None:
    environ = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{server.url}/x",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x,b=c",
        "OTEL_SERVICE_NAME": "mine",
        "OTEL_RESOURCE_ATTRIBUTES": "team=duck",
    }
    await told(tmp_path, monkeypatch, environ)
    assert server.headers["authorization"] == "Bearer x" and server.headers["b"] == "c"
    assert server.resource["service.name"] == "mine" and server.resource["team"] == "duck"
