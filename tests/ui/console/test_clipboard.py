"""Pictures from the clipboard at a real terminal, with programs that stand in for the desktop's."""

import os
import stat
import sys
from pathlib import Path

import pytest

from tests.journeys.drawn import png
from tests.ui.console.terminal import Terminal, said, start

CTRL_V, ALT_V = "\x16", "\x1bv"


def program(folder: Path, name: str, *lines: str) -> Path:
    """Makes a program that records its call and runs these lines."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join(("#!/bin/sh", f'echo "$@" >> {folder}/called', *lines)) + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def with_programs(folder: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    return {"PATH": path} | more


@pytest.mark.parametrize(
    ("name", "key", "environment", "asked"),
    [
        ("wl-paste", CTRL_V, {"WAYLAND_DISPLAY": "w"}, "--no-newline --type image/png"),
        ("xclip", ALT_V, {"DISPLAY": ":7"}, "-selection clipboard -target image/png -out"),
        ("powershell.exe", CTRL_V, {}, "-NoProfile -STA"),
    ],
)
def test_a_picture_is_pasted_sent_and_shown_as_a_line(
    tmp_path: Path, opened: list[Terminal], name: str, key: str, environment: dict[str, str], asked: str
) -> None:
    (tmp_path / "shot.png").write_bytes(png(80, 60))
    program(tmp_path / "bin", name, f"{'base64' if name.endswith('exe') else 'cat'} {tmp_path}/shot.png")
    answered = said("a duck", when="picture")
    terminal = start(opened, tmp_path, [answered], **with_programs(tmp_path / "bin", **environment))
    terminal.type(f"what is this? {key}")
    terminal.wait_for("› what is this? [picture #1: PNG, 80×60, ")
    terminal.enter("")
    terminal.wait_for("a duck")
    screen = terminal.wait_for("(PNG, 80×60, ")
    assert "clipboard-1.png" in screen
    assert (tmp_path / "bin/called").read_text().startswith(asked)
    [kept] = (tmp_path / "home").rglob("*.pictures/*")
    assert kept.read_bytes() == png(80, 60)


def test_without_a_picture_it_says_so_and_typing_goes_on(tmp_path: Path, opened: list[Terminal]) -> None:
    program(tmp_path / "bin", "wl-paste", "exit 1")
    environment = with_programs(tmp_path / "bin", WAYLAND_DISPLAY="w")
    terminal = start(opened, tmp_path, [said("fine", when="hello")], **environment)
    terminal.type(CTRL_V)
    terminal.wait_for("No picture in the clipboard")
    terminal.enter("hello")
    terminal.wait_for("fine")


def test_the_path_of_a_dropped_picture_is_attached(tmp_path: Path, opened: list[Terminal]) -> None:
    (tmp_path / "my shot.png").write_bytes(png(80, 60))
    terminal = start(opened, tmp_path, [said("a duck", when="picture")])
    terminal.type("look")
    terminal.paste(f"{tmp_path}/my\\ shot.png")
    terminal.wait_for("› look @")
    terminal.enter("")
    terminal.wait_for("a duck")
    terminal.wait_for("PNG, 80×60")
