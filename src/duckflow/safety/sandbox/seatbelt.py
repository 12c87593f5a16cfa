"""Confines commands by macOS's own sandbox, with a profile in its language. If two rules match, the later one
counts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from duckflow.programs.launch import Launch
from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.safety.sandbox.repositories import repositories
from duckflow.safety.sandbox.sandbox import Sandbox, SecretAccess
from duckflow.state.data import say

PROGRAM = "/usr/bin/sandbox-exec"
DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
GIT_RUNS = r"/\.git/(.+/)?(hooks(/.*)?|config|config\.worktree|commondir)$"
# Programs that these services start for a command would not be in the sandbox.
STARTERS = ("coreservices.launchservicesd", "coreservices.appleevents", "SecurityServer", "pasteboard.1")


class Seatbelt(Sandbox):
    """The sandbox for commands on macOS."""

    kind = "seatbelt"

    def __init__(self, paths: SandboxPaths) -> None:
        super().__init__(paths, say("sandbox.seatbelt"))

    def confine(
        self, launch: Launch, network: bool = False, writes: bool = True, secrets: SecretAccess = "none"
    ) -> Launch:
        git_places = repositories(self.paths.folder)
        traces_before = git_places.traces()
        text = profile(self.paths, network or self.paths.settings.network, writes)
        return replace(
            launch,
            argv=(PROGRAM, "-p", text, *launch.argv),
            temporary=self.paths.scratch.folder,
            environment=self.environment(launch, str(self.paths.scratch.folder)),
            meddled=lambda: git_places.meddled(traces_before, self.paths.folder),
        )


def profile(paths: SandboxPaths, network: bool, writes: bool) -> str:
    """Returns the profile. It allows everything, then denies some places and abilities, and then allows parts of these
    again."""
    folders = [paths.scratch.folder, *(paths.writable() if writes else ())]
    hidden_paths = [path for path in paths.hidden() if not paths.folder.is_relative_to(path)]
    opened_paths = [path for path in folders if any(path.is_relative_to(hidden_path) for hidden_path in hidden_paths)]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(allow file-write* {_each('subpath', folders)} {_each('literal', DEVICES)})",
        f'(deny file-write* (regex #"{GIT_RUNS}"))',
        f"(deny file-write* {_each('literal', [paths.folder / '.git'])})",
        f"(deny file-read* file-write* {_each('subpath', hidden_paths)})" if hidden_paths else "",
        f"(allow file-read* {_each('subpath', paths.readable)})" if paths.readable else "",
        f"(allow file-read* file-write* {_each('subpath', opened_paths)})" if opened_paths else "",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny process-info* (target others))",
        "(deny appleevent-send)",
        f"(deny mach-lookup {_each('global-name', [f'com.apple.{name}' for name in STARTERS])})",
        "(deny system-socket)",
    ]
    if not network:
        lines.append("(deny network*)")
    elif not paths.settings.unix_sockets:
        lines.append('(deny network-outbound (remote unix-socket (subpath "/")))')
        lines.append('(allow network-outbound (literal "/private/var/run/mDNSResponder"))')
    return "\n".join(line for line in lines if line) + "\n"


def _each(filter: str, names: Sequence[Path | str]) -> str:
    return " ".join(f"({filter} {_quoted(str(name))})" for name in names)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
