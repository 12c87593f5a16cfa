"""What is pasted: long texts and pictures stand as a mark in the line, and whole in the message."""

import asyncio
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

LINES, CHARACTERS = 8, 1200
HINT_SECONDS = 4.0
LONGEST_PATHS = 2000
MARK = re.compile(r"\[[^\[\]\n]{1,80}\]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
PATHS = re.compile(r"\s*['\"]?(?:/|~/|file://)[^\n]*\.(?:png|jpe?g|gif|webp)['\"]?\s*", re.IGNORECASE)


class Pastes:
    """What was pasted in this session, by its mark."""

    def __init__(self, words: Callable[..., str]) -> None:
        self._texts: dict[str, str] = {}
        self._words = words

    def take(self, pasted: str) -> str:
        """What to put into the line: the text itself when it is short, else a mark. A picture that was dropped onto
        the terminal arrives as its path, and becomes a mention."""
        if len(pasted) <= LONGEST_PATHS and PATHS.fullmatch(pasted) and (found := _pictures(pasted)):
            return found
        text = CONTROL.sub("", pasted.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        if lines > 1:
            return self._marked("paste.lines", text, lines=lines)
        return self._marked("paste.characters", text, characters=len(text))

    async def paste_picture(self, insert: Callable[[str], None], hint: Callable[[str, float], None]) -> None:
        """From the clipboard, as soon as it is there."""
        from duckflow.ui.console.clipboard import read_picture

        found = await asyncio.to_thread(read_picture)
        if mark := self._take_picture(found or b""):
            insert(f"{mark} ")
        else:
            hint("picture.no_program" if found is None else "picture.none_pasted", HINT_SECONDS)

    def _take_picture(self, data: bytes) -> str:
        """The mark of a picture from the clipboard, which lies in a file of its own until the end; nothing for what is
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
        """The line with every mark replaced by what it stands for; what only looks like a mark stays."""
        return MARK.sub(lambda mark: self._texts.get(mark[0], mark[0]), line)

    def _marked(self, key: str, text: str, **values: str | int) -> str:
        mark = self._words(key, number=len(self._texts) + 1, **values)
        self._texts[mark] = text
        return mark

    @cached_property
    def _folder(self) -> Path:
        import atexit
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="duckflow-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def _pictures(pasted: str) -> str:
    """Mentions of the pictures whose paths were pasted, with quotes, backslashes or as addresses; nothing when there is
    anything else among them."""
    import shlex
    from urllib.parse import unquote

    try:
        words = shlex.split(pasted)
    except ValueError:
        return ""
    if not all(Path(word).is_absolute() for word in words) and Path(pasted.strip()).is_absolute():
        # Some terminals leave spaces as they are.
        words = [pasted.strip()]
    paths = [unquote(word.removeprefix("file://")) if word.startswith("file://") else word for word in words]
    if not all(PATHS.fullmatch(path) and Path(path).expanduser().is_file() for path in paths):
        return ""
    return "".join(f'@"{path}" ' if re.search(r"[^\w./~-]", path) else f"@{path} " for path in paths)
