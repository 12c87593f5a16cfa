"""A Postgres of its own in a temporary folder, on a port of its own; Postgres refuses to run as root."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import mkdtemp


def postgres_programs() -> Path | None:
    """Returns the folder of the Postgres programs, which Debian keeps off the path."""
    folders = [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))]
    on_path = shutil.which("pg_ctl")
    return folders[-1] if folders else Path(on_path).parent if on_path else None


class Postgres:
    """A cluster that can be stopped and started."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"postgresql://fleet@127.0.0.1:{port}/postgres"
        self._options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"

    def create(self) -> None:
        if os.getuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        self._run("initdb", "-D", str(self._folder / "data"), "-U", "fleet", "--auth=trust", "--no-sync")
        self.start()

    def start(self) -> None:
        self._control("start", "-l", str(self._folder / "log"), "-o", self._options)

    def stop(self) -> None:
        self._control("stop", "-m", "fast")

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        command = [*as_user, str(self._programs / program), *arguments]
        # The server keeps the handles it gets, so it gets none that somebody waits for.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)


@contextlib.contextmanager
def own_postgres(programs: Path) -> Generator[Postgres]:
    folder = Path(mkdtemp(prefix="fleet-postgres-"))
    postgres = Postgres(programs, folder)
    try:
        postgres.create()
        yield postgres
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)
