"""Downloads from the hub: whole, resumed, broken off, and from a hub that sends wrong bytes."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from duckflow.errors import ProviderUnreachable
from duckflow.llm.local.hub import Stage
from duckflow.llm.local.weights import Weights
from tests.llm.local.tiny import tiny_model

CONTENT = bytes(range(256)) * 4096
MODEL = tiny_model(CONTENT)


class HubOnLoopback(ThreadingHTTPServer):
    """A hub with one file and selectable faults."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FileOfTheHub)
        self.content = CONTENT
        self.knows_range = True
        self.status = 0
        self.tells_sums = True
        self.breaks_after: list[int] = []
        self.asked: list[str] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class FileOfTheHub(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        hub = self.server
        assert isinstance(hub, HubOnLoopback)
        # The real hub does the same: headers of the redirect give the size and the hash of the file.
        self.send_response(302)
        self.send_header("location", "/elsewhere")
        if hub.tells_sums:
            self.send_header("x-linked-size", str(len(CONTENT)))
            self.send_header("x-linked-etag", f'"{hashlib.sha256(CONTENT).hexdigest()}"')
        self.end_headers()

    def do_GET(self) -> None:
        hub = self.server
        assert isinstance(hub, HubOnLoopback)
        wanted = self.headers.get("Range", "")
        hub.asked.append(wanted)
        if self.path != "/someone/tiny/resolve/main/tiny.gguf":
            self.send_error(404)
            return
        if hub.status:
            self.send_error(hub.status)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and hub.knows_range else 0
        body = hub.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: hub.breaks_after.pop(0)] if hub.breaks_after else body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[HubOnLoopback]:
    with HubOnLoopback() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def weights(folder: Path, hub: HubOnLoopback) -> Weights:
    return Weights(folder, {"HF_ENDPOINT": hub.endpoint}, (MODEL,))


def partial(folder: Path, content: bytes) -> None:
    (folder / ".tiny.gguf.partial").write_bytes(content)


def test_a_model_is_downloaded_whole_and_progress_is_reported(tmp_path: Path, hub: HubOnLoopback) -> None:
    reports: list[tuple[int, int, Stage]] = []
    path = weights(tmp_path, hub).pull("tiny", lambda done, total, stage: reports.append((done, total, stage)))
    assert path.read_bytes() == CONTENT
    assert reports[0] == (0, MODEL.size, "hub")
    assert reports[-1] == (MODEL.size, MODEL.size, "check")
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == ["tiny.gguf"]


def test_a_file_that_exists_is_not_downloaded_again(tmp_path: Path, hub: HubOnLoopback) -> None:
    folder = weights(tmp_path, hub)
    assert folder.pull("tiny") == folder.pull("tiny") == folder.path("tiny")
    assert hub.asked == [""]
    assert [holding.model.name for holding in folder.installed()] == ["tiny"]


def test_a_download_is_resumed_in_the_middle(tmp_path: Path, hub: HubOnLoopback) -> None:
    partial(tmp_path, CONTENT[:700_000])
    folder = weights(tmp_path, hub)
    assert [(holding.size, holding.complete) for holding in folder.holdings()] == [(700_000, False)]
    assert folder.pull("tiny").read_bytes() == CONTENT
    assert hub.asked == ["bytes=700000-"]


def test_a_broken_connection_is_resumed(tmp_path: Path, hub: HubOnLoopback) -> None:
    hub.breaks_after = [600_000, 300_000]
    assert weights(tmp_path, hub).pull("tiny").read_bytes() == CONTENT
    assert len(hub.asked) == 3
    assert all(wanted.startswith("bytes=") for wanted in hub.asked[1:])


def test_a_download_that_the_user_interrupts_is_resumed_later(tmp_path: Path, hub: HubOnLoopback) -> None:
    def interrupt(done: int, total: int, stage: Stage) -> None:
        if done:
            raise KeyboardInterrupt

    hub.breaks_after = [600_000]
    with pytest.raises(KeyboardInterrupt):
        weights(tmp_path, hub).pull("tiny", interrupt)
    assert not (tmp_path / "tiny.gguf").exists()
    asked_before = len(hub.asked)
    assert weights(tmp_path, hub).pull("tiny").read_bytes() == CONTENT
    assert all(wanted.startswith("bytes=") for wanted in hub.asked[asked_before:])


def test_a_hub_without_range_sends_it_all_again(tmp_path: Path, hub: HubOnLoopback) -> None:
    hub.knows_range = False
    partial(tmp_path, CONTENT[:1000])
    assert weights(tmp_path, hub).pull("tiny").read_bytes() == CONTENT


@pytest.mark.parametrize("stale", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_a_damaged_partial_file_is_noticed_and_downloaded_anew(
    tmp_path: Path, hub: HubOnLoopback, stale: bytes
) -> None:
    partial(tmp_path, stale)
    assert weights(tmp_path, hub).pull("tiny").read_bytes() == CONTENT


def test_bytes_with_another_hash_never_get_the_models_name(tmp_path: Path, hub: HubOnLoopback) -> None:
    hub.content = b"y" * len(CONTENT)
    with pytest.raises(ProviderUnreachable) as caught:
        weights(tmp_path, hub).pull("tiny")
    assert caught.value.key == "models.damaged"
    assert "wrong sha256" in str(caught.value.values["reasons"])
    assert [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []


@pytest.mark.parametrize(
    ("content", "reason"), [(b"<html>sign in first</html>", "26 bytes"), (CONTENT + b"more", "1048580 bytes")]
)
def test_a_file_of_another_size_is_not_downloaded(
    tmp_path: Path, hub: HubOnLoopback, content: bytes, reason: str
) -> None:
    hub.content = content
    with pytest.raises(ProviderUnreachable) as caught:
        weights(tmp_path, hub).pull("tiny")
    assert caught.value.key == "models.no_source"
    assert reason in str(caught.value.values["reasons"])


@pytest.mark.parametrize("status", [403, 404, 429, 503])
def test_when_the_hub_refuses_the_user_is_told_what_to_do(tmp_path: Path, hub: HubOnLoopback, status: int) -> None:
    hub.status = status
    with pytest.raises(ProviderUnreachable) as caught:
        weights(tmp_path, hub).pull("tiny")
    assert caught.value.key == "models.no_source"
    assert caught.value.values["path"] == str(tmp_path / "tiny.gguf")
    assert f"HTTP {status}" in str(caught.value.values["reasons"])


@pytest.mark.parametrize("endpoint", ["nonsense", "http://[", "ftp://127.0.0.1", "http://127.0.0.1:1"])
def test_a_malformed_endpoint_gives_an_error_and_no_traceback(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(ProviderUnreachable):
        Weights(tmp_path, {"HF_ENDPOINT": endpoint}, (MODEL,)).pull("tiny")


UNSURE = replace(MODEL, sha256="", size=len(CONTENT) - 5000, parts=())
"""Known by name only: what the file must be the hub says."""


def test_the_hubs_own_hash_is_used_for_a_model_without_one(tmp_path: Path, hub: HubOnLoopback) -> None:
    here = Weights(tmp_path, {"HF_ENDPOINT": hub.endpoint}, (UNSURE,))
    partial(tmp_path, CONTENT[:70_000])
    path = here.pull("tiny")
    assert path.read_bytes() == CONTENT and hub.asked == ["bytes=70000-"]
    assert here.path("tiny") == path
    path.unlink()
    hub.content = CONTENT[:-1] + b"?"
    with pytest.raises(ProviderUnreachable) as caught:
        here.pull("tiny")
    assert caught.value.key == "models.damaged" and here.path("tiny") is None


def test_a_hub_that_sends_no_hash_is_not_trusted(tmp_path: Path, hub: HubOnLoopback) -> None:
    hub.tells_sums = False
    with pytest.raises(ProviderUnreachable) as caught:
        Weights(tmp_path, {"HF_ENDPOINT": hub.endpoint}, (UNSURE,)).pull("tiny")
    assert caught.value.key == "models.no_source" and hub.asked == []
