"""Hooks of the user's own that run something of the work folder: the model may have written it, so it gets no more
rights than the model's commands have."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed
from duckflow.i18n.words import Words
from duckflow.safety.brought.own_programs import runs_of_folder
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
SHELL = "#!/bin/sh\ntouch {home}/owned; touch ran\n"
PYTHON = "open('{home}/owned', 'w') if __import__('os').path.isdir('{home}') else 0\nopen('ran', 'w')\n"
MAKE = "fmt:\n\t-@touch {home}/owned\n\t@touch ran\n"
OF_FOLDER = [
    ("python3 tools/fmt.py", "tools/fmt.py", PYTHON),
    ("cd tools && python3 fmt.py; mv ran ..", "tools/fmt.py", PYTHON),
    ("make fmt", "Makefile", MAKE),
    ("cd . && make -s fmt", "Makefile", MAKE),
    ("timeout 20 make fmt", "Makefile", MAKE),
    ("bash -c 'make fmt'", "Makefile", MAKE),
    ("echo fmt | xargs make", "Makefile", MAKE),
    ("./lint", "lint", SHELL),
    ("sh tools/*.txt", "tools/lint.txt", SHELL),
    ("[ -f tools/lint ] && sh tools/lint", "tools/lint", SHELL),
    ('sh "$CLAUDE_PROJECT_DIR"/lint', "lint", SHELL),
    ("sh ${CLAUDE_PROJECT_DIR}/tools/../lint", "lint", SHELL),
    (". ./lint", "lint", SHELL),
    ("sh < tools/lint", "tools/lint", SHELL),
    ("sh WORK/lint", "lint", SHELL),
]
BY_A_PROGRAM = [
    "builder run",
    "PLACE/builder run",
    "/usr/bin/env builder",
    "bash -ec 'builder run'",
    "sh -ec \"sh -c 'builder run'\"",
    "if builder run; then echo ok; fi",
    "echo $(builder run) >> log",
    "build() { builder run; }; build",
    "timeout 20 nice builder run",
    "true && ! builder run",
    "echo lint | xargs builder",
    "X=builder; $X run",
    "eval 'builder run'",
    "echo builder run | sh",
    "cat <(builder run)",
    "git -c alias.run='!builder' run",
]
"""Hooks that name nothing of the folder. The program `builder` on PATH runs what it finds in its folder."""
ORDERS = [
    "cargo run", "go generate ./...", "poetry run fmt", "uv run fmt", "pre-commit run -a", "nix develop -c fmt",
    "docker compose up -d", "sbt test", "bazel test //...", "ninja", "cmake --build build", "mix run", "deno task fmt",
    "bun run fmt", "php artisan test", "terraform plan", "ansible-playbook site", "hg status", "jj log",
    "git commit -qam wip", "git add -A && git stash", "git push", "lint-staged", "direnv exec . env", "mise run fmt",
    "python3 -m mod", "node -e 'require(\"mod\")'", "ruby -e 1", "node .", "R -e 1", "vim -es", "gdb -batch",
]  # fmt: skip
USERS_OWN = [
    "notify-send 'task done'",
    "python3 {home}/hooks/log.py",
    "jq -r .tool_input.file_path >> {home}/log",
    "git diff --stat",
    "cat > {home}/last.json",
    "echo 'make it so'",
    "bash -e {home}/hooks/log.sh && $HOME/.claude/hooks/log.sh",
    "/usr/bin/env python3 {home}/hooks/log.py",
    "python3 -c 'import json, sys; print(json.load(sys.stdin))' | tee -a {home}/log",
    'f=$(jq -r .x); case "$f" in *.env) echo no >&2; exit 2;; esac',
    'if [[ "$(git branch --show-current)" == main ]]; then exit 2; fi',
    "nohup paplay done.ogg > /dev/null 2>&1 &",
    "timeout 5 curl -s -d done https://ntfy.sh/x; osascript -e 'beep'",
]


def story_with(top: Path, command: str, path: str, text: str, **more: Any) -> Story:
    (top / "user/.claude").mkdir(parents=True)
    (top / "work/tools").mkdir(parents=True)
    target = top / "work" / path
    target.write_text("fmt:\n" if path == "Makefile" else "")
    target.chmod(0o755)
    hook = {"type": "command", "command": command.replace("WORK", str(top / "work"))}
    groups = {"PostToolUse": [{"matcher": "Write", "hooks": [hook]}]}
    (top / "user/.claude/settings.json").write_text(json.dumps({"hooks": groups}))
    writes = [
        act("file_ops.write_file", path=path, content=text.format(home=top / "user")),
        act("file_ops.write_file", path="plain.txt", content="x\n"),
    ]
    reads = [decide(act("file_ops.read_file", path=path), next_step="continue"), END]
    replies = [*reads, *(reply for write in writes for reply in (decide(write, next_step="continue"), END))]
    return Story(top, replies, home=top / "user", **more)


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize(("command", "path", "text"), OF_FOLDER)
async def test_what_the_model_wrote_gets_no_more_rights_by_a_hook_of_the_users(
    tmp_path: Path, command: str, path: str, text: str
) -> None:
    story = story_with(tmp_path, command, path, text)
    story.answers = [Answer(choice="trust")]
    for _ in range(3):
        await story.tell("go")
    assert not (tmp_path / "user/owned").exists()
    assert (tmp_path / "work/ran").exists(), "it does run, in the sandbox"


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("command", BY_A_PROGRAM)
async def test_a_program_that_reads_its_orders_in_the_folder_gets_no_more_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "builder").write_text("#!/bin/sh\nexec sh ./orders\n")
    (programs / "builder").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    story = story_with(tmp_path, command.replace("PLACE", str(programs)), "orders", SHELL)
    story.answers = [Answer(choice="trust")]
    for _ in range(3):
        await story.tell("go")
    assert not (tmp_path / "user/owned").exists()
    assert (tmp_path / "work/ran").exists(), "it does run, in the sandbox"


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize(
    "command",
    ["SHOP/lint", "sh SHOP/lint", "sh SHOP/../shop/lint", "cd SHOP && sh lint", "sh SHOP/li*", "timeout 9 lint"],
)
async def test_an_attempt_starts_no_hook_of_its_repository_with_more_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "lint").write_text(f"#!/bin/sh\ntouch {tmp_path}/user/owned\n")
    (shop / "lint").chmod(0o755)
    monkeypatch.setenv("DUCKFLOW_FLEET_REPOSITORY", str(shop))
    monkeypatch.setenv("PATH", f"{shop}{os.pathsep}{os.environ['PATH']}")
    story = story_with(tmp_path, command.replace("SHOP", str(shop)), "notes", "x")
    story.answers = [Answer(choice="trust")]
    for _ in range(3):
        await story.tell("go")
    assert not (tmp_path / "user/owned").exists()


INSTALLED = (
    "/bin/ninja", "/bin/cmake .", "/bin/vim -es", "/bin/docker compose up", "/bin/mise run x", "/bin/node .",
    "/snap/bin/node .", "/opt/tool/bin/tool", "/usr/lib/git-core/git-commit -m x", "/bin/git commit -m x",
    "//usr//bin/../bin/ninja", "{home}/.local/bin/pre-commit run", "~/.local/bin/pre-commit run", "~/.cargo/bin/tool",
    "~/.local/share/pipx/venvs/x/bin/x", "~/.nvm/versions/node/v20/bin/eslint .", "~/way/ninja", "nice /bin/ninja",
    "bash -c '/bin/ninja'", "/nix/store/x/bin/tool",
)  # fmt: skip


@pytest.mark.parametrize("command", INSTALLED)
def test_an_installed_program_is_no_script_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "way").symlink_to("/usr/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin")
    (tmp_path / "work").mkdir()
    assert runs_of_folder(command.format(home=tmp_path), tmp_path / "work", str(tmp_path))


@pytest.mark.parametrize("command", ["~/bin/notify done", "{home}/hooks/log.sh", "nice ~/.claude/hooks/log.py x"])
def test_a_script_by_its_path_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    assert not runs_of_folder(command.format(home=tmp_path), tmp_path / "work", str(tmp_path))


@pytest.mark.parametrize("command", ORDERS)
def test_a_hook_that_may_read_its_orders_in_the_folder_loses_the_users_rights(tmp_path: Path, command: str) -> None:
    assert runs_of_folder(command, tmp_path, str(tmp_path / "home"))


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize(
    ("kind", "language", "words"),
    [
        ("auto", "en", ("Your hook “make fmt”", "in the sandbox", "the model may have changed")),
        ("auto", "ja", ("あなたのフック「make fmt」", "サンドボックス内で", "モデルが書き換えた可能性")),
        ("none", "en", ("Your hook “make fmt” does not run", "needs a sandbox", "the model may have changed")),
        (
            "none",
            "ja",
            ("フック「make fmt」は実行しません", "サンドボックスが必要", "モデルが書き換えた"),
        ),
    ],
)
async def test_the_user_is_told_once_that_a_hook_of_theirs_is_shut_in(
    tmp_path: Path, kind: str, language: str, words: tuple[str, ...]
) -> None:
    settings = {"sandbox": {"kind": kind}}
    story = story_with(tmp_path, "make fmt", "Makefile", MAKE, settings=settings, language=language)
    story.answers = [Answer(choice="trust"), *[Answer(choice="yes")] * 2]
    for _ in range(3):
        await story.tell("go")
    notices = [Words(language).phrase(event.what) for event in story.all(Noticed)]
    about_the_hook = [notice for notice in notices if "make fmt" in notice]
    assert len(about_the_hook) == 1 and all(word in about_the_hook[0] for word in words)
    assert (tmp_path / "work/ran").exists() is (kind == "auto") and not (tmp_path / "user/owned").exists()


@pytest.mark.parametrize("command", USERS_OWN)
def test_a_hook_that_names_nothing_of_the_folder_keeps_the_users_rights(tmp_path: Path, command: str) -> None:
    (tmp_path / "home/hooks").mkdir(parents=True)
    (tmp_path / "home/hooks/log.py").touch()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").touch()
    line = command.format(home=tmp_path / "home")
    assert not runs_of_folder(line, tmp_path / "work", str(tmp_path / "home"))
