"""Pictures of real runs: `python -m benchmarks.pictures [FOLDER]` writes SVG files (default docs/pictures).

Every picture is a terminal in which the program runs; only the model is played from a script. `make screenshots`.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal

COLUMNS = 86
Said = dict[str, str]
ENGLISH: Said = {
    "question": "How does `snake.py` keep the snake inside the board?",
    "answer": "It **wraps around**: `step` takes the new head modulo the size of the board.\n\n```python\n"
    "def step(head: Point, way: Point) -> Point:\n    # No walls: what leaves on one side comes back on the other.\n"
    "    return ((head[0] + way[0]) % WIDTH, (head[1] + way[1]) % HEIGHT)\n```\n\n"
    "| side | leaves at | comes back at |\n|------|----------:|--------------:|\n"
    "| right | WIDTH | 0 |\n| left | -1 | WIDTH - 1 |\n\n"
    "- Walls would need a check *before* the move.\n- The board's size is set in [settings](docs/settings.md).",
    "request": "Create hello.py that greets a name given on the command line",
    "why": "the user wants a greeting",
    "rationale": "A small script with one argument is enough",
    "alternative": "argparse, if more options are to come",
    "done": "`hello.py` is written. Try it: `python hello.py Ann`",
    "look": "Look around and tell me what this project is",
    "goal": "Make a snake game",
    "plan": "Snake game",
    "core": "Core loop",
    "core_text": "game.py: board, snake, one step",
    "core_done": "a test moves the snake ten steps",
    "score": "Score and food",
    "score_text": "score.py: food appears, the score grows",
    "keys": "Keys and drawing",
    "keys_text": "screen.py: arrow keys, drawing in the terminal",
    "risk": "terminals differ in their keys",
    "yes": "yes",
    "far": "How far is it?",
    "draft": "Shall I do it like this?",
    "running": "The first step runs in the background now.",
    "progress": "now: file_ops",
    "body": "complete content of {}",
}
JAPANESE: Said = {
    "question": "`snake.py` はどうやって盤の外に出ないようにしていますか？",
    "answer": "**反対側に戻します**。`step` が新しい頭の位置を盤の大きさで割った余りにしています。\n\n```python\n"
    "def step(head: Point, way: Point) -> Point:\n    # 壁はなく、出た側の反対から戻ってくる\n"
    "    return ((head[0] + way[0]) % WIDTH, (head[1] + way[1]) % HEIGHT)\n```\n\n"
    "| 方向 | 出る位置 | 戻る位置 |\n|------|---------:|---------:|\n| 右 | WIDTH | 0 |\n| 左 | -1 | WIDTH - 1 |\n\n"
    "- 壁を作るなら、動く*前*の判定が必要です。\n- 盤の大きさは [設定](docs/settings.md) にあります。",
    "request": "コマンドラインで渡した名前に挨拶する hello.py を作って",
    "why": "挨拶を表示したいとのことなので",
    "rationale": "引数が一つの小さなスクリプトで足ります",
    "alternative": "オプションが増えるなら argparse",
    "done": "`hello.py` を書きました。`python hello.py 太郎` で試せます。",
    "look": "このプロジェクトが何か調べて",
    "goal": "スネークゲームを作って",
    "plan": "スネークゲーム",
    "core": "中心のループ",
    "core_text": "game.py: 盤、ヘビ、一歩の動き",
    "core_done": "ヘビが十歩動くテストが通る",
    "score": "得点とエサ",
    "score_text": "score.py: エサが現れ、得点が増える",
    "keys": "キー操作と描画",
    "keys_text": "screen.py: 矢印キー、端末への描画",
    "risk": "端末によってキーの扱いが違う",
    "yes": "はい",
    "far": "どこまで進んだ？",
    "draft": "この計画で進めますか",
    "running": "最初のステップをバックグラウンドで始めました。",
    "progress": "いま: file_ops",
    "body": "{} の内容をすべて",
}
HELLO = 'import sys\n\nname = sys.argv[1] if len(sys.argv) > 1 else "world"\nprint(f"Hello, {name}!")\n'


def picture(terminal: Terminal, path: Path) -> None:
    """The screen as it stands, in its colours."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in trimmed(terminal.styled()):
        console.print(line, soft_wrap=True)
    console.save_svg(str(path), title="duckflow")


def trimmed(lines: list[Text]) -> list[Text]:
    """Without the empty rest of the screen."""
    last = max(number for number, line in enumerate(lines) if line.plain.strip())
    return lines[: last + 1]


def chat(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["question"])
    terminal.wait_for("docs/settings.md")
    terminal.wait_until(still)


def gate(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["request"])
    terminal.wait_for("5. ")


def duck_call(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["look"])
    terminal.wait_for("4. ")


def plan(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["goal"])
    terminal.wait_for(said["draft"])
    terminal.enter(said["yes"])
    terminal.wait_for("1/3 ")
    terminal.enter(said["far"])
    terminal.wait_for(said["progress"])
    terminal.wait_until(still)


def status(terminal: Terminal, said: Said) -> None:
    gate(terminal, said)
    terminal.answer("1")
    terminal.wait_until(still)
    terminal.enter("/status")
    terminal.wait_for("hello.py", 5)
    terminal.wait_until(still)


def still(screen: str) -> bool:
    """Whether nothing is being waited for."""
    return not set(screen) & set("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")


def _last(screen: str) -> str:
    """The status bar."""
    return screen.rstrip().rpartition("\n")[2]


def scripts(said: Said) -> dict[str, list[Any]]:
    write = decide(
        act("file_ops.write_file", said["why"], path="hello.py"),
        respond(said["done"]),
        rationale=said["rationale"],
        alternative=said["alternative"],
        state_delta={"goal": said["request"]},
    )
    steps: list[dict[str, Any]] = [
        {"name": said["core"], "description": said["core_text"], "success": said["core_done"], "depends_on": []},
        {"name": said["score"], "description": said["score_text"], "success": "", "depends_on": [1]},
        {"name": said["keys"], "description": said["keys_text"], "success": "", "depends_on": [1]},
    ]
    files = ("board.py", "game.py", "score.py")
    return {
        "chat": [{"json": decide(respond(said["answer"]), step="PLANNING")}],
        "gate": [{"json": write}, HELLO],
        "duck-call": [{"json": decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")}] * 5,
        "plan": [
            {"json": decide(act("plan_tool.propose", goal=said["goal"]), step="PLANNING", next_step="pending_user")},
            {"json": {"name": said["plan"], "steps": steps, "risks": [said["risk"]]}},
            {
                "json": decide(
                    act("task_tool.generate_list"),
                    act("task_loop.run", step_id="1"),
                    next_step="defer",
                    rationale=said["running"],
                )
            },
            {"json": {"tasks": [act("file_ops.write_file", said["core"], path=path) for path in files]}},
            {"text": "WIDTH, HEIGHT = 40, 20\n", "when": said["body"].format("board.py")},
            {"text": "…", "when": said["body"].format("game.py"), "delay": 60},
        ],
        "status": [{"json": write}, HELLO],
    }


SCENES: dict[str, Callable[[Terminal, Said], None]] = {
    "chat": chat,
    "gate": gate,
    "duck-call": duck_call,
    "plan": plan,
    "status": status,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for language, said in (("en", ENGLISH), ("ja", JAPANESE)):
        for name, play in SCENES.items():
            mode = ("--mode", "full-auto") if name == "plan" else ()
            with tempfile.TemporaryDirectory() as top:
                terminal = Terminal(Path(top), scripts(said)[name], "--lang", language, *mode, columns=COLUMNS)
                try:
                    terminal.wait_for("/help")
                    terminal.wait_for("scripted:")
                    play(terminal, said)
                    terminal.wait_until(lambda screen: " · script" in _last(screen) or ":script" in _last(screen))
                    picture(terminal, folder / f"{name}.{language}.svg")
                finally:
                    terminal.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
