"""What a server sends as the model gets it: texts in one piece, the rest of what is long and all pictures on disk."""

import base64
import binascii
import contextlib
import json
import mimetypes
import re
import secrets
import time
from pathlib import Path
from typing import Any, cast

from duckflow.llm.json_fields import as_table, tables
from duckflow.safety.shown import shown_size

Table = dict[str, Any]
KEPT_DAYS = 7
LONGEST_KEPT = 64 * 1024 * 1024


class KeptOutputs:
    """Files for what does not fit into a prompt, in a folder of Duckflow's own; old ones are cleared away."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._cleared = False

    def cut(self, text: str, name: str) -> str:
        """The head of what is too long, with the name by which the rest can be read."""
        if len(text) <= self._most:
            return text
        kept = self.keep(text.encode("utf-8", "replace"), name, ".txt")
        told = f"[cut: {len(text)} characters in all. Read on with mcp.read, source={kept.name}, start={self._most}]"
        return f"{text[: self._most]}\n{told}"

    def keep(self, data: bytes, name: str, ending: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clear()
        path = self._folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:60]}-{secrets.token_hex(3)}{ending}"
        path.touch(mode=0o600)
        path.write_bytes(data[:LONGEST_KEPT])
        return path

    def read(self, name: str, start: int) -> str:
        """From this character on; FileNotFoundError for what is not ours."""
        path = self._folder / name
        if path.parent != self._folder or not path.is_file():
            raise FileNotFoundError(name)
        text = path.read_text(encoding="utf-8", errors="replace")
        piece = text[start : start + self._most]
        more = f"\n[{len(text) - start - len(piece)} characters more: start={start + len(piece)}]"
        return piece + (more if start + len(piece) < len(text) else "")

    def _clear(self) -> None:
        if not self._cleared:
            self._cleared = True
            old = time.time() - KEPT_DAYS * 86_400
            for path in self._folder.iterdir():
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < old:
                        path.unlink()


def result_text(result: Table, name: str, kept: KeptOutputs) -> str:
    """The result of a call. What is structured is told as JSON, unless the text says the same."""
    parts = [block_text(one, name, kept) for one in tables(result.get("content"))]
    structured: Any = result.get("structuredContent")
    if structured is not None and not _says("\n".join(parts), structured):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return kept.cut("\n".join(part for part in parts if part) or "(no output)", name)


def block_text(block: Table, name: str, kept: KeptOutputs) -> str:
    """One block of a result or of a prompt."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return _kept_data(kind, block, name, kept)
        case "resource_link":
            told = " ".join(str(block.get(key, "")) for key in ("title", "description") if block.get(key))
            return f"[resource {block.get('uri', '')} {block.get('name', '')}] {told}".strip()
        case "resource":
            return resource_text(as_table(block.get("resource")), name, kept)
        case other:
            return f"[{other}]"


def resource_text(resource: Table, name: str, kept: KeptOutputs) -> str:
    """What a resource holds."""
    head = f"[resource {resource.get('uri', '')}]"
    if "blob" in resource:
        return f"{head} {_kept_data('data', {**resource, 'data': resource['blob']}, name, kept)}"
    return f"{head}\n{resource.get('text', '')}"


def _kept_data(kind: str, block: Table, name: str, kept: KeptOutputs) -> str:
    type_ = str(block.get("mimeType", "application/octet-stream"))
    try:
        data = base64.b64decode(str(block.get("data", "")), validate=False)
    except (binascii.Error, ValueError):
        return f"[{kind} {type_}: it could not be read]"
    path = kept.keep(data, name, mimetypes.guess_extension(type_.partition(";")[0]) or ".bin")
    return f"[{kind} {type_}, {shown_size(len(data))}, kept as {path}]"


def _says(text: str, structured: Any) -> bool:
    """Whether every value of it stands in the text already."""
    match structured:
        case dict():
            return bool(text) and all(_says(text, one) for one in cast("Table", structured).values())
        case list():
            return bool(text) and all(_says(text, one) for one in cast("list[Any]", structured))
        case str():
            return structured in text or json.dumps(structured)[1:-1] in text
        case _:
            return json.dumps(structured) in text
