"""The text of a PDF. Another process reads it, and is ended when it takes too much time or memory.

Started as `python -m duckflow.tools.web.pdf`, it reads the file from stdin and prints the title in a line, then the
text of each page."""

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.programs.find import own_module
from duckflow.programs.launch import Launch
from duckflow.programs.run import FloodError, collect

MOST_BYTES = 4_000_000
"""Longest text of a PDF, in bytes: a thousand pages and more."""
MEMORY = 2 * 1024**3


async def read_pdf(data: bytes, seconds: float) -> str:
    """Returns the PDF's title in the first line, then its text."""
    if find_spec("pypdf") is None:
        raise ToolError("It is a PDF, and nothing here can read one: pypdf is not installed.", "web.no_pdf")
    launch = Launch(own_module("duckflow.tools.web.pdf"), Path("/"), os.environ)
    try:
        printed_text = await collect(launch, data, seconds, MOST_BYTES)
    except TimeoutError:
        raise _unreadable(f"reading it took longer than {seconds:g} s") from None
    except FloodError:
        raise _unreadable("it has more text than anybody reads") from None
    if printed_text.code:
        lines = printed_text.err.decode("utf-8", "replace").strip().splitlines()
        raise _unreadable(lines[-1][:200] if lines else f"exit code {printed_text.code}")
    return printed_text.out.decode("utf-8", "replace")


def _unreadable(why: str) -> ToolError:
    return ToolError(f"The PDF cannot be read: {why}.", "web.bad_pdf", reason=why)


def main() -> None:
    import io
    import resource

    import pypdf

    # macOS does not have this limit, and a stricter one that the user has set stays.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    title = reader.metadata.title if reader.metadata else ""
    output_stream = io.TextIOWrapper(sys.stdout.buffer, "utf-8", "replace")
    output_stream.write(" ".join((title or "").split()) + "\n")
    for number, page in enumerate(reader.pages, 1):
        output_stream.write(f"[page {number} of {len(reader.pages)}]\n{page.extract_text().strip()}\n\n")
    output_stream.flush()


if __name__ == "__main__":
    main()
