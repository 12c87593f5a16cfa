"""Names that make code run later: what git, editors, shells, test runners and CI read and obey by themselves."""

import os
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path, PurePosixPath

FILES = (
    # git, its hooks, and folders that are entered
    (".gitattributes", ".gitmodules", ".gitconfig", ".pre-commit-config.y*ml", "lefthook.y*ml", ".lefthook.y*ml")
    + (".envrc", ".mise.toml", "mise.toml", ".rtx.toml")
    # shells and what they start
    + (".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv")
    + (".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc")
    + (".xinitrc", ".xprofile", ".xsession", ".vimrc", ".nvimrc", ".exrc", ".emacs", ".gdbinit", ".lldbinit", ".pdbrc")
    # instructions and tools of assistants
    + ("agents.md", "agents.override.md", "claude.md", "gemini.md", ".cursorrules", ".mcp.json")
    # CI
    + (".gitlab-ci.y*ml", "jenkinsfile*", ".travis.y*ml", ".drone.y*ml", "azure-pipelines*.y*ml", "appveyor.y*ml")
    + (".appveyor.y*ml", "bitbucket-pipelines.y*ml", ".woodpecker.y*ml", ".cirrus.y*ml", "cloudbuild.y*ml")
    # languages
    + ("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "package.json", ".npmrc", ".yarnrc*", ".pnp.*")
)
FOLDERS = frozenset(
    (".vscode", ".idea", ".husky", ".githooks", ".devcontainer", ".zed", ".fleet", ".duckflow", ".claude", ".cursor")
    + (".agents", ".codex", ".circleci", ".buildkite", ".woodpecker", ".gitea", ".forgejo", ".direnv")
)
PLACES = frozenset(
    ((".github", "workflows"), (".github", "actions"), (".config", "fish"), (".config", "autostart"))
    + ((".config", "systemd"), (".cargo", "config"), (".cargo", "config.toml"))
)
TOPS = frozenset(top for top, _ in PLACES)
WHEN_NEW = ("makefile", "gnumakefile", "*.mk", "justfile", ".justfile", "taskfile.y*ml")
"""A new one makes a habitual word run something else; one that is there is a file like others."""
GIT_FOLDER = frozenset(("objects", "refs", "config", "config.worktree", "hooks", "commondir", "packed-refs", "modules"))
"""What makes a folder with a `HEAD` a git folder, or says what git runs in it."""


def names_of_git(path: str) -> bool:
    """`.git` itself or something in it, in any spelling that some file system takes for it."""
    return any(name.rstrip(". ") == ".git" or name == "git~1" for name in _parts(path))


def runs_later(path: str, is_new: bool, folder: Path | None = None) -> bool:
    """Whether a change of this path, relative to the work folder, may make code run by itself later."""
    parts = _parts(path)
    if not parts:
        return False
    name = parts[-1]
    if any(fnmatchcase(name, pattern) for pattern in FILES) or FOLDERS & set(parts):
        return True
    # A folder put in place as a whole is named without what is in it.
    if name in TOPS or PLACES & set(pairwise(parts)):
        return True
    if is_new and any(fnmatchcase(name, pattern) for pattern in WHEN_NEW):
        return True
    return _makes_git_folder(path, folder)


def _makes_git_folder(path: str, folder: Path | None) -> bool:
    """There is no git folder without a `HEAD`, so that name always counts, and others where one lies beside."""
    parts = PurePosixPath(path).parts
    if parts[-1].lower() == "head":
        return True
    if folder is None:
        return False
    beside = [folder.joinpath(*parts[:at]) for at, name in enumerate(parts) if name.lower() in GIT_FOLDER]
    return any("head" in _names_in(place) for place in beside)


def _names_in(folder: Path) -> frozenset[str]:
    try:
        return frozenset(name.lower() for name in os.listdir(folder))
    except OSError:
        return frozenset()


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path.lower()).parts
