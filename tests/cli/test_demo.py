"""The tour plays by itself where nobody sits, shows everything, and leaves nothing behind."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell

STOPS = {
    "en": (
        "1/6",
        "May I?",
        "Snake game (draft",
        "0 tasks done",
        "What should I do?",
        "were undone",
        "tour is over",
    ),
    "ja": (
        "1/6",
        "よろしいですか",
        "スネークゲーム（下書き",
        "終わったタスク 0",
        "堂々巡り",
        "を元に戻しました",
        "片付けました",
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_stop_is_shown_and_nothing_is_left_behind(bare: Shell, tmp_path: Path, language: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # A broken config does not stop it.
    bare.write_config("not toml [")
    done = bare.run("demo", "--lang", language, TMPDIR=str(temporary))
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.replace("\n", " ")
    places = [shown.find(text) for text in STOPS[language]]
    assert -1 not in places and places == sorted(places), dict(zip(STOPS[language], places, strict=True))
    assert "demo." not in shown
    assert list(temporary.iterdir()) == [] and list(bare.work.iterdir()) == []
    assert not (bare.home / "data/sessions").exists() and bare.config.read_text() == "not toml ["
