"""`duckflow config`: seen with its origin, changed without losing a comment, and never a secret."""

import json

import pytest

from tests.cli.shell import Shell

MINE = """\
# my own
[llm]
tries = 3  # few
[llm.endpoints.mine]
base_url = "http://me:hunter2@127.0.0.1:9/v1?api_key=hunter2"
[shell.set_environment]
GITHUB_TOKEN = "hunter2"
"""


def test_every_value_is_listed_with_its_origin(bare: Shell) -> None:
    bare.write_config(MINE)
    bare.run("config", "set", "ui.emoji", "no", "--project")
    listed = bare.run("config", DUCKFLOW_MODE="plan").stdout
    assert f"llm.tries = 3  # {bare.config}" in listed
    assert "ui.emoji = false  # " in listed and ".duckflow/config.toml" in listed
    assert 'safety.mode = "plan"  # environment variable DUCKFLOW_MODE' in listed
    assert 'language = ""  # default' in listed
    assert "hunter2" not in listed
    changed = bare.run("config", "list", "--changed", "--json").stdout
    assert "hunter2" not in changed
    assert set(json.loads(changed)) == {
        "llm.tries",
        "llm.endpoints.mine.base_url",
        "shell.set_environment.GITHUB_TOKEN",
        "ui.emoji",
    }


def test_a_value_is_set_read_and_taken_out(bare: Shell) -> None:
    bare.write_config(MINE)
    assert bare.run("config", "set", "llm.tries", "５").returncode == 0
    done = bare.run("config", "get", "llm.tries")
    assert done.stdout == "5\n" and str(bare.config) in done.stderr
    assert bare.config.read_text() == MINE.replace("tries = 3", "tries = 5")
    assert bare.run("config", "unset", "llm.tries").returncode == 0
    assert bare.run("config", "get", "llm.tries").stdout == "4\n"
    assert bare.config.stat().st_mode & 0o777 == 0o644
    fresh = bare.run("config", "set", "safety.mode", "auto-edit", DUCKFLOW_HOME=str(bare.home / "new"))
    assert fresh.returncode == 0
    assert (bare.home / "new/config/config.toml").read_text() == '[safety]\nmode = "auto-edit"\n'


def test_wrong_names_and_values_are_refused_and_nothing_is_written(bare: Shell) -> None:
    bare.write_config(MINE)
    for name, value, hint in (
        ("mode", "plan", "safety.mode"),
        ("llm.modle", "x", "llm.model"),
        ("safety.mode", "wild", "auto-edit"),
        ("llm.tries", "many", "whole number"),
        ("llm.tries", "0", "at least 1"),
        ("language", "jp", "en, ja"),
        ("llm.api_key", "sk-123", "OPENAI_API_KEY"),
        ("llm", "5", "is a group of settings"),
    ):
        done = bare.run("config", "set", name, value)
        assert done.returncode == 2 and hint in done.stderr, done.stderr
        assert "sk-123" not in done.stderr
    assert bare.run("config", "set", "safety.mode", "plan", "--project").returncode == 2
    assert bare.run("config", "set", "safety.mode").returncode == 2
    assert bare.config.read_text() == MINE and not (bare.work / ".duckflow").exists()


def test_it_says_when_another_place_overrules_a_value(bare: Shell) -> None:
    done = bare.run("config", "set", "safety.mode", "full-auto", DUCKFLOW_MODE="ask")
    assert done.returncode == 0 and "DUCKFLOW_MODE" in done.stderr


def test_a_link_stays_a_link(bare: Shell) -> None:
    real = bare.home / "dotfiles.toml"
    bare.config.parent.mkdir(parents=True)
    real.write_text("# kept\n")
    bare.config.symlink_to(real)
    bare.run("config", "set", "ui.color", "false")
    assert bare.config.is_symlink() and "# kept\n" in real.read_text() and "color = false" in real.read_text()


@pytest.mark.parametrize(
    ("name", "near"), [("fleet", ""), ("budget", ""), ("llm.modl", "llm.model"), ("modell", "llm.model")]
)
def test_a_name_is_only_suggested_if_it_is_near(bare: Shell, name: str, near: str) -> None:
    told = bare.run("config", "set", name, "x").stderr
    assert (f"Did you mean {near}?" in told) if near else "Did you mean" not in told


def test_a_misspelt_setting_does_not_keep_one_from_the_list_and_can_be_taken_out(bare: Shell) -> None:
    """The error message points to the list, so the list must be shown."""
    bare.write_config('# mine\n[llm]\nmodell = "x"\ntries = 3\n')
    listed = bare.run("config", "list")
    assert listed.returncode == 2 and "Did you mean llm.model?" in listed.stderr and "defaults" in listed.stderr
    assert 'llm.model = ""  # default' in listed.stdout
    assert bare.run("config", "unset", "llm.modell").returncode == 0
    assert bare.config.read_text() == "# mine\n[llm]\ntries = 3\n"
    gone = bare.run("config", "unset", "llm.modell")
    assert gone.returncode == 2 and "llm.model" in gone.stderr
