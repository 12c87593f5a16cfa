"""The answers of servers in the form that the model gets: texts in one piece, and pictures. The part of a text that is
too long, and all other data, is kept on disk."""

import base64
import binascii
import contextlib
import json
import mimetypes
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.errors import ToolError
from duckflow.safety.path_names import shown_size
from duckflow.safety.secrets import mask
from duckflow.state.data import as_table, tables
from duckflow.state.picture import Picture, read_header

Table = dict[str, Any]
KEPT_DAYS = 7
LONGEST_KEPT = 64 * 1024 * 1024
TakePicture = Callable[[bytes, str], Picture]


class KeptOutputs:
    """Files for outputs that do not fit into a prompt, in one of Duckflow's own folders. Old files are deleted."""

    def __init__(self, folder: Path, most: int, take: TakePicture | None = None) -> None:
        """`take` keeps a picture with the conversation. It is None where there is no conversation."""
        self._folder = folder
        self._most = most
        self.take = take
        self.linked: dict[str, str] = {}
        """The addresses of the resources that results of tools link to, each with the name of the server that has the
        resource."""
        self._cleared = False

    def cut(self, text: str, name: str) -> str:
        """Returns the beginning of a text that is too long, with the name by which the rest can be read. Keys in it are
        hidden before, since whoever reads on chooses where the next part begins."""
        text = mask(text).text
        if len(text) <= self._most:
            return text
        path = self.keep(text.encode("utf-8", "replace"), name, ".txt")
        note = f"[cut: {len(text)} characters in all. Read on with mcp.read, source={path.name}, start={self._most}]"
        return f"{text[: self._most]}\n{note}"

    def keep(self, data: bytes, name: str, ending: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clear()
        path = self._folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:60]}-{secrets.token_hex(3)}{ending}"
        path.touch(mode=0o600)
        path.write_bytes(data[:LONGEST_KEPT])
        return path

    def read(self, name: str, start: int) -> str:
        """Returns the text of a stored output from the character `start` on. Raises FileNotFoundError for a file that
        is not in the folder."""
        path = self._folder / name
        if path.parent != self._folder or not path.is_file():
            raise FileNotFoundError(name)
        text = path.read_text(encoding="utf-8", errors="replace")
        piece = text[start : start + self._most]
        more_note = f"\n[{len(text) - start - len(piece)} characters more: start={start + len(piece)}]"
        return piece + (more_note if start + len(piece) < len(text) else "")

    def _clear(self) -> None:
        if not self._cleared:
            self._cleared = True
            oldest_time = time.time() - KEPT_DAYS * 86_400
            for path in self._folder.iterdir():
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < oldest_time:
                        path.unlink()


class Content(NamedTuple):
    """The content of an answer: a text and pictures."""

    text: str
    pictures: tuple[Picture, ...] = ()


def join(contents: Sequence[Content], name: str, outputs: KeptOutputs) -> Content:
    """Joins contents into one, and cuts the text where it is too long."""
    text = "\n".join(content.text for content in contents if content.text) or "(no output)"
    return Content(outputs.cut(text, name), tuple(picture for content in contents for picture in content.pictures))


def read_result(result: Table, name: str, outputs: KeptOutputs) -> Content:
    """Reads the result of a call. Structured content is added as JSON, unless the text says the same."""
    contents = [read_block(block, name, outputs) for block in tables(result.get("content"))]
    structured_content: Any = result.get("structuredContent")
    if structured_content is not None and not _says("\n".join(block.text for block in contents), structured_content):
        contents.append(Content(json.dumps(structured_content, ensure_ascii=False)))
    return join(contents, name, outputs)


def read_block(block: Table, name: str, outputs: KeptOutputs) -> Content:
    """Reads one block of a result or of a prompt."""
    match block.get("type"):
        case "text":
            return Content(str(block.get("text", "")))
        case "image" | "audio" as kind:
            return _kept_data(kind, block, name, outputs)
        case "resource_link":
            description = " ".join(str(block.get(key, "")) for key in ("title", "description") if block.get(key))
            return Content(f"[resource {block.get('uri', '')} {block.get('name', '')}] {description}".strip())
        case "resource":
            return read_resource(as_table(block.get("resource")), name, outputs)
        case other_type:
            return Content(f"[{other_type}]")


def read_resource(resource: Table, name: str, outputs: KeptOutputs) -> Content:
    """Reads the content of a resource."""
    heading = f"[resource {resource.get('uri', '')}]"
    if "blob" in resource:
        kept_content = _kept_data("data", {**resource, "data": resource["blob"]}, name, outputs)
        return kept_content._replace(text=f"{heading} {kept_content.text}")
    return Content(f"{heading}\n{resource.get('text', '')}")


def _kept_data(kind: str, block: Table, name: str, outputs: KeptOutputs) -> Content:
    type_ = str(block.get("mimeType", "application/octet-stream"))
    try:
        decoded_bytes = base64.b64decode(str(block.get("data", "")), validate=False)
    except (binascii.Error, ValueError):
        return Content(f"[{kind} {type_}: it could not be read]")
    path = outputs.keep(decoded_bytes, name, mimetypes.guess_extension(type_.partition(";")[0]) or ".bin")
    note = f"[{kind} {type_}, {shown_size(len(decoded_bytes))}, kept as {path}]"
    if outputs.take is None or read_header(decoded_bytes) is None:
        return Content(note)
    try:
        return Content(note, (outputs.take(decoded_bytes, path.name),))
    except ToolError as problem:
        return Content(f"{note} {problem.for_model}")


def _says(text: str, structured: Any) -> bool:
    """Says whether every value of the structured content occurs in the text already."""
    match structured:
        case dict():
            return bool(text) and all(_says(text, value) for value in cast("Table", structured).values())
        case list():
            return bool(text) and all(_says(text, value) for value in cast("list[Any]", structured))
        case str():
            return structured in text or json.dumps(structured)[1:-1] in text
        case _:
            return json.dumps(structured) in text
