"""The mode `contained`: checks whether this machine is itself a sandbox, and which of the user's logins a command in it
could still use."""

import ctypes
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from duckflow.errors import UsageError
from duckflow.safety.path_names import shown

MARKS = (".dockerenv", "run/.containerenv", "run/systemd/container")
"""Files that Docker, Podman and systemd put into a container."""
GROUPS = re.compile(r"docker|kubepods|containerd|libpod|/lxc|garden|buildkit")
LAYERED = re.compile(r"(?m)^\S+ \S+ \S+ \S+ / .* - (?:overlay|aufs|fuse-overlayfs) ")
"""Matches a root file system that is put together from layers, as container images are."""
THROWN_AWAY = (
    {"GITHUB_ACTIONS": "true", "RUNNER_ENVIRONMENT": "github-hosted"},
    {"GITLAB_CI": "true", "CI_DISPOSABLE_ENVIRONMENT": "true"},
)
"""Variables by which CI runners say that their machine is used only once."""
SOCKETS = (
    ("var/run/docker.sock", "run/docker.sock", "run/podman/podman.sock", "run/containerd/containerd.sock")
    + ("run/crio/crio.sock", "run/buildkit/buildkitd.sock")
)  # fmt: skip
LOGINS = (
    (".aws", ".azure", ".config/gcloud", ".kube", ".oci", ".fly", ".config/doctl", ".config/hcloud", ".terraform.d")
    + (".docker/config.json", ".config/containers/auth.json", ".netrc", ".git-credentials", ".config/git/credentials")
    + (".config/gh", ".config/glab-cli", ".pypirc", ".cargo/credentials.toml", ".vault-token")
    + (".gnupg/private-keys-v1.d",)
)  # fmt: skip
TOKENS = ("run/secrets/kubernetes.io/serviceaccount/token", "var/run/secrets/kubernetes.io/serviceaccount/token")
AGENTS = ("DOCKER_HOST", "SSH_AUTH_SOCK", "KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE")
PRIVATE_KEY = b"PRIVATE KEY-----"
MOST_LOOKED_AT = 200
PR_SET_DUMPABLE = 4
ENVIRONMENT_FROM, ENVIRONMENT_TO = 47, 48
"""Positions of the environment's first and last address in /proc/self/stat, counted after the program's name."""


def require_contained(environ: Mapping[str, str], home: Path, really: bool, root: Path = Path("/")) -> None:
    """Refuses the mode `contained` where the machine does not look disposable, or where logins are in reach, unless the
    user says that they really want it."""
    if really:
        return
    names_in_reach = ", ".join(shown(name) for name in in_reach(environ, home, root))
    if not looks_contained(environ, root):
        raise UsageError("contained.no_container", reach=names_in_reach or "–")
    if names_in_reach:
        raise UsageError("contained.in_reach", reach=names_in_reach)


def looks_contained(environ: Mapping[str, str], root: Path) -> bool:
    if environ.get("container") or any((root / marker_file).exists() for marker_file in MARKS):
        return True
    if any(variables.items() <= environ.items() for variables in THROWN_AWAY):
        return True
    return bool(GROUPS.search(_text(root / "proc/1/cgroup")) or LAYERED.search(_text(root / "proc/self/mountinfo")))


def in_reach(environ: Mapping[str, str], home: Path, root: Path) -> list[str]:
    """Returns everything by which a command could act in the user's name elsewhere: sockets of container engines,
    logins, keys."""
    names = [str(root / name) for name in SOCKETS if _is_socket(root / name)]
    names += [str(root / name) for name in TOKENS if _text(root / name)]
    names += [f"~/{name}" for name in LOGINS if any(_texts(home / name))]
    names += ["~/.ssh"] if any(PRIVATE_KEY in text for text in _texts(home / ".ssh")) else []
    return names + [f"${name}" for name in AGENTS if _leads_somewhere(environ.get(name, ""))]


def keep_environment_to_itself() -> None:
    """Removes the environment's variables from /proc/PID/environ, where every command of the same user could read the
    keys in them, and keeps other processes from looking into this one. The program's own `os.environ` stays as it
    is."""
    if sys.platform != "linux":
        return
    for name, value in os.environ.items():
        os.putenv(name, value)
    process = ctypes.CDLL(None, use_errno=True)
    stat_fields = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    start_address, end_address = int(stat_fields[ENVIRONMENT_FROM]), int(stat_fields[ENVIRONMENT_TO])
    if 0 < start_address < end_address:
        ctypes.memset(start_address, 0, end_address - start_address)
    process.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _leads_somewhere(value: str) -> bool:
    return bool(value) and ("://" in value or Path(value).exists())


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _texts(place: Path) -> Iterator[bytes]:
    """Yields the beginning of the file, or of every file in the folder. Files that are empty or cannot be read are left
    out."""
    names = [Path(folder, name) for folder, _, files in os.walk(place) for name in files] if place.is_dir() else [place]
    for path in names[:MOST_LOOKED_AT]:
        try:
            text = path.read_bytes()[:4096] if path.is_file() else b""
        except OSError:
            continue
        if text.strip():
            yield text


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
