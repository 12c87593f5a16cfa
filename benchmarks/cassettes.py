"""Reads streams that other projects have recorded from the vendors: does every one come to its end?

usage: python -m benchmarks.cassettes GIT_DIRECTORY [FOLDER …]        (a clone of pydantic-ai; default all of it)

Nothing of the recordings is kept here. A stream is read as one of a model would be; told are those that did not come to
an end, and how the others ended. Recordings of errors, and of replies that did not stream, are passed over.
"""

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import yaml

from duckflow.llm.stream import EventReader, StreamedReply
from duckflow.llm.wires.wire import wire_named
from duckflow.state.data import as_table, tables

WIRES = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/v1/messages": "anthropic",
    ":streamGenerateContent": "google",
}


def read(wire: str, body: bytes) -> str:
    """Returns how the stream ended, or in brackets why it did not."""
    reader, told, reply = EventReader(), wire_named(wire).reading(), StreamedReply()
    for event in (*reader.feed(body), *reader.finish()):
        chunk = told(event)
        if chunk.get("error"):
            return "(error)"
        reply.take(chunk)
    if not reply.ended and not reader.done:
        return "(no end)"
    said = bool(reply.text.strip() or reply.calls)
    return f"{reply.reason}: {reply.raw}" if said or reply.reason != "stop" else "(nothing said)"


def streams(text: str) -> list[tuple[str, bytes]]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[tuple[str, bytes]] = []
    for exchange in tables(as_table(yaml.load(text, loader)).get("interactions")):
        uri = str(as_table(exchange.get("request")).get("uri", "")).partition("?")[0]
        response = as_table(exchange.get("response"))
        body = as_table(response.get("body")).get("string") or ""
        data = body if isinstance(body, bytes) else str(body).encode()
        wire = next((wire for path, wire in WIRES.items() if uri.endswith(path)), "")
        if wire and as_table(response.get("status")).get("code") == 200 and b"data:" in data[:4000]:
            found.append((wire, data))
    return found


def main() -> None:
    git, *folders = sys.argv[1:]
    listed = subprocess.run(
        ["git", "-C", git, "ls-tree", "-r", "--name-only", "HEAD", "--", *folders], capture_output=True, check=True
    )
    ends: dict[str, Counter[str]] = {wire: Counter() for wire in WIRES.values()}
    for path in listed.stdout.decode().splitlines():
        if "cassettes/" not in path or not path.endswith((".yaml", ".yml")):
            continue
        shown = subprocess.run(["git", "-C", git, "show", f"HEAD:{path}"], capture_output=True, check=False).stdout
        if b"text/event-stream" not in shown:
            continue
        for wire, data in streams(shown.decode("utf-8", "replace")):
            end = read(wire, data)
            ends[wire][end] += 1
            if end.startswith("("):
                print(f"{end} {wire} {path}")
    for wire, counted in ends.items():
        whole = sum(count for end, count in counted.items() if not end.startswith("("))
        print(f"{wire:10} {whole} of {counted.total()} read to their end  {json.dumps(counted)}")


if __name__ == "__main__":
    main()
