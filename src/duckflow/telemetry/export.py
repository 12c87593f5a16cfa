"""Spans to a collector, as OTLP in JSON over HTTP, from a thread of its own. A collector that is away, slow or unhappy
costs nobody anything: what it does not take is lost without a word."""

import json
import queue
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from duckflow import __version__
from duckflow.state.known_keys import without_keys
from duckflow.telemetry.spans import listed

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
WAITING = 2_000
"""Spans that wait to be sent; more of them are lost."""
BATCH = 200
SEND_SECONDS = 2.0
LEAVE_SECONDS = 0.5
"""How long leaving waits for a collector that takes what it is given."""


class Collector(NamedTuple):
    """Where traces go, and what is said with them."""

    url: str
    headers: dict[str, str]
    resource: dict[str, str]
    contents: bool = False


def collector_of(environ: Mapping[str, str]) -> Collector | None:
    """What the environment says; None when it names no collector."""
    base = environ.get(ENDPOINT, "").strip()
    url = environ.get(TRACES, "").strip() or (f"{base.rstrip('/')}/v1/traces" if base else "")
    off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    if off or not url.startswith(("http://", "https://")):
        return None
    resource = {"service.name": "duckflow", "service.version": __version__}
    resource |= _pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    if name := environ.get("OTEL_SERVICE_NAME", ""):
        resource["service.name"] = name
    headers = _pairs(environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    headers |= _pairs(environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS", ""))
    return Collector(url, headers, resource, environ.get(CONTENTS, "").lower() == "true")


def _pairs(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in parts}


class Exporter:
    """Takes spans at once and sends them when it can."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._spans: queue.Queue[dict[str, Any] | None] = queue.Queue(WAITING)
        self._failed = False
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)
        self._thread.start()

    def take(self, span: dict[str, Any]) -> None:
        if not self._spans.full():
            self._spans.put_nowait(span)

    def close(self) -> None:
        """Send what is left; not for long, and not at all where nobody took the last ones."""
        if not self._spans.full():
            self._spans.put_nowait(None)
        if not self._failed:
            self._thread.join(LEAVE_SECONDS)

    def _work(self) -> None:
        while (first := self._spans.get()) is not None:
            spans = [first]
            while len(spans) < BATCH and not self._spans.empty():
                following = self._spans.get()
                if following is None:
                    self._send(spans)
                    return
                spans.append(following)
            self._send(spans)

    def _send(self, spans: list[dict[str, Any]]) -> None:
        # In this thread: nobody else waits for it to load.
        from urllib.request import Request, build_opener

        scope = {"scope": {"name": "duckflow", "version": __version__}, "spans": spans}
        told = {
            "resourceSpans": [{"resource": {"attributes": listed(self._collector.resource)}, "scopeSpans": [scope]}]
        }
        headers = {"content-type": "application/json", **self._collector.headers}
        try:
            request = Request(self._collector.url, without_keys(json.dumps(told)).encode(), headers)
            with build_opener().open(request, timeout=SEND_SECONDS) as answer:
                answer.read()
            self._failed = False
        except (OSError, ValueError):
            self._failed = True
