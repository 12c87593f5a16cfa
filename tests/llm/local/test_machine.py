"""The choice of a local model for a machine."""

import struct
from pathlib import Path

import pytest

from duckflow.errors import UsageError
from duckflow.llm.local.catalogue import known_model, known_models, model_of_file
from duckflow.llm.local.machine import GIB, ThisMachine, fitting_context, needed, recommended, this_machine, why_not


@pytest.mark.parametrize(
    ("gigabytes", "card", "name", "context"),
    [
        (2, 0, "qwen2.5-coder-1.5b", 8_192),
        (4, 0, "qwen2.5-coder-1.5b", 8_192),
        (8, 0, "qwen3-4b", 16_384),
        (16, 0, "gpt-oss-20b", 32_768),
        (32, 0, "qwen3-coder-30b", 32_768),
        (64, 0, "qwen3-coder-30b", 32_768),
        (16, 8, "gpt-oss-20b", 32_768),
        (32, 24, "qwen3-coder-30b", 65_536),
        (64, 48, "qwen3-coder-30b-q8", 131_072),
    ],
)
def test_the_recommended_model(gigabytes: int, card: int, name: str, context: int) -> None:
    machine = ThisMachine(gigabytes * GIB, 8, "card" if card else "", card * GIB)
    best = recommended(machine, known_models())
    assert (best.name, fitting_context(best, machine)) == (name, context)
    if gigabytes > 2:
        assert needed(best, context) <= max(machine.usable, machine.card_memory)


def test_the_reason_why_a_model_does_not_suit() -> None:
    laptop = ThisMachine(16 * GIB, 8)
    assert why_not(known_model("devstral-small-24b"), laptop) == "memory"
    assert why_not(known_model("qwen2.5-coder-7b"), laptop) == "speed"
    assert why_not(known_model("qwen2.5-coder-7b"), laptop._replace(card="x", card_memory=8 * GIB)) == ""


def test_the_memory_of_a_container_and_of_a_graphics_card_is_found(tmp_path: Path) -> None:
    (tmp_path / "fs/cgroup").mkdir(parents=True)
    (tmp_path / "fs/cgroup/memory.max").write_text("1000000000\n")
    device = tmp_path / "class/drm/card0/device"
    device.mkdir(parents=True)
    (device / "mem_info_vram_total").write_text(str(8 * GIB))
    programs = tmp_path / "bin"
    programs.mkdir()
    here = this_machine(tmp_path, str(programs))
    assert here.memory == 1_000_000_000 and (here.card, here.card_memory) == ("AMD", 8 * GIB)
    smi = programs / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA GeForce RTX 4090, 24564'\n")
    smi.chmod(0o755)
    here = this_machine(tmp_path, str(programs))
    assert (here.card, here.card_memory) == ("NVIDIA GeForce RTX 4090", 24564 * 1024**2)


def test_facts_are_read_from_the_users_own_file(smollm2: Path) -> None:
    model, known = model_of_file(smollm2), known_model("smollm2-135m")
    assert (model.context, model.token_bytes, model.billions) == (known.context, known.token_bytes, known.billions)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"GGUF",
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 9) + struct.pack("<Q", 1) + b"x" + struct.pack("<I", 99),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        model_of_file(path)
    assert caught.value.key == "models.no_gguf"
