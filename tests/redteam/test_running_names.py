"""A model that writes what somebody else's program starts later, under a name that no list has: a hidden name, a place
to which a link or a hook leads, or a folder on PATH."""

import os
import shutil
from pathlib import Path

import pytest

from duckflow.events.types import Noticed
from duckflow.safety.risk import runs_later
from tests.journeys.story import Story, act, decide, respond

HIDDEN = [
    ".hg/hgrc", ".jj/repo/config.toml", ".bzr/branch/branch.conf", ".lefthook/pre-commit/x", ".lintstagedrc.json",
    ".envrc", ".commitlintrc.js", ".huskyrc", ".overcommit.yml", ".git-hooks/pre_commit/x.rb", ".helix/languages.toml",
    ".vim/coc-settings.json", ".lazy.lua", ".settings/x.prefs", ".pylintrc", ".flake8", ".rspec", ".mocharc.js",
    ".eslintrc.json", ".prettierrc", ".babelrc", ".php-cs-fixer.php", ".formatter.exs", ".ocamlinit", ".Renviron",
    ".gemini/settings.json", ".opencode/plugin/x.js", ".roo/mcp.json", ".kiro/hooks/x", ".windsurfrules", ".clinerules",
    ".aider.conf.yml", ".openhands/setup.sh", ".semaphore/x.yml", ".teamcity/settings.kts", ".builds/x.yml",
    ".devcontainer.json", ".gitpod.yml", ".idx/dev.nix", ".mise.local.toml", ".mise/config.toml", ".tool-versions",
    ".autoenv.zsh", ".shadowenv.d/x.lisp", ".tmuxinator.yml", ".xsessionrc", ".config/mise/config.toml",
    ".github/copilot-instructions.md", "deep/.Quack/settings", "deep/.quackrc", ".local/bin/git", ".bashrc.d/x",
]  # fmt: skip
NAMED = [
    "lefthook-local.yml", "lint-staged.config.mjs", "commitlint.config.ts", "flake.nix", "mise.local.toml",
    "devenv.nix", "opencode.json", "pnpm-workspace.yaml", "bunfig.toml", "compose.override.yaml", "dot_zshrc",
    "rust-toolchain.toml",
]  # fmt: skip
PLAIN = [
    ".gitignore", "web/.dockerignore", ".gitkeep", ".editorconfig", ".pytest_cache/v/x", ".venv/lib/a.py", ".next/x.js",
    ".python-version", ".coverage", ".DS_Store", "src/a.b.py", "../.gitignore", "a/./b.txt", "...", "docs/misery.md",
]  # fmt: skip
LINKS = [
    (".bashrc", "bashrc", "bashrc"),
    (".zshrc", "zsh/rc", "zsh/rc"),
    (".config/fish", "fish", "fish/conf.d/x.fish"),
    (".config/nvim/init.lua", "nvim.lua", "nvim.lua"),
    (".local/bin/quack", "scripts/quack", "scripts/quack"),
    ("bin/quack", "scripts/quack", "scripts/quack"),
    (".config/systemd/user/quack.service", "unit", "unit"),
    (".vim", "vim", "vim/plugin/x.vim"),
]
HOOKS = ["#!/bin/sh\nexec ./tools/check\n", "#!/bin/sh\nsh tools/check || exit 1\n", "-> ../../tools/check"]


@pytest.mark.parametrize("name", [*HIDDEN, *NAMED])
def test_a_name_by_which_a_program_may_start_counts(name: str) -> None:
    assert runs_later(name, is_new=False)


@pytest.mark.parametrize("name", PLAIN)
def test_an_ordinary_name_does_not(name: str) -> None:
    assert not runs_later(name, is_new=True)


async def tried(top: Path, mode: str, path: str) -> tuple[int, list[str]]:
    """Returns the number of questions that writing this file brought, and the paths that the user was told of."""
    write = act("file_ops.write_file", path=path, content="x\n")
    command = act("shell.run", command=f"mkdir -p $(dirname {path}) && echo x > {path}")
    replies = [decide(write if mode == "auto-edit" else command, next_step="continue"), decide(respond("done"))]
    story = Story(top, [*replies, decide(respond("done"))], mode=mode)
    await story.tell("go")
    told = [str(one.what.values["path"]) for one in story.all(Noticed) if one.what.key == "risk.runs_later"]
    await story.close()
    shutil.rmtree(top / "home")
    return len(story.questions), told


@pytest.mark.parametrize(("link", "target", "path"), LINKS)
async def test_what_a_link_in_the_home_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, target: str, path: str
) -> None:
    home, work = tmp_path / "me", tmp_path / "work"
    monkeypatch.setenv("HOME", str(home))
    (home / link).parent.mkdir(parents=True)
    work.mkdir()
    (home / link).symlink_to(work / target)
    assert (await tried(tmp_path, "auto-edit", path))[0] == 1
    assert await tried(tmp_path, "full-auto", path) == (0, [path])


@pytest.mark.parametrize("hook", HOOKS)
async def test_what_a_hook_of_git_starts(tmp_path: Path, hook: str) -> None:
    hooks, tools = tmp_path / "work/.git/hooks", tmp_path / "work/tools"
    for folder in (hooks, tools, tmp_path / "work/.git/objects", tmp_path / "work/.git/refs"):
        folder.mkdir(parents=True)
    (hooks.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (tools / "check").touch()
    if hook.startswith("->"):
        (hooks / "pre-commit").symlink_to(hook.removeprefix("-> "))
    else:
        (hooks / "pre-commit").write_text(hook)
    assert runs_later("tools/check", False, tmp_path / "work")
    assert not runs_later("tools/other", True, tmp_path / "work")


@pytest.mark.parametrize("place", ["bin", "scripts/deep", ".", "tools", "link/bin"])
async def test_a_program_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    work = tmp_path / "work"
    (work / "real/bin").mkdir(parents=True)
    (work / "link").symlink_to("real")
    monkeypatch.setenv("PATH", f"{work / place}{os.pathsep}{os.environ['PATH']}")
    place = place.replace("link", "real")
    path = os.path.normpath(f"{place}/ls")
    assert (await tried(tmp_path, "auto-edit", path))[0] == 1
    assert (await tried(tmp_path, "auto-edit", os.path.normpath(f"{place}/quack")))[0] == 1
    assert await tried(tmp_path, "full-auto", path) == (0, [path])
    assert await tried(tmp_path, "full-auto", os.path.normpath(f"{place}/quack2")) == (0, [])


@pytest.mark.parametrize(
    "path",
    ["env/bin/activate", ".venv312/bin/activate.fish", ".tox/py/bin/python3", "my env/Scripts/pip.exe", "venv/bin/x"],
)
async def test_a_program_of_an_environment_with_any_name(tmp_path: Path, path: str) -> None:
    (tmp_path / "work").mkdir()
    write = act("file_ops.write_file", path=path, content="x\n")
    story = Story(tmp_path, [decide(write, respond("ok"))], mode="auto-edit")
    await story.tell("go on")
    assert len(story.questions) == 1


@pytest.mark.parametrize("target", [".venv", "venv", "inner/.venv", "node_modules", "inner/vendor"])
async def test_a_folder_that_becomes_an_environment(tmp_path: Path, target: str) -> None:
    (tmp_path / "work/stuff/bin").mkdir(parents=True)
    (tmp_path / "work/inner").mkdir()
    (tmp_path / "work/stuff/bin/python").write_text("x\n")
    move = act("file_ops.move_file", source="stuff", target=target)
    story = Story(tmp_path, [decide(move, respond("ok"))], mode="auto-edit")
    await story.tell("go on")
    assert len(story.questions) == 1
