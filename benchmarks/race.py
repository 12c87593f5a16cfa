"""A link swapped in and out under every file tool: how often does one reach outside the work folder?

usage: python -m benchmarks.race [SECONDS]      (default 5 for each tool; must print 0 escapes)
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from duckflow.cli.toolset import file_tools
from duckflow.errors import ToolError
from duckflow.safety.workspace import Workspace
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import AnyTool

CALLS: dict[str, dict[str, Any]] = {
    "file_ops.list_files": {"path": "door"},
    "file_ops.find_files": {"pattern": "*", "path": "door"},
    "file_ops.grep": {"pattern": "outside", "path": "door"},
    "file_ops.read_file": {"path": "door/file.txt"},
    "file_ops.write_file": {"path": "door/new.txt", "content": "written\n"},
    "file_ops.edit_file": {"path": "door/file.txt", "old": "inside", "new": "changed"},
    "file_ops.move_file": {"source": "door/file.txt", "target": "door/moved.txt"},
    "file_ops.delete_file": {"path": "door/file.txt"},
    "file_ops.make_folder": {"path": "door/folder"},
}


def swap(work: Path, outside: Path, stop: threading.Event) -> None:
    """The door is now a folder inside, now a link to the outside."""
    real, link = work / "real", work / "link"
    link.symlink_to(outside)
    while not stop.is_set():
        with suppress(OSError):
            (work / "door").rename(real)
            link.rename(work / "door")
        with suppress(OSError):
            (work / "door").rename(link)
            real.rename(work / "door")


async def attack(tool: AnyTool, args: dict[str, Any], inside: int, outside: Path, seconds: float) -> dict[str, Any]:
    """`inside` is a handle of the real folder, so that furnishing it cannot be led astray."""
    calls = done = escapes = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        handle = os.open("file.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=inside)
        os.write(handle, b"inside\n")
        os.close(handle)
        calls += 1
        with suppress(ToolError, OSError):
            checked = tool.args.model_validate(args)
            if tool.changes:
                tool.preview(checked)
            told = (await tool.run(checked)).for_model
            done += 1
            escapes += "outside secret" in told
        escapes += [path.name for path in outside.iterdir()] != ["file.txt"]
        escapes += (outside / "file.txt").read_text() != "outside secret\n"
    return {"tool": tool.operation, "calls": calls, "done": done, "escapes": escapes}


def main(seconds: float) -> int:
    total = 0
    for operation, args in CALLS.items():
        with tempfile.TemporaryDirectory() as top:
            work, outside = Path(top) / "work", Path(top) / "outside"
            (work / "door").mkdir(parents=True)
            outside.mkdir()
            (outside / "file.txt").write_text("outside secret\n")
            tool = next(one for one in file_tools(Workspace(work), FileSettings()) if one.operation == operation)
            stop = threading.Event()
            inside = os.open(work / "door", os.O_RDONLY | os.O_DIRECTORY)
            swapper = threading.Thread(target=swap, args=(work, outside, stop))
            swapper.start()
            found = asyncio.run(attack(tool, args, inside, outside, seconds))
            stop.set()
            swapper.join()
            os.close(inside)
        total += found["escapes"]
        print(json.dumps(found), flush=True)
    print(f"{total} escapes")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0))
