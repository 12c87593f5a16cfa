"""Pictures of real runs: `python -m benchmarks.pictures [FOLDER]` writes SVG files (default docs/pictures).

The chat talks to the local model (`duckflow models pull` first); the Duck Call is played with a scripted one.
"""

import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duckflow.store.paths import Paths
from tests.journeys.story import act, decide
from tests.ui.console.terminal import Terminal

COLUMNS = 96
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LOOK = {"json": decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")}


def picture(terminal: Terminal, path: Path) -> None:
    """The screen as it stands, in its colours."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in trimmed(terminal):
        console.print(line, soft_wrap=True)
    console.save_svg(str(path), title="duckflow")


def trimmed(terminal: Terminal) -> list[Text]:
    """The lines with something on them, the status bar right below."""
    return [line for line in terminal.styled() if line.plain.strip()]


def chat(folder: Path, language: str, request: str, yes: str) -> None:
    with tempfile.TemporaryDirectory() as top:
        (Path(top) / "home/cache").mkdir(parents=True)
        (Path(top) / "home/cache/models").symlink_to(Paths.of_user().models)
        terminal = Terminal(Path(top), None, "-m", "local", "--lang", language, columns=COLUMNS)
        terminal.wait_for("/help")
        terminal.enter(request)
        terminal.wait_for("1. yes" if language == "en" else "1. はい", 240)
        terminal.enter(yes)
        terminal.wait_for("Created hello.py" if language == "en" else "作成しました", 240)
        terminal.wait_until(lambda screen: not set(screen) & set(SPINNER), 240)
        picture(terminal, folder / f"chat.{language}.svg")
        terminal.process.close(force=True)


def duck_call(folder: Path, language: str, request: str) -> None:
    with tempfile.TemporaryDirectory() as top:
        terminal = Terminal(Path(top), [LOOK] * 5, "--lang", language, columns=COLUMNS)
        terminal.wait_for("/help")
        terminal.enter(request)
        terminal.wait_for("4. ")
        terminal.wait_for("[ Duckflow")
        picture(terminal, folder / f"duck-call.{language}.svg")
        terminal.process.close(force=True)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    target.mkdir(parents=True, exist_ok=True)
    duck_call(target, "en", "Look around and tell me what this project is")
    duck_call(target, "ja", "このプロジェクトが何か調べて")
    chat(target, "en", "Create hello.py that prints hello", "yes")
    chat(target, "ja", "hello と表示する hello.py を作って", "はい")
