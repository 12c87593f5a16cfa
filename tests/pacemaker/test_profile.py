"""The kind of task, guessed from the first message."""

import time

import pytest

from duckflow.pacemaker.limits import guess_profile
from duckflow.state.action import TaskProfile


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("hello there", "GENERAL_CHAT"),
        ("こんにちは", "GENERAL_CHAT"),
        ("What time is it in Oslo?", "SIMPLE_QUESTION"),
        ("Pythonとは何ですか", "SIMPLE_QUESTION"),
        ("create hello.py", "FILE_OPERATION"),
        ("メモ.txtを作成して", "FILE_OPERATION"),
        ("the login test fails since yesterday", "DEBUGGING"),
        ("このバグを直してください", "DEBUGGING"),
        ("implement a snake game", "MULTI_STEP_TASK"),
        ("検索機能を実装して", "MULTI_STEP_TASK"),
        ("compare the three web frameworks", "RESEARCH"),
        ("競合製品を調査して", "RESEARCH"),
        ("review the parser", "CODE_ANALYSIS"),
        ("このモジュールをレビューして", "CODE_ANALYSIS"),
        ("write a poem about ducks", "CREATIVE_WRITING"),
        ("アヒルの物語を", "CREATIVE_WRITING"),
        ("think about the architecture of the queue", "COMPLEX_REASONING"),
        ("キューの設計を考えて", "COMPLEX_REASONING"),
        ("", "GENERAL_CHAT"),
        ("word " * 200, "MULTI_STEP_TASK"),
    ],
)
def test_simple_rules(text: str, profile: str) -> None:
    assert guess_profile(text) == profile


def test_a_long_line_without_a_space_takes_no_time() -> None:
    """Such a line comes from pasted minified or encoded text."""
    began = time.process_time()
    assert guess_profile("x" * 200_000) == TaskProfile.MULTI_STEP_TASK
    assert time.process_time() - began < 2
