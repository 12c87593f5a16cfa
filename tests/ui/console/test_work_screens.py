"""A plan, its jobs, a job's Gate and a report, on narrow and wide screens in both languages."""

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.story import act, decide
from tests.ui.console.terminal import Terminal, start

LONG = "game.py に盤面と蛇の動きを書き、壁と自分の体にぶつかったら終わりにする。速さは設定で変えられるようにする。"
WORDS = {
    "en": ("carry out this plan?", "コア実装 asks:", "done when: ", "your answer: game.py", "next: ", "done. 1 task"),
    "ja": ("この計画で進めますか", "コア実装」からの質問", "完了条件: ", "待ち: game.py", "次にすること: ",
           "完了。タスク 1 "),
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.slow), 120])
def test_the_work_is_readable_at_every_width(
    tmp_path: Path, opened: list[Terminal], columns: int, language: str
) -> None:
    steps: list[Any] = [{"name": "コア実装", "description": LONG, "success": "game.py がある", "depends_on": []}]
    report: dict[str, Any] = {"summary": LONG, "causes": [], "next_action": "遊んでみる"}
    replies: list[Any] = [
        {"json": decide(act("plan_tool.propose", goal="ゲーム"), step="PLANNING", next_step="pending_user")},
        {"json": {"name": "ゲーム実装", "steps": steps, "risks": [LONG]}},
        {"json": decide(act("task_loop.run"), next_step="defer")},
        {"json": {"tasks": [act("file_ops.write_file", LONG, path="game.py", content="x = 1\n")]}},
        {"json": report},
    ]
    asked, gate, criterion, waits, advice, over = WORDS[language]
    terminal = start(opened, tmp_path, replies, "--lang", language, columns=columns)
    terminal.enter("ゲームを実装して")
    terminal.wait_for(asked)
    terminal.enter("yes" if language == "en" else "はい、お願いします")
    terminal.wait_for(gate)
    terminal.enter("/plan")
    screen = terminal.wait_until(lambda screen: screen.count(criterion) >= 2)
    tree = screen[screen.rindex("└─ ▶ 1. コア実装") :].split("\n")
    assert all(line.startswith("     ") for line in tree[1 : 3 + (columns == 60)]), "what is too long goes on below"
    terminal.enter("/tasks")
    terminal.wait_for(waits)
    terminal.answer("yes" if language == "en" else "はい")
    screen = terminal.wait_for(advice)
    assert over in screen and "job_" not in screen.replace(str(tmp_path), "")
