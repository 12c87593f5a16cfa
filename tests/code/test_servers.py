"""Language servers: a real one is asked; slow, dead and lying ones cost no more than their time limit."""

import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duckflow.code.lsp import CodePlace, LanguageServer
from duckflow.code.servers import LanguageServers
from duckflow.code.settings import LspServer
from duckflow.programs.launch import Launch

REAL = Path(sys.executable).with_name("basedpyright-langserver")
TILL = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"
USE = "from till import total\n\nprint(total([1, 2]))\n"
BROKEN = TILL.replace("prices: list[int]", "prices: list[int], tax: int")
ENDS = {
    "silent": "import time\ntime.sleep(60)\n",
    "dead": "raise SystemExit(3)\n",
    "babbling": "while True: print('no message at all')\n",
    "lying": "import sys\nwhile True: sys.stdout.write('Content-Length: 3\\r\\n\\r\\n{]x'); sys.stdout.flush()\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "till.py").write_text(TILL)
    (tmp_path / "use.py").write_text(USE)
    return tmp_path


def servers(folder: Path, command: str, *args: str, seconds: float = 60) -> LanguageServers:
    async def launch(argv: tuple[str, ...]) -> Launch:
        return Launch(argv, folder, os.environ)

    row = LspServer(command=command, args=args, suffixes=(".py",), language="python", seconds=seconds)
    return LanguageServers(folder, {"one": row}, launch)


@pytest.fixture
async def real(folder: Path) -> AsyncIterator[LanguageServers]:
    made = servers(folder, str(REAL), "--stdio")
    yield made
    await made.aclose()


async def test_a_real_server_tells_new_errors_and_only_those(real: LanguageServers) -> None:
    before, after = {"till.py": TILL, "use.py": USE}, {"till.py": BROKEN, "use.py": USE}
    found = await real.new_errors(before, after, 60)
    assert [(one.path, one.line) for one in found["one"]] == [("use.py", 3)]
    assert await real.new_errors(after, after, 60) == {"one": []}


async def test_a_real_server_tells_references(real: LanguageServers) -> None:
    found = await real.references("till.py", 1, 4, TILL, 60)
    assert found is not None and CodePlace("use.py", 3, 6) in found


async def test_a_real_server_tells_definitions_of_exactly_that_name(real: LanguageServers) -> None:
    assert await real.definitions("total", 60) == [CodePlace("till.py", 1, 4)]
    assert await real.definitions("nothing_of_this_name", 5) == []


@pytest.mark.parametrize("script", ENDS.values(), ids=ENDS.keys())
async def test_a_bad_server_is_given_up(folder: Path, script: str) -> None:
    bad = servers(folder, sys.executable, "-c", script, seconds=1)
    begun = time.monotonic()
    assert await bad.new_errors({"till.py": TILL}, {"till.py": BROKEN}, 1) == {}
    assert time.monotonic() - begun < 15 and not bad.knows("till.py")
    assert await bad.references("till.py", 1, 4, TILL, 1) is None
    assert await bad.definitions("total", 1) == []
    await bad.aclose()


async def test_a_missing_program_is_no_server(folder: Path) -> None:
    assert await servers(folder, "no-such-server").references("till.py", 1, 4, TILL, 1) is None


async def test_a_server_that_publishes_is_believed_for_this_very_text_only(folder: Path) -> None:
    """The server publishes the diagnostics of the first version late, and none of the second."""
    script = (
        "import json, re, sys\n"
        "def send(**m):\n"
        "    d = json.dumps(m); sys.stdout.write(f'Content-Length: {len(d)}\\r\\n\\r\\n{d}'); sys.stdout.flush()\n"
        "while line := sys.stdin.readline():\n"
        "    size = int(line.split(':')[1]); sys.stdin.readline(); m = json.loads(sys.stdin.read(size))\n"
        "    if m.get('method') == 'initialize': send(id=m['id'], result={'capabilities': {}})\n"
        "    if m.get('method') == 'textDocument/didOpen':\n"
        "        uri = m['params']['textDocument']['uri']\n"
        "        send(method='textDocument/publishDiagnostics', params={'uri': uri, 'version': 1, 'diagnostics': []})\n"
    )
    server = LanguageServer(folder, "python")
    await server.start(Launch((sys.executable, "-c", script), folder, os.environ), 10)
    server.show("till.py", TILL)
    assert await server.diagnostics("till.py", 10) == []
    server.show("till.py", BROKEN)
    with pytest.raises(TimeoutError):
        await server.diagnostics("till.py", 0.3)
    await server.aclose()
