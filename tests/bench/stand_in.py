"""A stand-in for Harbor's environments: commands run in a root of their own on this machine, made with bubblewrap. Of
the Dockerfile it carries out what copies files, makes folders, sets variables and names the work folder; nothing is
built."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

SCRIPT = "/installed-agent/script.jsonl"
FOLDERS = ("app", "logs", "tests", "installed-agent", "home", "tmp", "run", "workspace", "var/log", "solution")


class FreshRoot(BaseEnvironment):
    """A root in which a task may write only into folders of the trial; the rest of the machine can only be read."""

    def __init__(self, *args: Any, script: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._root = self.trial_paths.trial_dir / "root"
        self._script, self._folder = script, "/app"
        self._variables: dict[str, str] = {}

    @staticmethod
    @override
    def type() -> str:
        return "fresh-root"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    @override
    def _validate_definition(self) -> None:
        if not shutil.which("bwrap"):
            raise FileNotFoundError("bwrap")

    @override
    async def start(self, force_build: bool) -> None:
        for name in FOLDERS:
            (self._root / name).mkdir(parents=True, exist_ok=True)
        (self._root / "run/.containerenv").touch()
        for path in ("agent", "verifier", "artifacts"):
            (self._root / "logs" / path).mkdir(exist_ok=True)
        dockerfile = self.environment_dir / "Dockerfile"
        for line in dockerfile.read_text().splitlines() if dockerfile.exists() else ():
            await self._follow(line.strip())
        if self._script:
            await self.upload_file(self._script, SCRIPT)
        # Tasks fetch uv for their tests by curl. Here it comes from the package index, with Harbor.
        await self.upload_file(Path(sys.executable).with_name("uv"), "/home/.local/bin/uv")
        (self._root / "home/.local/bin/env").write_text('PATH="$HOME/.local/bin:$PATH"\n')

    async def _follow(self, line: str) -> None:
        if copies := re.fullmatch(r"COPY (\S+) (\S+)", line):
            source, target = self.environment_dir / copies[1], copies[2]
            await (self.upload_dir if source.is_dir() else self.upload_file)(source, target)
        elif makes := re.fullmatch(r"RUN mkdir -p (.+)", line):
            for path in makes[1].split():
                self._inside(path).mkdir(parents=True, exist_ok=True)
        elif sets := re.fullmatch(r"ENV (\w+)=(\S+)", line):
            self._variables[sets[1]] = sets[2]
        elif works := re.fullmatch(r"WORKDIR (\S+)", line):
            self._folder = works[1]
            self._inside(self._folder).mkdir(parents=True, exist_ok=True)

    @override
    async def stop(self, delete: bool) -> None:
        """Does nothing: no process outlives its command."""

    def _inside(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._inside(target_path)
        target = target / Path(source_path).name if target.is_dir() or target_path.endswith("/") else target
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._inside(target_dir), dirs_exist_ok=True)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy2(self._inside(source_path), target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._inside(source_dir), target_dir, dirs_exist_ok=True)

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        call = ["bwrap", "--die-with-parent", "--unshare-pid", "--tmpfs", "/", "--proc", "/proc", "--dev", "/dev"]
        for place in sorted(Path("/").iterdir()):
            if place.is_symlink():
                call += ["--symlink", str(place.readlink()), str(place)]
            elif place.is_dir() and place.name not in (*FOLDERS, "proc", "dev"):
                call += ["--ro-bind", str(place), str(place)]
        for name in FOLDERS:
            call += ["--bind", str(self._root / name), f"/{name}"]
        call += ["--chdir", cwd or self._folder, "--", "bash", "-c", command]
        variables = {name: value for name, value in os.environ.items() if "KEY" not in name and "TOKEN" not in name}
        path = f"/home/.local/bin:{os.environ['PATH']}"
        variables |= {"HOME": "/home", "PATH": path, **self._variables, **(env or {})}
        nothing, piped = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*call, env=variables, stdin=nothing, stdout=piped, stderr=piped)
        try:
            out, errors = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        said, complained = out.decode(errors="replace"), errors.decode(errors="replace")
        return ExecResult(stdout=said, stderr=complained, return_code=process.returncode or 0)
