"""Commands in the background."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from shelling import Mark, shell_in, until

from duckflow.tools.settings import ShellSettings

QUICK = ShellSettings(first_output_seconds=0.3, background_jobs=2)
DIE = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from shelling import shell_in
from duckflow.tools.settings import ShellSettings
async def main():
    shell = shell_in(Path.cwd(), sys.argv[1], ShellSettings(first_output_seconds=0.3))
    await shell.run(f"sleep {sys.argv[2]} & setsid sleep {sys.argv[2]} & wait", background=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_server_goes_on_until_it_is_stopped(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=QUICK)
    mark = Mark()
    done = await shell.run(f"echo listening; sleep {mark.seconds}", background=True)
    [job] = shell.background.jobs()
    assert job.job_id in done.for_model and "listening" in done.for_model
    assert done.for_user.values["job"] == job.job_id
    assert job.running and mark.alive() == 1
    assert await shell.background.stop(job.job_id)
    assert not job.running and mark.alive() == 0
    assert await shell.background.stop(job.job_id)
    assert not await shell.background.stop("job_unknown")


async def test_a_background_command_that_ends_at_once_is_a_result(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=ShellSettings(first_output_seconds=20))
    done = await shell.run("echo port in use; exit 1", background=True)
    assert done.for_model.startswith("exit code 1") and "port in use" in done.for_model
    assert shell.background.jobs() == ()


async def test_a_model_that_looks_again_and_again_is_told_how_to_wait(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=QUICK)
    await shell.run("sleep 60", background=True)
    [job] = shell.background.jobs()
    told = [f"`wait {job.job_id}`" in (await shell.run("ls")).for_model for _ in range(3)]
    assert told == [False, True, True]
    assert await shell.background.stop(job.job_id)
    assert "wait job" not in (await shell.run("ls")).for_model


async def test_waiting_ends_with_the_command_or_at_its_limit(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=QUICK)
    began = await shell.run("while [ ! -e go ]; do sleep 0.02; done; echo built; exit 3", background=True)
    [job] = shell.background.jobs()
    assert f"`wait {job.job_id}`" in began.for_model
    waiting = f"wait {job.job_id}"
    assert "still runs after 1 s" in (await shell.run(waiting, timeout=1)).for_model and job.running
    asked = shell.tool.args(command=waiting)
    assert shell.tool.reads_only(asked) and shell.tool.deed(asked, shell.tool.preview(asked)).effect == "read"
    (tmp_path / "go").touch()
    done = await shell.run(waiting)
    assert done.for_model == f"Background {job.job_id} has ended with exit code 3:\nbuilt"
    assert done.for_user.values["code"] == 3 and "built" in done.for_model
    assert job.job_id not in (await shell.run("true")).for_model, "told once"
    assert "Running: -" in (await shell.problem("wait job_unknown")).for_model


async def test_a_later_end_is_reported_with_the_next_command(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=QUICK)
    await shell.run("while [ ! -e go ]; do sleep 0.02; done; echo crashed; exit 9", background=True)
    [job] = shell.background.jobs()
    assert job.job_id not in (await shell.run("true")).for_model
    (tmp_path / "go").touch()
    await until(lambda: not job.running)
    assert f"{job.job_id} has ended with exit code 9:\ncrashed" in (await shell.run("true")).for_model
    assert job.job_id not in (await shell.run("true")).for_model


async def test_all_end_together_and_there_are_not_too_many(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=QUICK)
    mark = Mark()
    for _ in range(2):
        await shell.run(f"sleep {mark.seconds}", background=True)
    assert (await shell.problem("sleep 1", background=True)).key == "shell.too_many"
    assert len(shell.background.running()) == mark.alive() == 2
    await shell.background.close()
    assert shell.background.running() == () and mark.alive() == 0


async def test_cancelling_while_it_starts_ends_it(tmp_path: Path) -> None:
    shell = shell_in(tmp_path, settings=ShellSettings(first_output_seconds=20))
    mark = Mark()
    running = asyncio.create_task(shell.run(f"sleep {mark.seconds}", background=True))
    await mark.appears(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert mark.alive() == 0 and shell.background.jobs() == ()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock", "none"])
async def test_none_outlives_duckflow_even_when_it_is_killed(tmp_path: Path, kind: str) -> None:
    if shell_in(tmp_path, kind).sandbox.kind != kind:
        pytest.skip(f"{kind} does not work here")
    mark = Mark()
    here = str(Path(__file__).parent)
    duckflow = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DIE, kind, mark.seconds, here),
        cwd=tmp_path,
        # Killed, it cannot remove its temporary files.
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert await duckflow.wait() == -signal.SIGKILL
    await until(lambda: mark.alive() == 0)
