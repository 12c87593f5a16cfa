"""A fleet in a real terminal: the table lives, Enter opens the inbox, one answer serves all that ask the same; it is
merged, and what is left is cleaned up."""

from pathlib import Path

import pytest

from duckflow.i18n.words import Words, languages
from tests.fleet.test_commands import FleetShell
from tests.fleet.yard import write
from tests.ui.console.terminal import Terminal


@pytest.mark.slow
@pytest.mark.parametrize("language", languages())
def test_a_fleet_is_watched_answered_merged_and_cleaned_up_in_a_terminal(tmp_path: Path, language: str) -> None:
    shell, words = FleetShell(tmp_path), Words(language)
    shell.add("送料", write("ship.py", "SHIP = 5\n"), mode="ask", attempts=2)
    run = Terminal(tmp_path, None, "fleet", "run", "tasks.toml", "--lang", language, GIT_CONFIG_GLOBAL="/dev/null")
    run.wait_for(words("fleet.inbox_hint", count=2))
    run.enter("")
    run.wait_for("SHIP = 5")
    run.enter("1")
    run.wait_for(words("fleet.for_all", count=1).strip())
    run.enter("y")
    run.wait_for(words("fleet.answered", count=2))
    screen = run.wait_for("duckflow fleet merge fleet_")
    assert run.wait_for_end() == 0
    lines = [line.split() for line in screen.split("\n") if line.startswith("送料")]
    assert lines[-2:] == [
        ["送料", "#1", *words("fleet.state.done").split(), "–", lines[-2][-1]],
        ["送料", "#2", *words("fleet.state.done").split(), "–", lines[-1][-1]],
    ], screen
    merge = Terminal(tmp_path, None, "fleet", "merge", "--lang", language, GIT_CONFIG_GLOBAL="/dev/null")
    merge.wait_for(words("fleet.merge.which", best=1).strip())
    merge.enter("2")
    merge.wait_for("送料: duckflow/送料-2")
    assert merge.wait_for_end() == 0
    assert shell.repository.show("main", "ship.py") == "SHIP = 5"
    for answer, told in ("no", words("fleet.clean.nothing")), ("yes", words("fleet.clean.removed", what="").strip()):
        clean = Terminal(tmp_path, None, "fleet", "clean", "--lang", language, GIT_CONFIG_GLOBAL="/dev/null")
        # A long path is wrapped at the edge of the screen.
        assert "duckflow/送料-1" in clean.wait_for(words("fleet.clean.sure").strip()).replace("\n", "")
        assert len(shell.repository.branches()) == 3
        clean.enter(answer)
        clean.wait_for(told)
        assert clean.wait_for_end() == 0
    assert shell.repository.branches() == ["main"]
