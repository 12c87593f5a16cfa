"""Programs that read, and the options with which they do more."""

import pytest

from duckflow.safety.commands.judge import judge_command


@pytest.mark.parametrize(
    "command",
    [
        "sort -o out.txt in.txt",
        "sort --outp=out.txt in.txt",
        "sort -no out.txt in.txt",
        "sort --compress-prog=sh in.txt",
        "sort -S 100G in.txt",
        "uniq in.txt out.txt",
        "xxd -r in.hex out.bin",
        "xxd in.bin out.hex",
        "base64 -o out.txt in.txt",
        "tree -o out.txt",
        "file -C -m magic",
        "date -s tomorrow",
        "date 010100002030",
        "hostname lake",
        "hash -p /tmp/evil ls",
        "nm --plugin=evil.so a.out",
        "rg --pre cat x",
        "rg -z x",
        "rg -nz x",
        "rg --hostname-bin=evil x",
        "fd . -x cat",
        "fd . -Hx cat",
        "yq -i '.a = 1' a.yml",
        "find . -fprint out.txt",
        "find . -exec cat {} \\;",
        "find . -ok cat {} \\;",
        "sed -i s/a/b/ a.txt",
        "sed -ni p a.txt",
        "sed -Ibak s/a/b/ a.txt",
        "sed 's/a/b/w out.txt' a.txt",
        "sed 's/a/b/e' a.txt",
        "sed -n '1w out.txt' a.txt",
        "sed '1r other.txt' a.txt",
        "sed -f script.sed a.txt",
        "awk '{print > \"out.txt\"}' a.txt",
        "awk '{print | \"sort\"}' a.txt",
        "awk 'BEGIN {system(\"ls\")}'",
        "awk 'BEGIN {\"ls\" | getline x}'",
        "awk -f script.awk a.txt",
        "gawk -i inplace '{print}' a.txt",
        "find . -{delete,print}",
        "find . -delet[e]",
        "rg --pre{=,=sh} pattern",
        'find . "-de\\\nlete"',
        "/tmp/evil/ls",
        "yarn --version",
        "cargo --version",
        "head",
        "grep",
        "ls -l > listing.txt",
        "ls >| listing.txt",
        "ls >& listing.txt",
        "ls 2> errors.txt",
        "cat < ~/.netrc",
    ],
)
def test_a_reader_that_writes_or_runs_something_is_not_safe(command: str) -> None:
    assert judge_command(command).verdict != "safe"


@pytest.mark.parametrize(
    "command",
    [
        "sort -k2 -n in.txt",
        "sort -t: -k3 in.txt",
        "uniq -c in.txt",
        "xxd in.bin | head",
        "base64 in.txt",
        "tree -L 2 src",
        "file in.bin",
        "date",
        "date -u +%Y-%m-%d",
        "hostname",
        "rg -i --color=never quack src",
        "rg --files src",
        "fd -H -t f duck",
        "yq '.a' a.yml",
        "nl -ba a.py | sed -n '1,5p'",
        "sed -n -E '/def/p' a.py",
        "sed '/^$/d;s/a/b/' a.py",
        "cut -d: -f1 a.txt",
        "tr a-z A-Z",
        "stat a.txt",
        "du -sh .",
        "diff a.txt b.txt",
        "ps aux",
        "basename /some/where",
        "node -v",
    ],
)
def test_the_same_readers_are_safe_otherwise(command: str) -> None:
    verdict = judge_command(command)
    assert verdict.verdict == "safe", verdict.reasons
