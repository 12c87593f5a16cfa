"""Pasted text and pictures: the line shows a mark in place of a long text or a picture, and the message gets all of
it."""

import asyncio
import base64
import binascii
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from duckflow.programs.find import environment_outside, find_program

SECONDS = 5.0
MAC_DATA = re.compile(rb"data PNGf([0-9A-F]+)")
POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms, System.Drawing;"
    "$picture = [System.Windows.Forms.Clipboard]::GetImage();"
    "if ($picture) { $bytes = New-Object System.IO.MemoryStream;"
    "$picture.Save($bytes, [System.Drawing.Imaging.ImageFormat]::Png);"
    "[Convert]::ToBase64String($bytes.ToArray()) }"
)

Reader = tuple[list[str], Callable[[bytes], bytes]]
"""A command that reads the clipboard, and the function that decodes its output."""


def read_picture() -> bytes | None:
    """Returns the picture in the clipboard; empty if the clipboard holds none, None if there is no program to ask."""
    has_reader = False
    for command, decode in _readers():
        program = find_program(command[0])
        if program is None:
            continue
        has_reader = True
        try:
            reader_run = subprocess.run(
                [program, *command[1:]],
                env=environment_outside(Path.cwd()),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
            picture_bytes = decode(reader_run.stdout) if reader_run.returncode == 0 else b""
        except (OSError, subprocess.TimeoutExpired, binascii.Error, ValueError):
            continue
        if picture_bytes:
            return picture_bytes
    return b"" if has_reader else None


def _readers() -> Iterator[Reader]:
    """Yields the commands that fit this system, the likeliest first."""
    if sys.platform == "darwin":
        yield ["osascript", "-e", "get the clipboard as «class PNGf»"], _from_mac
        return
    for kind in ("image/png", "image/jpeg"):
        if os.environ.get("WAYLAND_DISPLAY"):
            yield ["wl-paste", "--no-newline", "--type", kind], bytes
        if os.environ.get("DISPLAY"):
            yield ["xclip", "-selection", "clipboard", "-target", kind, "-out"], bytes
    yield ["powershell.exe", "-NoProfile", "-STA", "-Command", POWERSHELL], base64.b64decode


def _from_mac(output: bytes) -> bytes:
    match = MAC_DATA.search(output)
    return bytes.fromhex(match[1].decode()) if match else b""


LINES, CHARACTERS = 8, 1200
HINT_SECONDS = 4.0
LONGEST_PATHS = 2000
MARK = re.compile(r"\[[^\[\]\n]{1,80}\]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
PATHS = re.compile(r"\s*['\"]?(?:/|~/|file://)[^\n]*\.(?:png|jpe?g|gif|webp)['\"]?\s*", re.IGNORECASE)


class Pastes:
    """Everything that was pasted in this session, by its mark."""

    def __init__(self, words: Callable[..., str]) -> None:
        self._texts: dict[str, str] = {}
        self._words = words

    def take(self, pasted: str) -> str:
        """Returns the text to put into the line: the pasted text if it is short, else a mark. A picture dropped onto
        the terminal arrives as its path, and becomes a mention."""
        if len(pasted) <= LONGEST_PATHS and PATHS.fullmatch(pasted) and (mentions := _pictures(pasted)):
            return mentions
        text = CONTROL.sub("", pasted.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        if lines > 1:
            return self._marked("paste.lines", text, lines=lines)
        return self._marked("paste.characters", text, characters=len(text))

    async def paste_picture(self, insert: Callable[[str], None], hint: Callable[[str, float], None]) -> None:
        """Inserts the picture of the clipboard as soon as it has been read."""
        picture_bytes = await asyncio.to_thread(read_picture)
        if paste_mark := self._take_picture(picture_bytes or b""):
            insert(f"{paste_mark} ")
        else:
            hint("picture.no_program" if picture_bytes is None else "picture.none_pasted", HINT_SECONDS)

    def _take_picture(self, data: bytes) -> str:
        """Saves a picture of the clipboard in a file until the program ends, and returns its mark; empty if the data is
        no picture."""
        from duckflow.state.picture import Picture, read_header

        if (header := read_header(data)) is None:
            return ""
        media, width, height = header
        picture = Picture(digest="", name="", media=media, size=len(data), width=width, height=height)
        path = self._folder / f"clipboard-{len(self._texts) + 1}.{media.removeprefix('image/')}"
        path.write_bytes(data)
        return self._marked("paste.picture", f'@"{path}"', picture=picture.describe())

    def expand(self, line: str) -> str:
        """Replaces every mark in the line by its text. Text that only looks like a mark stays."""
        return MARK.sub(lambda mark: self._texts.get(mark[0], mark[0]), line)

    def _marked(self, key: str, text: str, **values: str | int) -> str:
        paste_mark = self._words(key, number=len(self._texts) + 1, **values)
        self._texts[paste_mark] = text
        return paste_mark

    @cached_property
    def _folder(self) -> Path:
        import atexit
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="duckflow-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def _pictures(pasted: str) -> str:
    """Returns mentions of the pictures whose paths were pasted, with quotes, backslashes or as file addresses. Returns
    an empty text if anything else was pasted with them."""
    import shlex
    from urllib.parse import unquote

    try:
        words = shlex.split(pasted)
    except ValueError:
        return ""
    if not all(Path(word).is_absolute() for word in words) and Path(pasted.strip()).is_absolute():
        # Some terminals do not escape spaces.
        words = [pasted.strip()]
    paths = [unquote(word.removeprefix("file://")) if word.startswith("file://") else word for word in words]
    if not all(PATHS.fullmatch(path) and Path(path).expanduser().is_file() for path in paths):
        return ""
    return "".join(f'@"{path}" ' if re.search(r"[^\w./~-]", path) else f"@{path} " for path in paths)
