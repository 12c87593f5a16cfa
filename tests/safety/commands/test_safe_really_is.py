"""Commands called safe are run for real, in a folder of their own: nothing in it changes."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.safety.commands.facts import CommandFacts
from duckflow.safety.commands.judge import judge_command

PROGRAMS = (
    [
        "ls",
        "cat",
        "head",
        "sort",
        "uniq",
        "sed",
        "awk",
        "find",
        "grep",
        "echo",
        "printf",
        "cut",
        "tr",
        "wc",
        "nl",
        "xxd",
    ]
    + [
        "base64",
        "date",
        "file",
        "diff",
        "stat",
        "du",
        "test",
        "[",
        "cd",
        "pwd",
        "type",
        "command",
        "seq",
        "shuf",
        "git",
    ]
    + ["tee", "env", "xargs", "export", "eval", "exec", "read", "touch"]
)
ARGUMENTS = (
    [
        "a.txt",
        "b.txt",
        "sub",
        "sub/c.txt",
        "new",
        "'new one'",
        "-n",
        "-o",
        "-i",
        "-r",
        "-u",
        "-c",
        "-e",
        "-x",
        "-w",
        "-p",
    ]
    + [
        "--output=new",
        "--output",
        "-onew",
        "'1p'",
        "'s/a/b/'",
        "'s/a/b/w new'",
        "'{print}'",
        "'{print > \"new\"}'",
        "'1w new'",
    ]
    + [
        "-name",
        "'*.txt'",
        "-fprint",
        "-delete",
        "-exec",
        "touch",
        "{}",
        "\\;",
        "+",
        "-print",
        "-fls",
        "--",
        "-",
        "x=1",
        "'%s'",
    ]
    + [
        "]",
        "-ni",
        "-nE",
        "-Inew",
        "--in-place",
        "-k2",
        "-d:",
        "-f1",
        "+%s",
        "2",
        "status",
        "log",
        "diff",
        "show",
        "HEAD",
    ]
    + [
        "branch",
        "tag",
        "-z",
        "-D",
        "-E",
        "$'new'",
        '"new"',
        "n''ew",
        "--stat",
        "-T",
        "-b",
        "-m",
        "-q",
        "-a",
        "-v",
        "-l",
    ]
)
BETWEEN = [
    " | ",
    " && ",
    "; ",
    " || ",
    "\n",
    " > ",
    " 2>",
    " >/dev/null ",
    " 2>&1 ",
    " < ",
    " >> ",
    " &> ",
    " >| ",
    " <> ",
]
CASES = 120


def some_command(chance: random.Random) -> str:
    text = ""
    for count in range(chance.randint(1, 3)):
        text += chance.choice(BETWEEN) if count else ""
        text += " ".join([chance.choice(PROGRAMS), *chance.choices(ARGUMENTS, k=chance.randint(0, 4))])
    return text


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "index")
    return {str(path): path.read_bytes() for path in files} | {str(path): b"" for path in folder.rglob("*/")}


@pytest.mark.skipif(not shutil.which("bash") or not shutil.which("git"), reason="needs bash and git")
def test_nothing_changes_when_commands_called_safe_are_run(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in {"a.txt": "b a 1\na b 2\n", "b.txt": "x\n", "sub/c.txt": "c\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    git = ["git", "-c", "user.name=duck", "-c", "user.email=duck@example.com"]
    for step in (["init", "-q"], ["add", "."], ["commit", "-qm", "pond"]):
        subprocess.run([*git, *step], cwd=tmp_path, env=surroundings, check=True)
    facts = CommandFacts(folder=str(tmp_path), home=str(tmp_path), git_runs_programs=False)
    before, chance, ran = contents(tmp_path), random.Random(4), 0
    while ran < CASES:
        command = some_command(chance)
        if judge_command(command, facts).verdict == "safe":
            subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=surroundings,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
                check=False,
            )
            assert contents(tmp_path) == before, command
            ran += 1
