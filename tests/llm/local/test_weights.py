"""The folder of models: adopting, listing, removing, two downloads at once, and a full disk."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from duckflow.errors import DuckflowError, ModelError, UsageError
from duckflow.llm.local.catalogue import LocalModel, known_model, known_models
from duckflow.llm.local.hub import Stage
from duckflow.llm.local.weights import Weights
from duckflow.llm.settings import DEFAULT_MODEL, LocalSettings
from tests.llm.local.tiny import tiny_model

CONTENT = b"weights" * 100_000
MODEL = tiny_model(CONTENT)


def own_file(tmp_path: Path, content: bytes = CONTENT) -> Path:
    file = tmp_path / "downloads" / "mine.gguf"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("model", [model for model in known_models() if model.parts], ids=lambda model: model.name)
def test_the_parts_of_a_known_model_add_up(model: LocalModel) -> None:
    assert sum(part.size for part in model.parts) == model.size
    assert len({part.member for part in model.parts}) == len(model.parts)
    assert len(bytes.fromhex(model.sha256)) == 32
    assert known_model(model.name) is model


def test_the_default_model_is_known() -> None:
    assert LocalSettings().model == DEFAULT_MODEL == known_model(DEFAULT_MODEL).name


def test_for_an_unknown_name_the_known_ones_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Weights(tmp_path, {}, (MODEL,)).pull("tiney")
    assert caught.value.values == {"name": "tiney", "known": "tiny"}


def test_a_file_of_the_user_is_adopted_and_removing_the_model_leaves_it(tmp_path: Path) -> None:
    weights = Weights(tmp_path / "models", {}, (MODEL,))
    assert weights.installed() == ()
    assert weights.remove("tiny") is False
    mine = own_file(tmp_path)
    path = weights.adopt("tiny", mine)
    assert path.read_bytes() == CONTENT
    assert weights.path("tiny") == path
    assert weights.adopt("tiny", mine) == weights.pull("tiny") == path
    assert weights.remove("tiny") is True
    assert weights.path("tiny") is None
    assert weights.remove("tiny") is False
    assert mine.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"", b"weights", b"W" + CONTENT[1:]])
def test_another_file_is_not_adopted(tmp_path: Path, content: bytes) -> None:
    weights = Weights(tmp_path / "models", {}, (MODEL,))
    mine = own_file(tmp_path, content)
    with pytest.raises(ModelError) as caught:
        weights.adopt("tiny", mine)
    assert caught.value.key == "models.wrong_file"
    assert mine.read_bytes() == content
    assert weights.installed() == ()
    with pytest.raises(UsageError):
        weights.adopt("tiny", tmp_path / "nowhere.gguf")


def test_a_file_cut_short_under_the_models_name_does_not_count(tmp_path: Path) -> None:
    weights = Weights(tmp_path, {}, (MODEL,))
    (tmp_path / "tiny.gguf").write_bytes(CONTENT[:100])
    assert weights.installed() == ()
    assert weights.adopt("tiny", own_file(tmp_path)).read_bytes() == CONTENT


def test_a_full_disk_is_reported_before_anything_is_downloaded(tmp_path: Path) -> None:
    weights = Weights(tmp_path, {}, (MODEL,), free=lambda folder: 5 * 1024 * 1024)
    with pytest.raises(ModelError) as caught:
        weights.pull("tiny")
    assert caught.value.key == "models.no_space"
    assert caught.value.values == {"name": "tiny", "folder": str(tmp_path), "needed_mb": 269, "free_mb": 5}
    assert weights.holdings()[0].size == 0


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError) as caught:
        Weights(tmp_path / "file" / "models", {}, (MODEL,)).pull("tiny")
    assert caught.value.key == "models.disk"


def test_two_downloads_at_once_fetch_only_once(tmp_path: Path) -> None:
    asked: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    first_is_under_way, second_waits = threading.Event(), threading.Event()
    stages: list[Stage] = []
    refused: list[str] = []

    def first(done: int, total: int, stage: Stage) -> None:
        first_is_under_way.set()
        second_waits.wait(10)

    def second(done: int, total: int, stage: Stage) -> None:
        stages.append(stage)
        second_waits.set()

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        weights = Weights(tmp_path, {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}"}, (MODEL,))
        pulling = threading.Thread(target=weights.pull, args=("tiny", first))
        pulling.start()
        first_is_under_way.wait(10)
        try:
            weights.remove("tiny")
        except DuckflowError as error:
            refused.append(error.key)
        path = weights.pull("tiny", second)
        pulling.join()
        server.shutdown()
        serving.join()

    assert path.read_bytes() == CONTENT
    assert refused == ["models.busy"]
    assert set(stages) == {"other_pull"}
    assert len(asked) == 1
