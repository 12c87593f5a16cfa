"""Settings come in layers, and each value can say where it came from."""

from pathlib import Path

import pytest

from duckflow.config.load import PROJECT_MAY_SET, load
from duckflow.config.settings import Settings
from duckflow.config.value import list_setting_names
from duckflow.errors import UsageError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_later_layers_win_value_by_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'language = "ja"\n[agent]\nbody_tokens = 900\n[memory]\nbudget_tokens = 5000\n'
    user = write(tmp_path / "config.toml", text)
    write(tmp_path / ".duckflow/config.toml", "[ui]\nemoji = false\n")
    monkeypatch.setenv("DUCKFLOW_MODEL", "ollama:x")
    loaded = load(user, tmp_path, {"safety.mode": "plan", "language": None})
    assert loaded.settings.language == "ja"
    assert loaded.settings.agent.body_tokens == 900
    assert loaded.settings.llm.model == "ollama:x"
    assert loaded.settings.memory.budget_tokens == 5000 and not loaded.settings.ui.emoji
    assert loaded.settings.safety.mode == "plan"
    assert loaded.origins["llm.model"] == "environment"
    assert loaded.origins["ui.emoji"].endswith(".duckflow/config.toml")
    assert loaded.origins["language"] == str(user)


@pytest.mark.parametrize("name", sorted({*list_setting_names(Settings)} - {*PROJECT_MAY_SET}))
def test_a_projects_file_may_set_only_a_few_values(tmp_path: Path, name: str) -> None:
    write(tmp_path / ".duckflow/config.toml", f"{name} = 1")
    with pytest.raises(UsageError) as refusal:
        load(tmp_path / "none.toml", tmp_path, {})
    assert refusal.value.key == "config.project_forbidden" and name in str(refusal.value.values)


def test_a_projects_file_cannot_change_gate_reading_or_bounds() -> None:
    assert PROJECT_MAY_SET == ("language", "ui.ascii", "ui.emoji"), "each changes only signs and the language of words"


@pytest.mark.parametrize("text", ["[mcp.servers.x]", "[llm.endpoints.x]", "[safety]\n[files]", "[lsp.servers.py]"])
def test_a_table_without_values_in_a_projects_file_adds_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path / ".duckflow/config.toml", text)
    assert load(tmp_path / "none.toml", tmp_path, {}).settings == Settings()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("not toml at all [", "config.unreadable"),
        ("[agent]\nbody_tokens = 'many'", "config.kind.int"),
        ("[llm]\napi_key = 'secret'", "config.secret"),
        ("unknown = 1", "config.unknown"),
        ("[llm]\nmodle = 'x'", "config.near"),
        ("[llm]\ntries = 0", "config.bound.ge"),
        ("[ui]\nemoji = 'perhaps'", "config.kind.bool"),
        ("[memory]\nwindow_share = nan", "config.kind.float"),
        ("[memory]\nsummary_timeout = inf", "config.kind.float"),
        ("[memory]\nwindow_share = 1e308", "config.bound.le"),
        ("[files]\nread_bytes = -1", "config.bound.ge"),
        ("language = 'jp'", "config.choice"),
        ("[pacemaker.limits.base]\nDEBUGING = 30", "config.near"),
        ("[pacemaker.limits.base]\nDEBUGGING = 0", "config.bound.ge"),
        ("[pacemaker.limits]\nbase = 3", "config.kind.table"),
        ("transitions = 'none'", "config.kind.table"),
        ("[pacemaker.detectors.again]\ncall = 0", "config.bound.ge"),
        ("[pacemaker.vitals]\nfocus_lost = 'low'", "config.kind.float"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load(write(tmp_path / "config.toml", text), tmp_path, {})
    assert refusal.value.key == key


def test_setting_one_profile_of_the_limits_keeps_the_others(tmp_path: Path) -> None:
    text = "[pacemaker.limits.base]\nDEBUGGING = 30\n[pacemaker.detectors.again]\ncall = 9\n"
    pacemaker = load(write(tmp_path / "config.toml", text), tmp_path, {}).settings.pacemaker
    assert (pacemaker.limits.base.DEBUGGING, pacemaker.limits.base.RESEARCH) == (30, 16)
    assert (pacemaker.detectors.again.replan, pacemaker.detectors.again.call) == (3, 9)
