"""`shell.run`, in each sandbox that works here."""

import asyncio
import os
from pathlib import Path

import pytest
from pydantic import ValidationError
from shelling import Mark, Shell, shell_in, until

from duckflow.tools.settings import ShellSettings
from duckflow.tools.shell.run import ShellArgs


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    made = shell_in(tmp_path, request.param)
    if made.sandbox.kind != request.param:
        pytest.skip(f"{request.param} does not work here: {made.sandbox.says}")
    return made


async def test_a_command_brings_its_output_exit_code_and_time(shell: Shell, tmp_path: Path) -> None:
    done = await shell.run("echo out; echo err >&2; echo made > file")
    assert done.ok
    assert done.for_model.startswith("exit code 0 after ")
    assert done.for_model.endswith(" s\nout\nerr")
    assert (done.for_user.key, done.for_user.values["code"]) == ("shell.finished", 0)
    assert (tmp_path / "file").read_text() == "made\n"


async def test_a_failing_command_is_a_result(shell: Shell) -> None:
    done = await shell.run("echo 2 failed; exit 3")
    assert done.ok
    assert done.for_model.startswith("exit code 3 after")
    assert (await shell.run("no-such-program-anywhere")).for_model.startswith("exit code 127 after")
    assert (await shell.run("true")).for_model.endswith("(no output)")


async def test_nobody_is_there_to_type(shell: Shell) -> None:
    done = await shell.run("read line; echo got $?; cat; echo x > /dev/tty; test -t 0 || echo no terminal", timeout=10)
    assert "got 1" in done.for_model and "no terminal" in done.for_model


async def test_output_is_heard_while_it_is_printed(shell: Shell) -> None:
    running = asyncio.create_task(shell.run("echo first; while [ ! -e go ]; do sleep 0.02; done; echo second"))
    await until(lambda: "first" in "".join(shell.heard))
    assert not running.done()
    (shell.sandbox.paths.folder / "go").touch()
    await running
    assert "".join(shell.heard) == "first\nsecond\n"


async def test_a_command_that_takes_too_long_is_ended_and_its_output_kept(shell: Shell) -> None:
    mark = Mark()
    problem = await shell.problem(f"echo so far; sleep {mark.seconds}", timeout=1)
    assert problem.key == "shell.timed_out"
    assert "Timed out after 1 s" in problem.for_model and "so far" in problem.for_model
    assert mark.alive() == 0


async def test_no_command_gets_more_time_than_the_settings_grant(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=ShellSettings(longest_seconds=1))
    assert (await shell.problem("sleep 60", timeout=60)).values["seconds"] == 1


async def test_cancelling_ends_every_process_even_those_that_left_their_group(shell: Shell) -> None:
    mark = Mark()
    sleep = f"sleep {mark.seconds}"
    running = asyncio.create_task(shell.run(f"{sleep} & setsid {sleep} & (setsid {sleep} >/dev/null 2>&1 &); {sleep}"))
    await mark.appears(4)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert mark.alive() == 0


@pytest.mark.one_in(3)
async def test_cancelling_at_any_moment_leaves_nothing_behind(shell: Shell) -> None:
    mark = Mark()
    handles = len(os.listdir("/proc/self/fd"))
    for moment in range(20):
        running = asyncio.create_task(shell.run(f"sleep {mark.seconds}"))
        await asyncio.sleep(moment / 1000)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert mark.alive() == 0
    for _ in range(100):
        # A thread that was left to itself closes its files a moment later.
        if len(os.listdir("/proc/self/fd")) > handles + 1:
            await asyncio.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= handles + 1


async def test_processes_that_a_command_leaves_behind_end_with_it(shell: Shell) -> None:
    mark = Mark()
    done = await shell.run(f"sleep {mark.seconds} & (setsid sleep {mark.seconds} >/dev/null 2>&1 &); echo done")
    assert done.for_model.endswith("\ndone")
    assert mark.alive() == 0


async def test_a_command_may_signal_its_own_group(shell: Shell) -> None:
    mark = Mark()
    done = await shell.run(f"trap 'echo bye; exit 5' TERM; sleep {mark.seconds} & kill 0; wait")
    assert done.for_model.startswith("exit code 5") and done.for_model.endswith("\nbye")
    assert mark.alive() == 0


@pytest.mark.one_in(3)
async def test_much_output_is_cut_in_the_middle_and_leaves_time_for_others(shell: Shell) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    done = await shell.run("echo begin; head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo end")
    beside.cancel()
    assert "\nbegin\n" in done.for_model and done.for_model.endswith("\nend")
    assert "characters left out" in done.for_model
    assert len(done.for_model) < 21_000
    assert turns > 100
    assert sum(map(len, shell.heard)) < 10_000_000


async def test_colours_and_broken_bytes_do_not_reach_the_model(shell: Shell) -> None:
    done = await shell.run(r"printf 'a\033[31mred\033[0m \033]0;title\007b\r\n\377\376 10%%\r 100%%\n\343\201\202\n'")
    assert done.for_model.split("\n", 1)[1] == "ared b\n 100%\nあ"


async def test_commands_see_no_keys(shell: Shell) -> None:
    os.environ["DUCK_API_KEY"] = "sk-not-for-commands"
    try:
        done = await shell.run("env; cat /proc/$$/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'")
    finally:
        del os.environ["DUCK_API_KEY"]
    assert "not-for-commands" not in done.for_model
    assert "TERM=dumb" in done.for_model


async def test_a_command_judged_safe_runs_unasked_but_cannot_write(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    command = "cat file; echo x > file"
    confined = shell.sandbox.kind != "none"
    await shell.tool.get_ready()
    assert shell.tool.reads_only(ShellArgs(command=command)) == confined
    assert not shell.tool.reads_only(ShellArgs(command=command, network=True))
    assert not shell.tool.reads_only(ShellArgs(command="make"))
    assert "hello" in (await shell.run(command)).for_model
    assert ((tmp_path / "file").read_text() == "hello") == confined


@pytest.mark.parametrize("shell", ["bubblewrap", "landlock"], indirect=True)
async def test_the_sandbox_is_named_when_it_is_the_reason(shell: Shell) -> None:
    assert (
        "network=true" in (await shell.run("curl -sS http://example.invalid || getent hosts example.invalid")).for_model
    )
    assert "write only in the work folder" in (await shell.run("touch /usr/new")).for_model


async def test_files_that_make_git_run_programs_are_watched(shell: Shell, tmp_path: Path) -> None:
    await shell.run("git init -q")
    done = await shell.run("echo ../evil > .git/commondir")
    assert done.for_user.key == "shell.meddled"
    assert done.for_user.values["files"] == ".git/commondir"
    assert not (tmp_path / ".git/commondir").exists()


async def test_a_work_folder_that_is_gone_is_an_error_not_a_crash(shell: Shell, tmp_path: Path) -> None:
    tmp_path.rmdir()
    with pytest.raises(OSError):
        await shell.run("true")


def test_the_preview_is_the_command_with_what_is_unusual_about_it(tmp_path: Path) -> None:
    tool = shell_in(tmp_path, "none").tool
    assert tool.preview(ShellArgs(command="make test")).diff == "$ make test"
    unusual = ShellArgs(command="npm i", network=True, timeout_seconds=600)
    assert tool.preview(unusual).diff == "$ npm i\n# timeout_seconds=600 network=True"
    assert tool.preview(ShellArgs(command="echo a\nrm b \x1b[8m\u202e")).diff == "$ echo a\n> rm b \\x1b[8m\\u202e"
    assert tool.describe().changes


@pytest.mark.parametrize("command", ["", "  ", "echo \0"])
def test_an_impossible_command_is_refused(command: str) -> None:
    with pytest.raises(ValidationError):
        ShellArgs(command=command)
