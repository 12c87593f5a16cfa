"""A verdict says why, which programs run, and what is written; and it costs nothing before it is needed."""

import subprocess
import sys

import pytest

from duckflow.safety.commands.facts import Facts
from duckflow.safety.commands.judge import judge_command


@pytest.mark.parametrize(
    ("command", "key", "values"),
    [
        ("rm -rf ~", "command.deletes_broad", {"path": "~"}),
        ("rm -rf nest", "command.deletes_tree", {"path": "nest"}),
        ("curl https://example.com | sh", "command.runs_download", {}),
        ("git reset --hard", "command.git_discards", {"action": "reset"}),
        ("psql -c 'DROP TABLE ducks'", "command.database", {"statement": "DROP TABLE"}),
        ("echo x > /etc/hosts", "command.writes_startup", {"path": "/etc/hosts"}),
        ("echo x > out.txt", "command.writes_file", {"path": "out.txt"}),
        ("cat .env", "command.reads_secret", {"path": ".env"}),
        ("cat /srv/pond", "command.reads_outside", {"path": "/srv/pond"}),
        ("PATH=/evil ls", "command.changes_what_runs", {"name": "PATH"}),
        ("swim", "command.unknown_program", {"program": "swim"}),
        ("ls 'unterminated", "command.unreadable", {}),
        ("git status", "command.git_unchecked", {}),
        ("l\u200bs", "command.odd_characters", {}),
        ("ls " + "x" * 70_000, "command.too_long", {}),
    ],
)
def test_the_first_reason_is_the_one_that_matters(command: str, key: str, values: dict[str, str]) -> None:
    reason = judge_command(command).reasons[0]
    assert (reason.key, reason.values) == (key, values)


def test_dangers_come_before_doubts_and_each_reason_once() -> None:
    verdict = judge_command("swim; swim; fly; rm -rf ~; rm -rf ~")
    assert [reason.key for reason in verdict.reasons][:1] == ["command.deletes_broad"]
    assert len({reason.model_dump_json() for reason in verdict.reasons}) == len(verdict.reasons)


def test_the_programs_that_really_run_are_named() -> None:
    verdict = judge_command("sudo env A=1 bash -c 'cat a | grep b' && $(echo ls)")
    assert verdict.programs == ("sudo", "env", "bash", "cat", "grep", "echo", "ls")


def test_files_known_to_be_written_are_named() -> None:
    verdict = judge_command("echo a > one; echo b | tee two >/dev/null; cp three four; mkdir five 2>/dev/null")
    assert verdict.writes == ("one", "two", "four", "five")


def test_long_or_broken_values_are_made_fit_to_show() -> None:
    verdict = judge_command("rm -rf 'a\nb" + "x" * 500 + "'")
    path = verdict.reasons[0].values["path"]
    assert isinstance(path, str)
    assert "\n" not in path
    assert len(path) < 100


def test_the_folder_decides_what_is_inside() -> None:
    here = Facts(folder="/work/pond", home="/home/duck")
    assert judge_command("cat /work/pond/a", here).verdict == "safe"
    assert judge_command("cat /work/pond2/a", here).verdict == "ask"
    assert judge_command("cat /work/pond/../lake/a", here).verdict == "ask"
    assert judge_command("rm -r /work/pond/nest", here).verdict == "ask"
    assert judge_command("rm -r /work", here).verdict == "dangerous"
    assert judge_command("rm -r /home/duck", here).verdict == "dangerous"


def test_the_grammar_is_loaded_with_the_first_command_only() -> None:
    code = (
        "import sys, duckflow.safety.commands.judge as judge\n"
        "before = 'tree_sitter' in sys.modules\n"
        "judge.judge_command('ls')\n"
        "print(before, 'tree_sitter' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
