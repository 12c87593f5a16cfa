"""Plans and jobs at a real terminal."""

from pathlib import Path
from typing import Any

from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal, start

STEPS: list[dict[str, Any]] = [
    {"name": "Core loop", "description": "game.py", "success": "it exists", "depends_on": []},
    {"name": "Score", "description": "score.py", "success": "", "depends_on": [1]},
]
SNAKE = {"json": {"name": "Snake game", "steps": STEPS, "risks": []}}


PROPOSE = {"json": decide(act("plan_tool.propose", goal="a snake game"), step="PLANNING", next_step="pending_user")}
RUN = {"json": decide(act("task_tool.generate_list"), act("task_loop.run", step_id="1"), next_step="defer")}
TASKS = {"json": {"tasks": [act("file_ops.write_file", path="game.py"), act("file_ops.write_file", path="b.py")]}}


def test_a_plan_is_shown_as_a_tree_changed_by_hand_and_dropped(tmp_path: Path, opened: list[Terminal]) -> None:
    music: dict[str, Any] = {"name": "Music", "description": "", "success": "", "depends_on": []}
    terminal = start(opened, tmp_path, [PROPOSE, {"json": {"name": "Snake", "steps": [*STEPS, music], "risks": []}}])
    terminal.enter("make a snake game")
    screen = terminal.wait_for("Should I carry out this plan?")
    assert "├─ ○ 1. Core loop" in screen and "├─ ○ 2. Score  (depends on 1)" in screen and "└─ ○ 3. Music" in screen
    terminal.enter("/plan edit 2 High score")
    terminal.wait_for("2. High score")
    terminal.enter("/plan reorder 2 1")
    terminal.wait_for("Core loop must come before")
    terminal.enter("/plan reorder 3 1")
    terminal.wait_for("1. Music")
    terminal.enter("/plan drop 1")
    screen = terminal.wait_until(lambda screen: screen.count("1. Core loop") == 3)
    assert screen.count("2. High score") == 2, "every change shows the plan once"
    terminal.enter("/plan drop")
    terminal.wait_for("was dropped")
    terminal.enter("/plan")
    terminal.wait_for("There is no plan yet")


def test_a_job_asks_in_its_name_while_the_conversation_goes_on(tmp_path: Path, opened: list[Terminal]) -> None:
    talk = {"json": decide(respond("Nice weather."), next_step="pending_user")}
    bodies: list[Any] = [
        {"text": "x = 1\n", "when": "complete content of game.py"},
        {"text": "y = 1\n", "when": "complete content of b.py"},
        {"json": {"summary": "Two files.", "causes": [], "next_action": "play"}, "when": "background job has ended"},
    ]
    terminal = start(opened, tmp_path, [PROPOSE, SNAKE, RUN, TASKS, talk, *bodies])
    terminal.enter("make a snake game")
    terminal.wait_for("Should I carry out this plan?")
    terminal.enter("/plan approve")
    terminal.wait_for("Core loop asks:")
    terminal.enter("say something about the weather")
    terminal.wait_for("Nice weather.")
    terminal.enter("/tasks")
    terminal.wait_for("waiting for your answer: game.py")
    terminal.answer("yes")
    terminal.wait_for("+y = 1")
    terminal.answer("yes")
    screen = terminal.wait_for("next: play")
    assert "Core loop: done. 2 tasks completed." in screen and "Two files." in screen
    assert (terminal.work / "b.py").read_text() == "y = 1\n"
    terminal.wait_for("Snake game: 1/2")


def test_the_key_and_the_command_pause_and_a_restart_offers_to_resume(tmp_path: Path, opened: list[Terminal]) -> None:
    slow = {"text": "x = 1\n", "when": "complete content of game.py", "delay": 60}
    terminal = start(opened, tmp_path, [PROPOSE, SNAKE, RUN, TASKS, slow], "--mode", "full-auto")
    terminal.enter("make a snake game")
    terminal.wait_for("Should I carry out this plan?")
    terminal.enter("yes")
    terminal.wait_for("⚙ Core loop 0/2")
    terminal.enter("how far?")
    terminal.wait_for("0 of 1 step, 0 tasks done, running for")
    terminal.wait_for("step 1, Core loop: file_ops.write_file game.py (")
    terminal.type("\x1b")
    terminal.wait_for("Should it pause?")
    terminal.answer("let it go on")
    terminal.type("\x14")
    terminal.wait_for("Paused: Core loop. The job and its running")
    terminal.wait_for("⏸ Core loop 0/2")
    terminal.enter("/plan drop")
    terminal.wait_for("Cancel it first")
    terminal.enter("/plan edit 2 High score")
    terminal.wait_for("2. High score")
    terminal.enter("/quit")
    assert terminal.wait_for_end() == 0
    again = start(opened, tmp_path, [], "-c")
    again.wait_for("was interrupted. Say")
    again.enter("/tasks cancel")
    again.wait_for("Cancelled: Core loop")
