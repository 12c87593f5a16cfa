"""The model's own work: its words, its files, its programs."""

import pytest

from duckflow.pacemaker.progress import NOTHING, Gained, TurnProgress
from duckflow.pacemaker.signatures import LoopStep, OwnWork
from tests.pacemaker.story import read, run


def wrote(path: str, text: str) -> LoopStep:
    return LoopStep("file_ops.write_file", {"path": path, "content": text}, "ok", kind="edit", changed=(path,))


def own() -> OwnWork:
    work = OwnWork()
    work.add(wrote("tools/check.py", "print('seven geese over the harbour')\n"), ())
    return work


@pytest.mark.parametrize(
    ("command", "is_check"),
    [
        ("pytest -q 2>&1 | tail -3", True),
        ("cd sub && LANG=C timeout 60 python3 -m pytest tests", True),
        ("pytest -q; echo $?", True),
        ("python3 verify.py", True),
        ("[ -f x ]", False),
        ("python3 -c \"print('3 failed'); raise SystemExit(1)\" 2>&1", False),
        ("echo '3 tests failed'; false", False),
        ('pytest --version; echo "$((9 - 2)) failed"; exit 1', False),
        ("python3 tools/check.py 17", False),
        ("./tools/check.py", False),
        ("python3 - <<'E'\nprint('2 errors')\nE", False),
        ("pytest && bash -c 'exit 1'", False),
    ],
)
def test_a_check_is_a_program_that_the_model_did_not_write(command: str, is_check: bool) -> None:
    assert own().is_check(command) is is_check


@pytest.mark.parametrize("line", ["12: SEVEN geese over the harbour", "geese over the harbour 9"])
def test_own_words_are_recognized_however_they_come_back(line: str) -> None:
    assert own().holds(line)
    assert not own().holds("seven sheep in the valley")


def test_own_text_is_not_new_and_existing_text_is() -> None:
    progress = TurnProgress("describe lake.txt")
    assert progress.gain(wrote("song.md", "A heron stands in the shallow water.\n")) == NOTHING
    assert progress.gain(read("song.md", "A heron stands in the shallow water.\n")) == NOTHING
    assert progress.gain(run("tac song.md", ".retaw wollahs eht ni sdnats noreh A")).solid == 0
    assert progress.gain(read("lake.txt", "The lake is forty metres deep.\n")) == Gained("read", solid=1)
    assert progress.gain(run("curl -s x", "A page about lakes, and much more.")) == Gained("read", 1, elsewhere=True)
    assert progress.gain(run("curl -s x", "Quite another page today, of boats.")).solid == 0, "it changes by itself"


def test_a_check_that_fails_and_passes_in_turns_is_solid_once() -> None:
    progress = TurnProgress("mend it")
    fails, passes = run("make check", "1 error", failed=True), run("make check", "fine")
    assert [progress.gain(step).solid for step in (fails, passes, fails, passes)] == [0, 1, 0, 0]


def test_files_that_the_material_names_are_planned() -> None:
    progress = TurnProgress("build it in out/ as the plan says")
    progress.gain(read("PLAN.md", "- app/views.py shows the list\n- app/store.py keeps it\n"))
    assert progress.gain(wrote("app/views.py", "x = 1\n")) == Gained("made", solid=1)
    assert progress.gain(wrote("out/extra.py", "x = 1\n")) == Gained("made", solid=0), "only its folder was named"
    assert progress.gain(wrote("more.py", "x = 1\n")) == NOTHING


def test_a_command_that_fails_may_use_a_file_of_the_turn() -> None:
    progress = TurnProgress("mend calc")
    progress.gain(wrote("repro.py", "import calc\nassert calc.add(1, 1) == 2\n"))
    assert progress.gain(run("python repro.py", "AssertionError", failed=True)).kind == "used"
