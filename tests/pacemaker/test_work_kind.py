"""The kind of work of a turn, judged by what is done in it."""

import pytest

from duckflow.pacemaker.limits import Load, WorkKind, compute_limit
from duckflow.pacemaker.settings import LimitSettings
from duckflow.pacemaker.signatures import LoopStep
from duckflow.state.action import TaskProfile
from duckflow.state.phase import Vitals
from tests.pacemaker.story import grep, read, run


def changed(path: str) -> LoopStep:
    return LoopStep("file_ops.write_file", {"path": path}, "ok", kind="edit", changed=(path,))


PAGE = LoopStep("web.fetch", {"url": "http://a"}, "a page", kind="read")
FAILS = run("pytest", "1 failed", failed=True)


@pytest.mark.parametrize(
    ("steps", "profile", "limit"),
    [
        ([], "SIMPLE_QUESTION", 6),
        ([read("a.py")], "SIMPLE_QUESTION", 6),
        ([read("a.py"), read("b.py"), grep("x", "a.py: x")], "CODE_ANALYSIS", 14),
        ([read("a.py"), changed("a.py")], "FILE_OPERATION", 9),
        ([changed("docs/story.md")], "CREATIVE_WRITING", 12),
        ([FAILS, read("a.py"), changed("a.py")], "DEBUGGING", 16),
        ([PAGE, PAGE], "RESEARCH", 19),
        ([changed("a.py"), changed("b.py"), changed("c.py")], "MULTI_STEP_TASK", 18),
    ],
)
def test_the_steps_decide_the_kind_of_work(steps: list[LoopStep], profile: str, limit: int) -> None:
    work = WorkKind()
    work.begin(TaskProfile.SIMPLE_QUESTION)
    for step in steps:
        work.see(step)
    assert work.profile == profile
    assert compute_limit(Load(work.profile), Vitals(), LimitSettings()).value == limit


def test_files_read_count_by_their_size() -> None:
    work = WorkKind()
    for step in (read("a.py"), read("a.py"), read("big.py", "line\n" * 1600), changed("a.py"), changed("c.py")):
        work.see(step)
    assert work.files == 1 + 4 + 1
