"""Asking a program everybody knows for its version.

Left out are those that run something of the work folder even then: yarn, cargo, mvn, pytest, composer and their kin."""

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.reading.places import is_trusted_place

LONG = frozenset(("--version",))
SMALL = frozenset(("--version", "-v"))
CAPITAL = frozenset(("--version", "-V"))
WORD = frozenset(("--version", "version"))

TELLS_VERSION: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("npx", "gem", "javac", "gcc", "g++", "clang", "cmake", "make", "ninja", "podman", "aws", "gcloud")
        + ("bash", "zsh")
        + ("poetry", "tsc", "eslint", "prettier", "swift", "julia", "sqlite3", "psql", "mysql", "rsync", "tar", "sed")
        + ("awk", "gawk", "find", "vim", "nvim", "emacs", "brew", "tree", "perl"),
        LONG,
    ),
    **dict.fromkeys(("node", "npm", "ruby", "php", "bun", "lua"), SMALL),
    **dict.fromkeys(("python", "pip", "curl", "wget", "ssh", "uv", "ruff", "mypy", "tmux"), CAPITAL),
    **dict.fromkeys(("docker", "kubectl", "helm", "deno", "gh"), WORD),
    "java": frozenset(("--version", "-version")),
}


def tells_version(call: Invocation) -> bool:
    """`python --version` and nothing else."""
    if len(call.words) != 2 or call.texts[0] not in TELLS_VERSION.get(call.program, ()):
        return False
    program = call.words[0]
    return program.plain and program.text.islower() and is_trusted_place(program.text)
