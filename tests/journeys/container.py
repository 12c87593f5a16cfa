"""A root of its own, as a container has one: made with bubblewrap, without a sandbox program inside."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import duckflow

PYTHON = (Path(sys.base_prefix), Path(sys.prefix), Path(duckflow.__file__).parents[1])
LINKS = ("bin", "sbin", "lib", "lib64", "lib32")
SECRET = "sk-proj-0123456789abcdefghijABCDEFGHIJ"


class Container:
    """`/app` is the work folder, and everything else in it can be thrown away too."""

    def __init__(self, top: Path, marked: bool = True) -> None:
        self.app, self.home, self.etc, self.run_folder = (top / name for name in ("app", "home", "etc", "run"))
        for folder in (self.app, self.home, self.etc, self.run_folder):
            folder.mkdir()
        if marked:
            (self.run_folder / ".containerenv").touch()
        self.environment = {
            "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
            "HOME": "/home/duck",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(PYTHON[2]),
            "OPENAI_API_KEY": SECRET,
        }

    def script(self, *replies: Any) -> str:
        (self.home / "script.jsonl").write_text("\n".join(json.dumps({"json": reply}) for reply in replies))
        return "scripted:/home/duck/script.jsonl"

    def duckflow(self, *arguments: str, folder: str = "/app") -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "duckflow", *arguments, folder=folder)

    def run(self, *command: str, folder: str = "/app") -> subprocess.CompletedProcess[str]:
        places = {"/app": self.app, "/home/duck": self.home, "/etc": self.etc, "/run": self.run_folder}
        call = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--tmpfs", "/", "--tmpfs", "/tmp"]
        call += ["--ro-bind", "/usr", "/usr"]
        for name in LINKS:
            if (link := Path("/", name)).is_symlink():
                call += ["--symlink", str(link.readlink()), f"/{name}"]
        for path in PYTHON:
            call += ["--ro-bind", str(path), str(path)]
        for inside, outside in places.items():
            call += ["--bind", str(outside), inside]
        # Where the program that makes sandboxes would be there is nothing.
        call += ["--ro-bind", os.devnull, shutil.which("bwrap") or ""]
        call += ["--proc", "/proc", "--dev", "/dev", "--chdir", folder, "--", *command]
        nothing, piped = subprocess.DEVNULL, subprocess.PIPE
        process = subprocess.Popen(call, env=self.environment, stdin=nothing, stdout=piped, stderr=piped, text=True)
        out, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(call, process.returncode, out, errors)


@contextmanager
def package_index(top: Path, name: str, version: str, code: str) -> Generator[str]:
    """The address of an index on this machine with one package of one module."""
    folder = top / "index" / name
    folder.mkdir(parents=True)
    info, wheel = f"{name}-{version}.dist-info", f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(folder / wheel, "w") as file:
        file.writestr(f"{name}.py", code)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(top / "index")))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""
