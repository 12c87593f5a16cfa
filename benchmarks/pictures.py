"""Pictures of real runs: `python -m benchmarks.pictures [FOLDER]` writes SVG files (default docs/pictures), and PNG
files of the page where there is a browser.

Every picture is a terminal in which the program runs; only the model is played: an endpoint on loopback says what a
script has. `make screenshots`.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.text import Text

from benchmarks.drawing import Drawing, Frame, cells_of
from benchmarks.page_pictures import take_pages
from duckflow.state.action import DECIDE, RESPOND, wire_name
from tests.journeys.story import act, decide, respond
from tests.llm.fake_endpoint import Answer, Exchange, FakeEndpoint, chunk, says, sends
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
    "core_done": "board.py and game.py exist",
    "score": "Score and food",
    "score_text": "score.py: food appears, the score grows",
    "keys": "Keys and drawing",
    "keys_text": "screen.py: arrow keys, drawing in the terminal",
    "risk": "terminals differ in their keys",
    "yes": "yes",
    "far": "How far is it?",
    "draft": "Should I carry out this plan?",
    "yes_please": "yes, please",
    "your_step": "Your step: ",
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
    "core_done": "board.py と game.py がある",
    "score": "得点とエサ",
    "score_text": "score.py: エサが現れ、得点が増える",
    "keys": "キー操作と描画",
    "keys_text": "screen.py: 矢印キー、端末への描画",
    "risk": "端末によってキーの扱いが違う",
    "yes": "はい",
    "far": "どこまで進んだ？",
    "draft": "この計画で進めますか",
    "yes_please": "はい、お願いします",
    "your_step": "あなたのステップ: ",
}
HELLO = 'import sys\n\nname = sys.argv[1] if len(sys.argv) > 1 else "world"\nprint(f"Hello, {name}!")\n'
HOME = Path("/tmp/ann")
"""Readers see the folder's name in the pictures."""
FOLDER = "snake"
MODEL = "gpt-5-mini"
USED = {"prompt_tokens": 2900, "completion_tokens": 160, "prompt_tokens_details": {"cached_tokens": 2048}}


class PlayedModel(FakeEndpoint):
    """Says the first line of the script that was not said yet and whose cue stands in the request."""

    def __init__(self, script: list[tuple[str, Any]]) -> None:
        super().__init__(says(""))
        self._script = script

    def next_answer(self) -> Answer:
        asked = json.dumps(self.received[-1], ensure_ascii=False)
        number = next((number for number, (cue, _) in enumerate(self._script) if cue in asked), -1)
        if number < 0:
            return _thinks
        _, reply = self._script.pop(number)
        if "actions" in reply:
            return _calling(reply)
        return says(json.dumps(reply, ensure_ascii=False), usage=USED)


def _thinks(exchange: Exchange) -> None:
    """Lets the model think for as long as a picture takes."""
    exchange.begin()
    exchange.event(chunk())
    time.sleep(THINKING_SECONDS)


def _calling(decision: dict[str, Any]) -> Answer:
    """A Decision as a model with tools of its own gives it: what it says, and its calls."""
    said = [one["args"]["text"] for one in decision["actions"] if one["operation"] == RESPOND]
    why = decision["rationale"] if decision["rationale"] != decide()["rationale"] else ""
    events: list[dict[str, Any]] = [chunk(text) for text in said or [why]]
    made = [one for one in decision["actions"] if one["operation"] != RESPOND]
    if not said or made:
        fields = {name: decision[name] for name in ("alternative", "state_delta", "next_step") if decision.get(name)}
        made.append({"operation": DECIDE, "args": fields, "reasoning": ""})
    for index, one in enumerate(made):
        args = one["args"] | ({"reasoning": one["reasoning"]} if one["reasoning"] else {})
        function = {"name": wire_name(one["operation"]), "arguments": json.dumps(args, ensure_ascii=False)}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        events.append({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]})
    return sends(*events, chunk(finish="tool_calls" if made else "stop", usage=USED))


@contextmanager
def running(script: list[tuple[str, Any]], *options: str) -> Generator[Terminal]:
    """The program in a folder with a familiar name, and a model with one."""
    shutil.rmtree(HOME, ignore_errors=True)
    config = HOME / "home/config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[memory]\nsummaries = false\n[ui]\nnotify = 'off'\n")
    with PlayedModel(script) as server:
        line = ("-m", MODEL, *options)
        terminal = Terminal(
            HOME, None, *line, columns=COLUMNS, folder=FOLDER, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-not-used"
        )
        try:
            terminal.wait_for(f"openai:{MODEL}")
            yield terminal
        finally:
            terminal.close()
            shutil.rmtree(HOME, ignore_errors=True)


def trimmed(lines: list[Text]) -> list[Text]:
    """Returns the screen without its empty rows at the end."""
    last = max(number for number, line in enumerate(lines) if line.plain.strip())
    return lines[: last + 1]


def frame(terminal: Terminal, seconds: float = 1.0) -> Frame:
    """The screen as it stands, in its colours."""
    return Frame([cells_of(line) for line in trimmed(terminal.styled())], seconds)


def chat(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["question"])
    terminal.wait_for("docs/settings.md")
    terminal.wait_until(still)


def gate(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["request"])
    terminal.wait_for(" e. ")


def duck_call(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["look"])
    terminal.wait_for("4. ")


def plan(terminal: Terminal, said: Said) -> None:
    terminal.enter(said["goal"])
    terminal.wait_for(said["draft"])
    terminal.wait_until(still)


def status(terminal: Terminal, said: Said) -> None:
    gate(terminal, said)
    terminal.answer("1")
    terminal.wait_for(said["done"].split("`")[3])
    terminal.wait_until(still)
    terminal.enter("/status")
    terminal.wait_for("/why")
    terminal.wait_until(still)


def still(screen: str) -> bool:
    """Says whether nothing is being waited for."""
    return not set(screen) & set("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")


def scripts(said: Said) -> dict[str, list[tuple[str, Any]]]:
    write = decide(
        act("file_ops.write_file", said["why"], path="hello.py", content=HELLO),
        rationale=said["rationale"],
        alternative=said["alternative"],
        state_delta={"goal": said["request"]},
        next_step="continue",
    )
    look = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
    return {
        "chat": [("", decide(respond(said["answer"]), step="PLANNING"))],
        "gate": [("", write)],
        "duck-call": [("", look)] * 5,
        "plan": planning(said),
        "status": [("", write), ("", decide(respond(said["done"])))],
    }


def planning(said: Said) -> list[tuple[str, Any]]:
    steps: list[dict[str, Any]] = [
        {"name": said["core"], "description": said["core_text"], "success": said["core_done"], "depends_on": []},
        {"name": said["score"], "description": said["score_text"], "success": "", "depends_on": [1]},
        {"name": said["keys"], "description": said["keys_text"], "success": "", "depends_on": [1]},
    ]
    return [
        ("", decide(act("plan_tool.propose", goal=said["goal"]), step="PLANNING", next_step="pending_user")),
        ("", {"name": said["plan"], "steps": steps, "risks": [said["risk"]]}),
    ]


THINKING_SECONDS = 40.0
LETTERS = 6
"""The number of letters typed at a time in the moving picture."""
SNAKE = {
    "board.py": "WIDTH, HEIGHT = 40, 20\n",
    "game.py": "from board import HEIGHT, WIDTH\n\n\ndef step(head, way):\n"
    "    return ((head[0] + way[0]) % WIDTH, (head[1] + way[1]) % HEIGHT)\n",
}


def moving(said: Said) -> list[tuple[str, Any]]:
    """A plan, its job, the job's Gate, and a Duck Call while it goes on."""
    writes = [act("file_ops.write_file", said["core"], path=name, content=text) for name, text in SNAKE.items()]
    look = decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")
    return [
        *planning(said),
        (said["your_step"] + said["core"], decide(*writes, rationale=said["core_text"])),
        *[(said["look"], look)] * 5,
        ("", decide(act("task_loop.run"), next_step="defer")),
    ]


def movie(terminal: Terminal, said: Said) -> list[Frame]:
    """What is seen on the way, as long as it takes to read."""
    seen = [frame(terminal, 1.0)]

    def typed(text: str) -> None:
        for start in range(0, len(text), LETTERS):
            terminal.type(text[start : start + LETTERS])
            terminal.read(0.1)
            seen.append(frame(terminal, 0.25))
        terminal.type("\r")

    typed(said["goal"])
    terminal.wait_for(said["draft"])
    terminal.wait_until(still)
    seen.append(frame(terminal, 4.0))
    typed(said["yes_please"])
    terminal.wait_for("0/3")
    seen.append(frame(terminal, 1.5))
    terminal.wait_for("4. ")
    time.sleep(1.0)
    terminal.read(0.5)
    seen.append(frame(terminal, 4.0))
    typed("1")
    terminal.wait_for("1/3")
    terminal.read(1.0)
    seen.append(frame(terminal, 1.5))
    typed(said["far"])
    terminal.read(1.5)
    seen.append(frame(terminal, 3.0))
    typed(said["look"])
    terminal.wait_until(lambda screen: screen.count("4. ") == 2)
    terminal.read(0.5)
    seen.append(frame(terminal, 5.0))
    return seen


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
            with running(scripts(said)[name], "--lang", language) as terminal:
                play(terminal, said)
                terminal.wait_until(lambda screen: f"{MODEL} · " in screen.rstrip().rpartition("\n")[2])
                Drawing().save([frame(terminal)], COLUMNS, folder / f"{name}.{language}.svg")
        with running(moving(said), "--lang", language) as terminal:
            Drawing().save(movie(terminal, said), COLUMNS, folder / f"movie.{language}.svg")
    take_pages({"en": ENGLISH, "ja": JAPANESE}, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
