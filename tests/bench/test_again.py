"""Recorded sessions done again in a copy: commands that end differently, and another model that goes on from a step."""

import shutil
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

DONE = [decide(respond("Done."))] * 3


def run(command: str) -> dict[str, object]:
    return decide(act("shell.run", command=command), next_step="continue")


def write(path: str, content: str) -> dict[str, object]:
    return decide(act("file_ops.write_file", path=path, content=content), next_step="continue")


runs_commands = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap: commands would need a yes")


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    """Makes a session of two turns: the first writes a program and runs it, the second edits and runs it again."""
    shell = Shell(tmp_path)
    (shell.work / "ducks.txt").write_text("mallard\n")
    (shell.work / "where.txt").write_text(f"{shell.work}/ducks.txt")
    (shell.work / ".env").write_text("SECRET=quack-quack-123\n")
    wc = run("cat $(cat where.txt); ls -a; echo teal >> ducks.txt")
    model = shell.script(write("say.py", "print('quack')\n"), run(f"python3 {shell.work}/say.py"), wc, *DONE)
    first = shell.run("-m", model, "--mode", "full-auto", "-p", "Make it quack.")
    assert first.returncode == 0, first.stderr
    look = decide(act("file_ops.read_file", path="say.py"), next_step="continue")
    edit = act("file_ops.edit_file", path="say.py", edits=[{"old": "'quack'", "new": "'QUACK'"}])
    shell.script(look, decide(edit, next_step="continue"), run("python3 say.py; cat ducks.txt"), *DONE)
    second = shell.run("-c", "-m", model, "--mode", "full-auto", "-p", "Louder.")
    assert second.returncode == 0, second.stderr
    return shell


@runs_commands
def test_recorded_commands_are_run_again_in_a_copy_and_end_the_same(bare: Shell, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in bare.work.iterdir()}
    done = bare.run("replay", "--run", "--into", str(tmp_path / "again"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "6 actions repeated, 0 with a different result" in done.stdout and done.stdout.count("=") == 5, done.stdout
    assert {path: path.read_bytes() for path in bare.work.iterdir()} == before
    copy = tmp_path / "again/folder/work"
    assert (copy / "say.py").read_text() == "print('QUACK')\n"
    assert (copy / "ducks.txt").read_text() == "mallard\nteal\n"
    assert (copy / ".env").read_text() == "", "a command sees the copy in two places, so no secret lies in it"
    assert len(list(bare.home.rglob("sessions/*/*.db"))) == 1, "what is done again is no session of the user's"


@runs_commands
def test_each_command_that_ends_differently_is_named(bare: Shell) -> None:
    (bare.work / "ducks.txt").write_text("mallard\nteal\neider\n")
    same = bare.run("replay", "--run")
    assert same.returncode == 0, "today's files do not matter where the record has those of then"
    model = bare.script(run("ls left.txt && cat left.txt"), run("date +%s%N > now.txt"), *DONE)
    (bare.work / "left.txt").write_text("here\n")
    assert bare.run("-m", model, "--mode", "full-auto", "-p", "Look.").returncode == 0
    (bare.work / "left.txt").unlink()
    done = bare.run("replay", "--run")
    assert done.returncode == 1
    assert "≠   1  shell.run ls left.txt" in done.stdout and "exit code 0 → 2" in done.stdout, done.stdout
    assert "now.txt differs" in done.stderr and "1 with a different result; 1 file differs" in done.stdout, done.stderr


@runs_commands
def test_another_model_goes_on_from_a_step(bare: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    model = bare.script(run("python3 say.py; cat ducks.txt; echo eider >> ducks.txt"), *DONE)
    done = bare.run("replay", "--from", "7", "-m", model, "--times", "2", "--into", str(tmp_path / "ways"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    heads, *rows = done.stdout.strip().splitlines()
    assert "as recorded" in heads and "#1" in heads and "#2" in heads, done.stdout
    cells = {row.split("  ")[0]: row.split()[-3:] for row in rows}
    assert cells["outcome"] == ["done"] * 3 and cells["files changed"] == ["0", "1", "1"], done.stdout
    assert cells["requests"] == ["2", "2", "2"], done.stdout
    for number in "12":
        copy = tmp_path / "ways" / number / "folder/work"
        # The turn's earlier edit is in the copy, and so is what the other model did.
        assert (copy / "say.py").read_text() == "print('QUACK')\n"
        assert (copy / "ducks.txt").read_text() == "mallard\nteal\neider\n"
    assert (bare.work / "ducks.txt").read_text() == "mallard\nteal\n"


def test_the_other_model_sees_the_same_past_and_no_more(bare: Shell, tmp_path: Path) -> None:
    model = bare.script(decide(act("memory.recall", query="x"), respond("I see.")), *DONE)
    done = bare.run("replay", "--from", "3", "-m", model, "--into", str(tmp_path / "way"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    copy = tmp_path / "way/1/folder/work"
    assert (copy / "say.py").read_text() == "print('quack')\n" and (copy / "ducks.txt").read_text() == "mallard\n"
    texts = [path.read_bytes() for path in (tmp_path / "way/1/record/sessions").glob("*/*.db")]
    assert any(b"Make it quack." in text and b"Louder." not in text for text in texts)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("flags", [["--from", "2"], ["-m", "scripted:x"], ["--from", "99", "-m", "scripted:x"]])
def test_a_wrong_step_or_turn_is_refused(bare: Shell, flags: list[str]) -> None:
    assert bare.run("replay", *flags).returncode == 2
