"""`duckflow sessions`, as a shell would call it."""

from pathlib import Path

from tests.cli.shell import Shell
from tests.journeys.story import decide, respond

HELLO = decide(respond("hello"), step="PLANNING")


def test_sessions_are_listed_named_and_removed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "no session in this folder" in shell.run("sessions").stdout
    for message in ("the first talk", "ふたつ目の話"):
        assert shell.run("-p", message, "-m", shell.script(HELLO)).returncode == 0
    listed = shell.run("sessions").stdout.splitlines()
    assert listed[0].startswith("1. ふたつ目の話    just now  1 turn") and listed[1].startswith("2. the first talk")
    assert "「よい名前」" in shell.run("sessions", "rename", "2", "よい名前", "--lang", "ja").stdout
    shell.work = tmp_path / "elsewhere"
    shell.work.mkdir()
    listed = shell.run("sessions").stdout.splitlines()
    assert listed[0].endswith("/work") and "よい名前" in listed[1]
    refused = shell.run("sessions", "rm", "1")
    assert refused.returncode == 2 and "--yes" in refused.stderr
    assert shell.run("sessions", "rm", "1", "--yes").returncode == 0
    assert len(shell.run("sessions").stdout.splitlines()) == 2


def test_a_prompt_that_could_not_be_sent_leaves_no_session(tmp_path: Path) -> None:
    """After a misspelt model or a mere command there is nothing to go on with."""
    shell = Shell(tmp_path)
    assert shell.run("-p", "hi", "-m", "nowhere:duck").returncode == 2
    assert shell.run("-p", "/skills").returncode == 0
    assert "no session in this folder" in shell.run("sessions").stdout
    assert not [*shell.home.joinpath("data/sessions").rglob("*.db*")]


def test_a_session_of_another_folder_goes_on_there(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.run("-p", "remember this place", "-m", shell.script(HELLO))
    home, shell.work = shell.work, tmp_path / "elsewhere"
    shell.work.mkdir()
    write = {"operation": "file_ops.write_file", "args": {"path": "a.txt", "content": "x"}, "reasoning": "asked"}
    script = shell.script(decide(write, respond("done")))
    went_on = shell.run("-r", "1", "-p", "write a.txt", "--mode", "auto-edit", "-m", script)
    assert went_on.returncode == 0 and (home / "a.txt").exists() and not (shell.work / "a.txt").exists()
    (home / "a.txt").unlink()
    home.rename(tmp_path / "moved")
    gone = shell.run("-r", "1", "-p", "and now?", "-m", script)
    assert gone.returncode == 2 and "no longer exists" in gone.stderr


def test_everything_said_is_searched_with_the_place_to_resume_from(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for message in ("the flamingo invoice is overdue", "請求書のペリカンを直して"):
        assert shell.run("-p", message, "-m", shell.script(HELLO)).returncode == 0
    here = shell.run("sessions", "search", "flamingo", "invoice").stdout
    head, excerpt, resume = here.splitlines()
    assert "[you]" in head and "flamingo invoice is overdue" in excerpt
    assert "ペリカン" in shell.run("sessions", "search", "ペリカン", "--lang", "ja").stdout
    write = {"operation": "file_ops.write_file", "args": {"path": "heron.txt", "content": "x"}, "reasoning": "asked"}
    shell.run("-p", "go", "--mode", "auto-edit", "-m", shell.script(decide(write, respond("done"))))
    found = shell.run("sessions", "search", "heron.txt").stdout
    assert "file_ops.write_file path: heron.txt, content: x" in found and "{" not in found
    shell.work = tmp_path / "elsewhere"
    shell.work.mkdir()
    assert "Nothing was found" in shell.run("sessions", "search", "flamingo").stdout
    everywhere = shell.run("sessions", "search", "flamingo", "--all").stdout
    assert resume in everywhere and "/work" in everywhere
    assert "flamingo" in shell.run("-p", "/recall --all flamingo").stdout
    session = resume.split()[-1]
    assert shell.run("-p", "go on", "--resume", session, "-m", shell.script(HELLO)).returncode == 0
    assert shell.run("sessions", "search").returncode == 2
