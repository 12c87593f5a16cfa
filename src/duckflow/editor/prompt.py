"""What a user sends from an editor: words, and material beside them."""

from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from duckflow.events.views import Attachment
from duckflow.rpc import BAD_PARAMS, RpcError


class Prompt(NamedTuple):
    """The user's words; the texts and pictures that came with them; what could not be taken, by its kind."""

    text: str
    attachments: tuple[Attachment, ...]
    refused: tuple[str, ...]


def read_prompt(blocks: Any, root: Path) -> Prompt:
    """A link to a file of the work folder becomes a mention of it, so that it is read as every file is."""
    if not isinstance(blocks, list):
        raise RpcError(BAD_PARAMS, "prompt must be a list of content blocks")
    words, attachments, refused = list[str](), list[Attachment](), list[str]()
    for block in cast("list[Any]", blocks):
        if not isinstance(block, dict):
            raise RpcError(BAD_PARAMS, "a content block is an object")
        given = cast("dict[str, Any]", block)
        kind = str(given.get("type", ""))
        if kind == "text":
            words.append(str(given.get("text", "")))
        elif kind == "resource_link":
            words.append(f" {_mention(str(given.get('uri', '')), root)} ")
        elif kind == "resource" and isinstance(resource := given.get("resource"), dict):
            held = cast("dict[str, Any]", resource)
            name = _name(str(held.get("uri", "")), root)
            if isinstance(text := held.get("text"), str):
                words.append(f" {name} ")
                attachments.append(Attachment(name, text))
            else:
                refused.append(name)
        elif kind == "image" and isinstance(data := given.get("data"), str) and data:
            name = _name(str(given.get("uri") or ""), root) or f"picture-{len(attachments) + 1}"
            attachments.append(Attachment(name, data=data))
        else:
            refused.append(kind or "?")
    return Prompt("".join(words).strip(), tuple(attachments), tuple(refused))


def _mention(uri: str, root: Path) -> str:
    name = _name(uri, root)
    if "://" in name:
        return name
    return f'@"{name}"' if " " in name else f"@{name}"


def _name(uri: str, root: Path) -> str:
    """A file of the work folder by its path in it; everything else by its address."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    for top in (root, root.resolve()):
        if path.is_relative_to(top):
            return str(path.relative_to(top))
    return str(path)
