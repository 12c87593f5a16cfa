"""Strangers write issue titles, task files that lie in a repository, and rows of a shared database. None of it chooses
what runs on the user's machine, or what leaves it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from duckflow.errors import DuckflowError, UsageError
from duckflow.fleet.task import AttemptReport, FleetTask, read_row
from duckflow.fleet.task_file import FILLED, read_lines, read_tasks
from duckflow.fleet.worktree import repository_in
from duckflow.safety.secrets import mask, secret_parts
from tests.fleet.test_commands import FleetShell
from tests.fleet.yard import Repository, write
from tests.journeys.story import act, decide, respond

KEY = "tulip-4711-meadow"


@pytest.fixture
def shell(tmp_path: Path) -> FleetShell:
    return FleetShell(tmp_path)


def titles_as_toml(canary: Path) -> str:
    return f"[[task]]\nsetup = 'touch {canary}'\nsecrets = ['HOME']\nprompt = '''\nFix the login\n'''\n"


@pytest.mark.parametrize("words", [(), ("-",), ("--issues", "issues.txt"), ("issues.txt",), ("issues.md",)])
def test_titles_that_together_form_toml_start_nothing(
    shell: FleetShell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in ("issues.txt", "issues.md"):
        (shell.work / name).write_text(titles_as_toml(tmp_path / "hit"))
    told = shell.run("fleet", "run", *words, "--repository", "shop", stdin=titles_as_toml(tmp_path / "hit"))
    assert told.returncode == 2 and ":1 is a line of TOML" in told.stderr
    assert not (tmp_path / "hit").exists() and shell.told("list") == []


@pytest.mark.parametrize(
    "line",
    [
        "[task]",
        '[["task"]]',
        "[[\ttask]] ",
        "[ [task] ]",
        'task = [{prompt = "a"}]',
        "[fleet]",
        'setup = "id"',
        "name='a'",
    ],
)
def test_a_list_with_a_line_of_toml_is_refused_however_it_is_written(line: str) -> None:
    with pytest.raises(UsageError, check=lambda problem: problem.key == "fleet.file.lines"):
        read_lines(f"Fix it\n{line}\nand more", "stdin", {}, Path("/code"))


def test_brackets_and_equals_signs_in_a_sentence_are_not_toml() -> None:
    lines = ["[urgent] fix the login", "x = 1 prints nothing", "name = None is refused", "[task force] raise the tax"]
    assert [task.prompt for task in read_lines("\n".join(lines), "stdin", {}, Path("/code")).tasks] == lines


@pytest.mark.parametrize("text", ["[[task]\nprompt = 'a'\n", "prompt = 'a'\n", "Fix the login\nRaise the tax\n"])
def test_a_toml_file_with_a_mistake_is_not_read_as_a_list(shell: FleetShell, text: str) -> None:
    (shell.work / "tasks.toml").write_text(text)
    assert shell.run("fleet", "run", "tasks.toml", "--repository", "shop").returncode == 2
    assert shell.told("list") == []


@pytest.mark.parametrize("field", sorted(FleetTask.model_fields.keys() - {*FILLED, "onto", "remote"}))
def test_variables_are_filled_into_texts_and_never_into_commands(field: str) -> None:
    for value in ("'{m}'", "['{m}']", "'x{m}y'"):
        text = f"[matrix]\nm = ['contained']\n[[task]]\nprompt = '{{m}}'\n{field} = {value}\n"
        with pytest.raises(UsageError) as problem:
            read_tasks(text, "tasks.toml", {}, Path("/code"))
        assert problem.value.key == "fleet.file.no_variable"


def test_a_list_of_repositories_is_piped_into_a_matrix(shell: FleetShell) -> None:
    for name in ("a", "b"):
        Repository(shell.work / name)
    text = '[[task]]\nname = "bump-{repository}"\nprompt = "Bump {repository}."\n'
    (shell.work / "tasks.toml").write_text(text)
    run = ("fleet", "run", "tasks.toml", "--no-work", "--matrix", "repository=-")
    assert shell.run(*run, stdin="a\n\nb\n").returncode == 0
    assert [task["task"]["prompt"] for task in shell.told("show")["tasks"]] == ["Bump a.", "Bump b."]
    hostile = shell.run(*run, stdin="a\n'''\nsetup = 'id'\n")
    assert hostile.returncode == 2 and len(shell.told("list")) == 1


ORDER: dict[str, Any] = {"fleet": "f1", "task": {"name": "t", "repository": "/r", "prompt": "p"}, "number": 1}
OPTION = "--output=/tmp/hit"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("commit", OPTION),
        ("commit", "+c14f380acb57"),
        ("commit", "HEAD"),
        ("branch", "main"),
        ("branch", OPTION),
        ("order.mend", OPTION),
        ("order.fleet", "../../home"),
        ("order.task.name", "../../../home"),
        ("order.task.name", "a/../b"),
        ("order.task.base", OPTION),
        ("order.task.onto", OPTION),
        ("order.task.remote", "--upload-pack=id"),
        ("order.task.model", "--contained"),
        ("order.task.container", "--volume=/:/host"),
        ("order.task.container", "image --privileged"),
        ("order.task.container", "image\n"),
    ],
)
def test_a_row_that_others_have_changed_is_refused(place: str, value: str) -> None:
    row = json.loads(json.dumps({"order": ORDER, "outcome": "done", "branch": "duckflow/t-1", "commit": "c1"}))
    read_row(AttemptReport, json.dumps(row))
    *tables, field = place.split(".")
    table = row
    for name in tables:
        table = table[name]
    table[field] = value
    with pytest.raises(DuckflowError) as problem:
        read_row(AttemptReport, json.dumps(row))
    assert problem.value.key == "fleet.row"


def test_a_changed_row_pushes_nothing(shell: FleetShell, tmp_path: Path) -> None:
    shell.repository.git("init", "-q", "--bare", str(tmp_path / "o.git"))
    shell.repository.git("remote", "add", "origin", str(tmp_path / "o.git"))
    shell.add("tax", write("tax.py", "TAX = 2\n"), deliver="push")
    shell.fleet("run", "tasks.toml", "--json")
    (database,) = tmp_path.rglob("fleet.db")
    with sqlite3.connect(database) as rows:
        (text,) = rows.execute("select report from fleet_attempts").fetchone()
        report = json.loads(text) | {"commit": f"--receive-pack=touch {tmp_path / 'hit'} #"}
        rows.execute("update fleet_attempts set report = ?", (json.dumps(report),))
    told = shell.run("fleet", "deliver", "--yes")
    assert told.returncode and "does not accept: commit is" in told.stderr
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("repository", ["/srv/private", "../private", "a/../../private", "file:///srv/private"])
def test_nothing_outside_of_the_repositories_is_worked_on(repository: str) -> None:
    with pytest.raises(UsageError):
        repository_in("/srv/repositories", repository)
    assert repository_in("/srv/repositories", "team/a") == Path("/srv/repositories/team/a")


def test_a_worker_works_on_nothing_outside_of_its_repositories(shell: FleetShell, tmp_path: Path) -> None:
    private = Repository(shell.work / "private")
    (shell.work / "all").mkdir()
    Repository(shell.work / "all" / "shop")
    (shell.work / "tasks.toml").write_text(
        '[[task]]\nname = "tax"\nrepository = "shop"\nprompt = "p"\nsetup = "false"\n'
    )
    shell.fleet("run", "tasks.toml", "--no-work", "--repositories", "all")
    (fleet,) = shell.told("list")
    (database,) = tmp_path.rglob("fleet.db")
    with sqlite3.connect(database) as rows:
        (text,) = rows.execute("select task from fleet_tasks").fetchone()
        rows.execute(
            "update fleet_tasks set task = ?", (json.dumps(json.loads(text) | {"repository": str(private.folder)}),)
        )
    shell.fleet("worker", fleet["fleet"], "--repositories", "all")
    assert "only works inside that folder" in shell.fleet("show", "tax")
    assert private.branches() == ["main"]


MULTI = "-----BEGIN K-----\ntulip-4711-meadow\nMORE-OF-IT-88\nx=\n-----END K-----"
SERVICE = json.dumps({"user": "shop", "private_key": "tulip-4711-meadow\nMORE-OF-IT-88"}, indent=1)


@pytest.mark.parametrize(
    "value", [f"{KEY} ", f"{KEY}\r", f"{KEY}\n", f"\t{KEY}", MULTI, MULTI.replace("\n", "\r\n"), SERVICE, f'{KEY}"\\x']
)
def test_no_line_of_a_secret_is_shown(value: str) -> None:
    lines = [f"{number:6}\t{line}" for number, line in enumerate(value.split("\n"), 1)]
    printed = [value, f"<{value.strip()}>", "\n".join(lines), json.dumps(value), f"{value}|".replace("\n", "\n+")]
    for text in printed:
        masked = mask(text, values=secret_parts([value])).text
        assert KEY not in masked and "MORE-OF-IT-88" not in masked, masked


@pytest.mark.parametrize(
    "value", ["", " ", "pw1", "a\nb\nc\nd\ne\nf\ng", "abc\ndef\n", "longer-than-six\nab\ncd\nef\n"]
)
def test_a_value_that_cannot_be_told_from_other_text_has_no_parts(value: str) -> None:
    assert secret_parts([value]) == ()


@pytest.mark.slow
def test_a_secret_of_several_lines_is_in_no_record(shell: FleetShell, tmp_path: Path) -> None:
    shell.environment["SHOP_TOKEN"] = MULTI
    shell.repository.write("show.sh", 'echo "$SHOP_TOKEN" | cat -n\nexit 1\n')
    shell.repository.commit("show")
    look = decide(act("shell.run", command="sh show.sh"), next_step="continue")
    wrote = write("tax.py", "TAX = 2\n")
    shell.add("tax", look, wrote, look, wrote, secrets=["SHOP_TOKEN"], checks=["sh show.sh"])
    shell.fleet("run", "tasks.toml", "--yes", ends=1)
    assert "•••" in shell.fleet("show", "tax")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []


def test_variables_are_passed_after_a_yes_and_keys_of_models_never(shell: FleetShell) -> None:
    shell.environment |= {"SHOP_TOKEN": KEY, "OPENAI_API_KEY": "sk-of-the-user-4711", "SAME": "sk-of-the-user-4711"}
    shell.add("tax", write("tax.py", "TAX = 2\n"), secrets=["SHOP_TOKEN"], setup="npm ci")
    told = shell.run("fleet", "run", "tasks.toml")
    assert told.returncode == 2 and "SHOP_TOKEN: given to the commands" in told.stderr and "“npm ci”" in told.stderr
    assert shell.told("list") == []
    (shell.work / "tasks.toml").write_text('repository = "shop"\n')
    shell.add("key", write("tax.py", "TAX = 2\n"), secrets=["OPENAI_API_KEY"])
    assert "is the key of a model" in shell.run("fleet", "run", "tasks.toml", "--yes").stderr
    assert shell.told("list") == []


def test_the_key_of_a_model_under_another_name_and_a_short_value_are_refused(shell: FleetShell) -> None:
    shell.environment |= {"OPENAI_API_KEY": "sk-of-the-user-4711", "SAME": "sk-of-the-user-4711", "SHORT": "pw1"}
    for name in ("SAME", "SHORT"):
        shell.add(name.lower(), write("tax.py", "TAX = 2\n"), secrets=[name])
    shell.fleet("run", "tasks.toml", "--yes", ends=1)
    assert "is the key of a model" in shell.fleet("show", "same") and "too short" in shell.fleet("show", "short")


def test_a_secret_in_a_file_never_leaves_the_machine(shell: FleetShell, tmp_path: Path) -> None:
    shell.environment["SHOP_TOKEN"] = MULTI
    shell.repository.git("init", "-q", "--bare", str(tmp_path / "o.git"))
    shell.repository.git("remote", "add", "origin", str(tmp_path / "o.git"))
    hide = 'echo "$SHOP_TOKEN" > conf.bin; echo "*.bin -diff" > .gitattributes'
    leak = decide(act("shell.run", command=hide), respond("Done."))
    shell.add("leak", leak, secrets=["SHOP_TOKEN"], deliver="push")
    shell.add("tax", write("tax.py", "TAX = 2\n"), secrets=["SHOP_TOKEN"], deliver="push")
    shell.fleet("run", "tasks.toml", "--yes", ends=1)
    assert "was written into conf.bin" in shell.fleet("show", "leak")
    # Later commits are searched too, here one by the user on the target branch.
    shell.repository.write("notes.txt", "MORE-OF-IT-88\n")
    shell.repository.commit("notes")
    shell.repository.write("notes.txt", "\n")
    shell.repository.commit("notes out")
    (told,) = json.loads(shell.fleet("deliver", "--yes", "--json", "--deliver", "merge", ends=1))
    assert told["task"] == "tax" and "notes.txt" in told["why"]
    assert shell.repository.git("ls-remote", "origin") == ""


def test_only_the_commit_that_was_shown_is_pushed(shell: FleetShell, tmp_path: Path) -> None:
    shell.repository.git("init", "-q", "--bare", str(tmp_path / "o.git"))
    shell.repository.git("remote", "add", "origin", str(tmp_path / "o.git"))
    shell.repository.git("tag", "-a", "private", "-m", "private words")
    shell.repository.git("config", "push.followTags", "true")
    shell.add("tax", write("tax.py", "TAX = 2\n"), deliver="push")
    shell.fleet("run", "tasks.toml", "--json")
    shell.fleet("deliver", "--yes")
    assert [line.split("\t")[1] for line in shell.repository.git("ls-remote", "origin").split("\n")] == [
        "refs/heads/duckflow/tax-1"
    ]


def test_files_that_programs_leave_behind_are_not_part_of_the_change(shell: FleetShell) -> None:
    folders = "{__pycache__,deep/__pycache__,.venv/lib,deep/.mypy_cache,.ruff_cache,.tox}"
    left = f"mkdir -p {folders}; touch {folders}/a b.pyc deep/c.pyo"
    wrote = act("file_ops.write_file", path="ship.py", content="SHIP = 5\n")
    shell.add("ship", decide(act("shell.run", command=f"bash -c '{left}'"), wrote, respond("Done.")))
    shell.add("tax", write("tax.py", "TAX = 2\n"), checks=[f"bash -c '{left}'"])
    shell.fleet("run", "tasks.toml", "--json")
    for name in ("ship", "tax"):
        assert shell.repository.git("diff", "--name-only", "main", f"duckflow/{name}-1") == f"{name}.py"
