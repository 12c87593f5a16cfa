"""A model that builds on a yes given before, or on programs of the folder under names that are free."""

import os
from pathlib import Path

import pytest

from duckflow.agent.permissions import Permission, rule_for
from duckflow.events.types import ActionFinished
from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts
from tests.journeys.story import Story, act, decide, respond

WIDER = [
    ("python3 -u app.py", "python3 -u evil.py"),
    ("python3 -B tool.py", "python3 -B /tmp/evil.py"),
    ("sed -i s/a/b/ a.txt", "sed -i s/x/y/ other.py"),
    ("perl -i.bak -p a.pl", "perl -i.bak -p evil.pl"),
    ("gdb -batch prog", "gdb -batch -x evil.gdb"),
    ("cp -r src lib", "cp -r /etc lib"),
    ("cp -r src lib", "cp -r src lib other"),
    ("node -r ./a.js x.js", "node -r ./evil.js x.js"),
    ("tar -xf a.tar", "tar -xf a.tar --to-command=evil"),
    ("git -C sub pull", "git -C other pull"),
    ("npm run -s test", "npm run -s evil"),
    ("chmod -R 755 bin", "chmod -R 777 src"),
    ("ruby -w a.rb", "ruby -w evil.rb"),
    ("go -C sub test", "go -C other run evil.go"),
]


@pytest.mark.parametrize(("agreed", "tried"), WIDER)
def test_a_rule_whose_second_word_is_an_option_covers_that_command_alone(agreed: str, tried: str) -> None:
    rule = rule_for("shell.run", (), agreed)
    assert rule is None or (rule.covers("shell.run", (), agreed) and not rule.covers("shell.run", (), tried))
    older = Permission(operation="shell.run", pattern=" ".join(agreed.split()[:2]))
    assert not older.covers("shell.run", (), tried) or older.pattern.split()[1][0] != "-"


ALONE = [
    ("rm x.py", "rm x.py y.py"),
    ("rm x.py", "rm x.py -r src"),
    ("cp x.py y.py", "cp x.py src/app.py"),
    ("cp x.py y.py", "cp x.py y.py notes.txt src"),
    ("mv a.py b.py", "mv a.py .git"),
    ("mkdir build", "mkdir build src/new"),
    ("touch notes", "touch notes .envrc"),
    ("ln a b", "ln a b c src"),
    ("tee log", "tee log src/app.py"),
    ("chmod 644 a", "chmod 644 a src/app.py"),
    ("python3 manage", "python3 manage evil.py"),
    ("python3 app.py", "python3 app.py --drop"),
    ("node app", "node app ../evil.js"),
    ("./deploy.sh", "./deploy.sh --production"),
    ("scripts/clean", "scripts/clean src"),
    ("git rm a.py", "git rm src/app.py"),
    ("git mv a b", "git mv src .git"),
    ("unzip a.zip", "unzip a.zip -d src"),
    ("tar xf a.tar", "tar xf a.tar -C src"),
    ("curl localhost", "curl localhost -o src/app.py"),
    ("kill 12", "kill 12 13"),
]


@pytest.mark.parametrize(("agreed", "tried"), ALONE)
def test_a_rule_for_a_command_that_names_files_or_values_covers_that_command_alone(agreed: str, tried: str) -> None:
    rule = rule_for("shell.run", (), agreed)
    assert rule and rule.covers("shell.run", (), agreed) and not rule.covers("shell.run", (), tried)
    assert rule.told == agreed
    older = Permission(operation="shell.run", pattern=" ".join(agreed.split()[:2]))
    assert not older.covers("shell.run", (), tried), "a rule that was given before is not wider either"


@pytest.mark.parametrize("tried", ["psql shop -c 'select 1'", "psql shop -e", "psql shop --command=x", "psql shop -mx"])
def test_a_rule_to_which_words_may_be_added_takes_no_code(tried: str) -> None:
    rule = rule_for("shell.run", (), "psql shop")
    assert rule and rule.told == "psql shop …"
    assert rule.covers("shell.run", (), "psql shop --quiet") and not rule.covers("shell.run", (), tried)


FREE = ["cat a.txt", "ls", "grep x a.txt", "head -1 a.txt", "wc -l a.txt", "sort a.txt", "git --version", "rg x a.txt"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", [".venv/bin", ".", "bin", "linked"])
@pytest.mark.parametrize("command", FREE)
async def test_a_free_command_is_not_a_program_of_the_folder(
    tmp_path: Path, command: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = decide(respond("ok"), step="PLANNING")
    story = Story(tmp_path, [decide(act("shell.run", command=command), next_step="continue"), done], mode="ask")
    (story.folder / "a.txt").write_text("x\n")
    real = story.folder / ("bin" if place == "linked" else place)
    real.mkdir(parents=True, exist_ok=True)
    (real / command.split()[0]).write_text("#!/bin/sh\necho the folder ran this\n")
    (real / command.split()[0]).chmod(0o755)
    entry = "." if place == "." else str(story.folder / place)
    if place == "linked":
        entry = str(tmp_path / "linked")
        (tmp_path / "linked").symlink_to(real)
    monkeypatch.setenv("PATH", f"{entry}{os.pathsep}{os.environ['PATH']}")
    await story.tell("go")
    assert all("the folder ran" not in event.result.for_model for event in story.all(ActionFinished))
    assert story.questions == []


@pytest.mark.parametrize(
    "command",
    ["git checkout -bfeature", "git checkout -Bforce", "git switch -cfeature", "git switch -Cfix", "git push -of main"],
)
def test_a_value_glued_to_an_option_is_no_option(command: str) -> None:
    assert judge_command(command, CommandFacts("/work", "/home/me", False)).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    ["git checkout -f", "git checkout -fb x", "git switch -f main", "git push -f", "git push -fo x"],
)
def test_force_is_still_seen_among_letters(command: str) -> None:
    assert judge_command(command, CommandFacts("/work", "/home/me", False)).verdict == "dangerous"


@pytest.mark.parametrize(
    "command",
    [
        "column -c 10000 a.txt",
        "column -c10000 a.txt",
        "column -t -s , a.txt",
        "fold -w 80 a.txt",
        "head -n 3 a.txt",
        "nl -w 3 -s : a.txt",
        "pr -l 60 a.txt",
    ],
)
def test_a_value_after_an_option_is_no_operand(command: str) -> None:
    assert judge_command(command, CommandFacts("/work", "/home/me", False)).verdict == "safe"
