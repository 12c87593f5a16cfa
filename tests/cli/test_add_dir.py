"""`--add-dir`: further folders, inside the Gate, the sandbox and undo."""

from pathlib import Path

import pytest

from duckflow.agent.gate_question import what_lasts
from duckflow.safety.risk import Deed
from duckflow.state.question import FileImpact
from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    (other / "src/lib.py").write_text("value = 1\n")
    return shell


def test_files_of_another_folder_are_read_edited_searched_and_run(tmp_path: Path, shell: Shell) -> None:
    other = tmp_path / "other"
    edit = [{"old": "value = 1", "new": "value = 2"}]
    model = shell.script(
        decide(
            act("file_ops.read_file", path=f"{other}/src/lib.py"),
            act("file_ops.list_files", path=str(other)),
            act("file_ops.grep", pattern="value", path=str(other)),
            next_step="continue",
        ),
        decide(
            act("file_ops.edit_file", path=f"{other}/src/lib.py", edits=edit),
            act("file_ops.write_file", path=f"{other}/new.txt", content="new\n"),
            act("shell.run", command=f"cp {other}/src/lib.py copy.py && cat copy.py"),
            respond("Done."),
        ),
    )
    done = shell.run("-p", "go", "-m", model, "--mode", "full-auto", "--add-dir", "../other", stdin="")
    assert done.returncode in (0, 3), done.stderr
    assert (other / "src/lib.py").read_text() == "value = 2\n", done.stderr
    assert (other / "new.txt").read_text() == "new\n"


def test_without_add_dir_the_other_folder_stays_closed(tmp_path: Path, shell: Shell) -> None:
    model = shell.script(
        decide(act("file_ops.write_file", path=f"{tmp_path}/other/new.txt", content="x"), respond("Done."))
    )
    shell.run("-p", "go", "-m", model, "--mode", "full-auto", stdin="")
    assert not (tmp_path / "other/new.txt").exists()


def test_the_gate_says_that_undo_does_not_reach_an_added_folder(tmp_path: Path) -> None:
    impact = FileImpact(path="/other/a.txt", change="edit")
    [told] = what_lasts(Deed(effect="write", impacts=(impact,)), "", goes_on=False, folder=tmp_path)
    assert told.key == "lasting.outside"


CANNOT = [("../none", "en", "no folder"), ("..", "ja", "作業フォルダー")]


@pytest.mark.parametrize(("folder", "language", "told"), CANNOT)
def test_folders_that_cannot_be_added_are_refused_with_a_reason(
    shell: Shell, folder: str, language: str, told: str
) -> None:
    done = shell.run("-p", "x", "-m", shell.script(), "--add-dir", folder, "--lang", language, stdin="")
    assert done.returncode == 2 and told in done.stderr
