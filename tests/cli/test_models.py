"""`duckflow models`, and models by their path."""

import json
import os
import re
from pathlib import Path

import pytest

from duckflow.i18n.width import cells
from duckflow.llm.local.weights import Weights
from duckflow.store.paths import Paths
from tests.cli.shell import Shell
from tests.llm.fake_endpoint import FakeEndpoint, says


def test_models_of_a_provider_are_listed_with_window_and_price(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.run("models", "list", "anthropic").stdout
    assert "anthropic:claude-sonnet-5 " in told and "1000k  $2 in, $10 out" in told and "pictures" in told
    assert "画像" in shell.run("models", "list", "openai", "--lang", "ja").stdout
    wrong = shell.run("models", "list", "nobody")
    assert wrong.returncode == 2 and "openai" in wrong.stderr


def test_local_models_are_listed_with_what_they_take_and_one_is_recommended(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    machine, *lines = shell.run("models", "list").stdout.splitlines()
    assert machine.startswith("This machine: ") and "cores" in machine
    assert "duckflow models list openai" in lines[-1]
    assert [line.split()[0] for line in lines[:2]] == ["qwen2.5-coder-1.5b", "smollm2-135m"]
    assert len([line for line in lines if "recommended" in line]) == 1
    japanese = shell.run("models", "list", "--lang", "ja").stdout
    assert "おすすめ" in japanese
    assert len({cells(row.partition(" GB")[0]) for row in japanese.splitlines()[1:9]}) == 1, "columns stand straight"
    keyed = shell.run("models", "list", DEEPSEEK_API_KEY="k").stdout
    assert "deepseek:deepseek-chat" in keyed and "openai:" not in keyed


def test_a_server_of_ones_own_lists_its_models_itself(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with FakeEndpoint(says(""), models=[{"id": "duck-1", "max_model_len": 9000}], key="k") as server:
        right = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        for name in ((), ("openai",)):
            told = shell.run("models", "list", *name, **right).stdout
            assert "openai:duck-1" in told and "9k" in told and "gpt-5-mini" not in told
        wrong = shell.run("models", "list", **right | {"OPENAI_API_KEY": "wrong"})
        assert wrong.returncode == 0 and "openai refused the key from OPENAI_API_KEY" in wrong.stdout


def test_sizes_have_one_unit(tmp_path: Path) -> None:
    for line in Shell(tmp_path).run("models", "list").stdout.splitlines()[1:-1]:
        size, needed = (float(number) for number in re.findall(r"([\d.]+) GB", line))
        assert size < needed, line


@pytest.mark.slow
def test_the_users_own_model_is_named_by_its_path(tmp_path: Path) -> None:
    """A real small model is used: whatever it says, it is asked and the conversation ends."""
    weights = Weights(Paths.of_user().models, os.environ).pull("smollm2-135m")
    shell = Shell(tmp_path, seconds=240)
    told = shell.run(
        "-p", "Say hello.", "-m", f"local:{weights}", "--max-loops", "1", "--output-format", "json", stdin=""
    )
    summary = json.loads(told.stdout)
    assert summary["model"] == f"local:{weights.stem}" and summary["usage"]["calls"] >= 1, told.stderr
    wrong = shell.run("-p", "hi", "-m", f"local:{shell.work}/none.gguf", stdin="")
    assert wrong.returncode == 2 and "none.gguf" in wrong.stderr
    (shell.work / "text.gguf").write_text("no model")
    wrong = shell.run("-p", "hi", "-m", "local:text.gguf", stdin="")
    assert wrong.returncode == 2 and "GGUF" in wrong.stderr
