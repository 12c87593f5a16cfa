"""Calls of git: which ones read, change or throw work away, and whose settings they obey."""

import pytest

from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts

CHECKED = CommandFacts(folder="/work/pond", git_runs_programs=False)
UNSEEN = (CommandFacts(folder="/work/pond"), CommandFacts(folder="/work/pond", git_runs_programs=True))


@pytest.mark.parametrize("facts", [CHECKED, *UNSEEN])
@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline -5",
        "git branch",
        "git branch -a -vv",
        "git branch --contains abc123",
        "git tag -l 'v*'",
        "git remote -v",
        "git config --get user.name",
        "git grep -n quack",
        "git log --graph --simplify-by-decoration --decorate-refs=refs/tags",
        "git log --min-parents=2 --exclude=refs/wip --all",
    ],
)
def test_reading_recorded_data_is_safe_in_every_repository(command: str, facts: CommandFacts) -> None:
    assert judge_command(command, facts).verdict == "safe"


@pytest.mark.parametrize("facts", UNSEEN)
@pytest.mark.parametrize(
    "command",
    ["git log -p", "git log --st", "git log -Sx", "git log -L1,2:a", "git ls-files --modif", "git ls-files -om"]
    + ["git describe --dirty", "git describe --dir=x", "git log --format=%G?", "git -c a.b=c log", "cd x && git log"],
)
def test_comparing_contents_is_safe_only_after_the_settings_were_checked(command: str, facts: CommandFacts) -> None:
    assert judge_command(command, facts).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git status --short",
        "git log -p --stat HEAD~3..HEAD",
        "git diff HEAD~1 -- src/duck.py",
        "git diff main...nest",
        "git show HEAD^",
        "git show HEAD:src/duck.py",
        "git --no-pager blame duck.py",
        "git stash list",
        "git log --diff-filter=A --name-only --format= -- newsfragments | head -8",
        "git diff --diff-filter=rm --inter-hunk-context=3 HEAD",
        "git show --find-object=abc123 --dirstat=files,10 HEAD",
        "cd /work/pond && git status",
    ],
)
def test_reading_is_safe_once_the_repository_was_checked(command: str) -> None:
    assert judge_command(command, CHECKED).verdict == "safe"
    assert {judge_command(command, facts).verdict for facts in UNSEEN} == {"ask"}


@pytest.mark.parametrize(
    "command",
    [
        "git -C ../other status",
        "git --git-dir=evil status",
        "git -c core.pager=cat log",
        "git -p log",
        "git --exec-path=evil status",
        "cd nest && git status",
        "git log --output=log.txt",
        "git log --outp=log.txt",
        "git diff --ext-diff",
        "git diff --diff-filter=A --output=log.txt",
        "git log --filter=rm",
        "git log --diff-filter=A --exec=rm",
        "git show --remerge-diff HEAD",
        "git show --textconv HEAD",
        "git cat-file --filters HEAD:a",
        "git grep -Ovim quack",
        "git grep -nOvim quack",
        "git grep --open-files-in-pager=vim quack",
        "git branch nest",
        "git branch -m pond lake",
        "git tag v1",
        "git remote add pond url",
        "git config user.name duck",
        "git config core.fsmonitor --list",
        "git config --local core.fsmonitor --get",
        "git config core.pager -l",
        "git config alias.st --get-regexp",
        "git config -z core.editor --get-all",
        "git config core.pager less",
        "git show HEAD:.env",
        "git add .",
        "git commit --amend",
        "git checkout main",
        "git checkout -b nest",
        "git switch nest",
        "git restore --staged duck.py",
        "git reset HEAD~1",
        "git clean -nd",
        "git push --force-with-lease",
        "git stash pop",
        "git rebase main",
        "git rm --cached duck.py",
    ],
)
def test_a_call_that_changes_or_may_run_something_is_asked_about(command: str) -> None:
    assert judge_command(command, CHECKED).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git reset --har HEAD~1",
        "git -C pond reset --hard",
        "git --no-pager reset -q --hard",
        "git reset --merge",
        "git checkout .",
        "git checkout -- duck.py",
        "git checkout -f main",
        "git checkout main duck.py",
        "git switch --discard-changes main",
        "git restore duck.py",
        "git restore --staged --worktree duck.py",
        "git clean -fdx",
        "git push --force",
        "git push -fu pond main",
        "git push pond +main",
        "git push pond :main",
        "git push --delete pond main",
        "git push --mirror",
        "git branch -D nest",
        "git branch -d --force nest",
        "git stash drop",
        "git stash clear",
        "git worktree remove --force ../nest",
        "git reflog expire --expire=now --all",
        "git gc --prune=now",
        "git update-ref -d refs/heads/nest",
        "git filter-branch --all",
        "git rm -rf .",
        "git submodule deinit -f nest",
        "git read-tree -u --reset HEAD",
        "git clone 'ext::sh -c rm% -rf% ~'",
    ],
)
def test_a_call_that_throws_work_away_is_dangerous(command: str) -> None:
    assert judge_command(command, CHECKED).verdict == "dangerous"
