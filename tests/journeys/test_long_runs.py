"""Minutes of work: races, a long session, a day of talk, the large local model. Run with `make test-all`."""

import os
from pathlib import Path

import pytest

from benchmarks.long_session import BUDGET, measure
from benchmarks.race import main as race
from benchmarks.soak import soak
from duckflow.llm.local.weights import Weights
from duckflow.llm.settings import DEFAULT_MODEL
from duckflow.store.paths import Paths
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow

SECONDS_A_TOOL = 5.0
TURNS = 500
GROWTH_MB = 20
LOCAL_SECONDS = 600
LOCAL = (("Create hello.py that prints hello.", "en"), ("hello と表示する hello.py を作ってください。", "ja"))


def test_a_link_swapped_in_and_out_never_leads_a_file_tool_outside() -> None:
    assert race(SECONDS_A_TOOL) == 0


async def test_a_long_session_keeps_its_budget_and_forgets_nothing_that_must_stay() -> None:
    found = await measure(TURNS)
    assert found["prompts_without_a_pin"] == 0
    assert found["largest_history_and_state_tokens"] <= BUDGET


def test_a_day_of_talk_neither_grows_nor_leaks() -> None:
    found = soak(TURNS, print)
    assert found["growth_mb"] < GROWTH_MB
    for what in ("open_files", "children", "threads"):
        assert found["at_the_end"][what] <= found["after_warm_up"][what] + 1, what


@pytest.mark.parametrize(("wish", "language"), LOCAL)
def test_the_large_local_model_writes_a_file(tmp_path: Path, wish: str, language: str) -> None:
    weights = Weights(Paths.of_user().models, os.environ).path(DEFAULT_MODEL)
    if weights is None:
        pytest.skip(f"{DEFAULT_MODEL} is not here: duckflow models pull")
    shell = Shell(tmp_path, LOCAL_SECONDS)
    models = shell.home / "cache/models"
    models.mkdir(parents=True)
    (models / weights.name).symlink_to(weights)
    done = shell.run("-p", wish, "-m", "local", "--mode", "full-auto", "--lang", language)
    assert done.returncode == 0, done.stderr
    assert "hello" in Path(shell.work, "hello.py").read_text(encoding="utf-8")
