"""Tasks as people write them, and the errors for tasks that cannot be read."""

from pathlib import Path

import pytest

from duckflow.errors import UsageError
from duckflow.fleet.task_file import read_lines, read_tasks, settle_bases
from duckflow.fleet.worktree import clone_place, is_address
from duckflow.i18n.words import Words, languages
from tests.fleet.yard import Repository

TASKS = """
repository = "shop"
checks = "make test"

[fleet]
budget_usd = 5

[[task]]
prompt = "Fix the login"
attempts = 2

[[task]]
name = "税率"
prompt = "税率を上げる"
checks = ["pytest"]
may_touch = ["src"]
"""


def test_a_file_has_fields_for_all_tasks_and_for_each() -> None:
    tasks, budget, _ = read_tasks(TASKS, "tasks.toml", {"model": "m", "checks": ["other"]}, Path("/code"))
    assert [task.name for task in tasks] == ["fix-the-login", "税率"]
    assert [task.checks for task in tasks] == [("make test",), ("pytest",)]
    assert {(task.repository, task.model) for task in tasks} == {("/code/shop", "m")}
    assert (tasks[0].attempts, tasks[1].may_touch, budget) == (2, ("src",), 5.0)


def test_each_line_is_a_task_without_its_list_mark() -> None:
    lines = "# soon\n- [ ] Fix the login\n\n2. ログインを直す\nFix the login\n"
    tasks = read_lines(lines, "stdin", {"attempts": 2}, Path("/code")).tasks
    assert [task.prompt for task in tasks] == ["Fix the login", "ログインを直す", "Fix the login"]
    assert [task.name for task in tasks] == ["fix-the-login", "ログインを直す", "fix-the-login.2"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "fleet.file.no_tasks"),
        ("[[task]]\nprompt = 1", "fleet.file.no_prompt"),
        ("[[task]]\nname = 'a'", "fleet.file.no_prompt"),
        ("[[task]]\nprompt = 'a'\nname = 'a b'", "fleet.file.name"),
        ("[[task]]\nprompt = 'a'\nattempts = 5", "fleet.file.value"),
        ("[[task]]\nprompt = 'a'\nmode = 'wild'", "fleet.file.choice"),
        ("[[task]]\nprompt = 'a'\nmode = 'contained'", "fleet.file.contained"),
        ("mode = 'contained'\n[[task]]\nprompt = 'a'", "fleet.file.contained"),
        ("[[task]]\nprompt = 'a'\nmodle = 'x'", "fleet.file.near"),
        ("color = 1\n[[task]]\nprompt = 'a'", "fleet.file.unknown"),
        ("[fleet]\nbudget_usd = 'x'\n[[task]]\nprompt = 'a'", "fleet.file.number"),
        ("[[task]]\nprompt = ", "fleet.file.toml"),
        ("task = []", "fleet.file.no_tasks"),
        ("task = [1]", "fleet.file.no_tasks"),
        ("[matrix]\nversion = []\n[[task]]\nprompt = 'a'", "fleet.file.value"),
        ("[fleet]\nbudget_usd = nan\n[[task]]\nprompt = 'a'", "fleet.file.value"),
        ("[fleet]\nbudget_usd = inf\n[[task]]\nprompt = 'a'", "fleet.file.value"),
        ("[fleet]\nbudget_tokens = true\n[[task]]\nprompt = 'a'", "fleet.file.number"),
        ("[[task]]\nprompt = 'a'\nbudget_usd = inf", "fleet.file.value"),
        ("[[task]]\nprompt = 'a'\nminutes = inf", "fleet.file.value"),
        ("[[task]]\nprompt = 'a'\npriority = 2147483648", "fleet.file.value"),
        ("[[task]]\nprompt = 'a'\nbudget_tokens = 9007199254740993", "fleet.file.value"),
    ],
)
def test_errors_name_what_cannot_be_read(text: str, told: str) -> None:
    with pytest.raises(UsageError) as problem:
        read_tasks(text, "tasks.toml", {}, Path("/code"))
    assert problem.value.key == told
    for language in languages():
        told_text = Words(language).error(problem.value)
        assert "tasks.toml" in told_text and "tasks.toml :" not in told_text


@pytest.mark.parametrize("field", ["budget_usd", "budget_tokens"])
def test_a_number_in_quotation_marks_is_named_as_it_was_written(field: str) -> None:
    with pytest.raises(UsageError) as problem:
        read_tasks(f"[[task]]\nprompt = 'a'\n{field} = '20'", "tasks.toml", {}, Path("/code"))
    for language, remedy in ("en", "without quotation marks"), ("ja", "引用符を付けずに"):
        told_text = Words(language).error(problem.value)
        assert '"20"' in told_text and remedy in told_text


async def test_the_base_is_a_commit_and_names_are_free(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    head = repository.git("rev-parse", "HEAD")
    repository.git("branch", "duckflow/fix-1")
    listed = read_lines("fix\nfix.2", "stdin", {"repository": "shop"}, tmp_path).tasks
    settled = await settle_bases(listed)
    assert [(task.base, task.onto, task.name) for task in settled] == [(head, "main", "fix.2"), (head, "main", "fix-2")]
    (task,) = (await settle_bases(listed))[:1]
    repository.git("checkout", "-q", "-b", "feature")
    assert (await settle_bases([task.model_copy(update={"base": "main"})]))[0].onto == "main"
    repository.git("branch", "-m", "duckflow/fix-1", "fix-1")
    repository.git("branch", "duckflow")
    with pytest.raises(UsageError) as problem:
        await settle_bases([task])
    assert problem.value.key == "fleet.file.branch_in_the_way"
    repository.git("branch", "-D", "duckflow")
    for update, key in ({"base": "nowhere"}, "no_base"), ({"repository": str(tmp_path)}, "no_repository"):
        with pytest.raises(UsageError) as problem:
            await settle_bases([task.model_copy(update=update)])
        assert problem.value.key == f"fleet.file.{key}"


MATRIX = """
[matrix]
repository = ["a", "git@example.com:team/b.git"]
version = ["3.12", "3.13"]

[[task]]
name = "bump-{repository}-{version}"
prompt = "Bump {repository} to {version}, keep {other}."

[[task]]
name = "docs-{repository}-{version}"
after = "bump-{repository}-{version}"
prompt = "Tell of it."
priority = 3
deliver = "pull-request"
"""


def test_a_matrix_makes_a_task_for_each_combination(tmp_path: Path) -> None:
    tasks = {task.name: task for task in read_tasks(MATRIX, "t.toml", {}, tmp_path).tasks}
    assert len(tasks) == 8
    bump, docs = tasks["bump-b-3.13"], tasks["docs-a-3.12"]
    assert bump.prompt == "Bump b to 3.13, keep {other}."
    assert (bump.remote, tasks["bump-a-3.12"].remote) == ("git@example.com:team/b.git", "")
    assert (docs.after, docs.priority, docs.deliver) == (("bump-a-3.12",), 3, "pull-request")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[[task]]\nname = "a"\nprompt = "p"\nafter = "b"', "fleet.file.after"),
        (
            '[[task]]\nname = "a"\nprompt = "p"\nafter = "b"\n[[task]]\nname = "b"\nprompt = "p"\nafter = ["a"]',
            "fleet.file.circle",
        ),
        ('[matrix]\nrepository = "a"\n[[task]]\nprompt = "p"', "fleet.file.value"),
    ],
)
def test_impossible_orders_of_tasks_are_refused_at_the_start(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(UsageError) as problem:
        read_tasks(text, "t.toml", {}, tmp_path)
    assert problem.value.key == key


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("https://example.com/a/b.git", True),
        ("git@example.com:a/b.git", True),
        ("ssh://git@example.com/a", True),
        ("file:///srv/a.git", True),
        ("~/code/shop", False),
        ("shop", False),
        ("ext::sh -c touch% /tmp/x", False),
        ("-uupload-pack", False),
        ("https://example.com/a b", False),
    ],
)
def test_only_plain_addresses_are_cloned(name: str, is_one: bool) -> None:
    assert is_address(name) is is_one


def test_two_addresses_never_share_a_clone(tmp_path: Path) -> None:
    places = {clone_place(address, tmp_path) for address in ("https://a/x.git", "https://b/x.git", "git@c:x.git")}
    assert len(places) == 3 and {place.parent for place in places} == {tmp_path}


def test_repositories_of_one_name_in_a_matrix_keep_their_own_order() -> None:
    text = """[matrix]
repository = ["a/shop", "b/shop"]
[[task]]
name = "bump-{repository}"
prompt = "Move it."
[[task]]
name = "docs-{repository}"
prompt = "Tell of it."
after = ["bump-{repository}"]
"""
    tasks = read_tasks(text, "tasks.toml", {}, Path("/code")).tasks
    waits = {task.name: (task.repository, task.after) for task in tasks}
    assert waits["docs-shop"] == ("/code/a/shop", ("bump-shop",))
    assert waits["docs-shop.2"] == ("/code/b/shop", ("bump-shop.2",))


@pytest.mark.parametrize(("field", "known"), [("deliver", "pull-request"), ("pick", "best"), ("mode", "full-auto")])
def test_a_word_that_is_none_of_a_fields_words_is_answered_with_them(field: str, known: str) -> None:
    with pytest.raises(UsageError) as problem:
        read_tasks(f"[[task]]\nprompt = 'a'\n{field} = 'pr'\n", "t.toml", {}, Path("/code"))
    told = Words("en").error(problem.value)
    assert f'{field} cannot be "pr"' in told and known in told and "contained" not in told
