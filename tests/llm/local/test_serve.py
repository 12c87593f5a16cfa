"""The child process on its own: it reads one order, writes one line, and ends when its input does."""

import json
import os
import subprocess
import sys
from pathlib import Path

from duckflow.llm.settings import LocalSettings


def child(weights: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "duckflow.llm.local.serve", str(weights)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def order() -> bytes:
    settings = LocalSettings(model="smollm2", context=512, threads=1, batch=64, prompt_cache_mib=0)
    wish = settings.model_dump() | {"parent": os.getpid(), "key": "k", "prefixes": ""}
    return json.dumps(wish).encode() + b"\n"


def test_it_ends_when_its_input_does(smollm2: Path) -> None:
    with child(smollm2) as process:
        assert process.stdin and process.stdout
        process.stdin.write(order())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
        assert process.poll() is None
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(10) == 0


def test_it_reports_why_it_cannot_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF, or is it?")
    with child(broken) as process:
        assert process.stdin and process.stdout
        process.stdin.write(order())
        process.stdin.flush()
        assert "failed" in json.loads(process.stdout.readline())
        assert process.wait(10) == 1
