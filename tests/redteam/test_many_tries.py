"""Sixteen hundred tries made by a seeded program: what other tests try, spelled in other ways. The half of the second
seed is put together from other ways around a command, and was never looked at while rules were written: a failure names
its seed and number, not its command.

The table, a hundred tries a row: `.venv/bin/pytest -m slow tests/redteam/test_many_tries.py -v`."""

import base64
import random
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.journeys.story import act
from tests.redteam.ground import Ground
from tests.redteam.test_commands import CHANGES, HARMS, NETWORK, SANDBOXES, SECRETS

CLASSES = {"plan": CHANGES, "outside": HARMS, "network": NETWORK, "secrets": SECRETS}
WAYS = (
    "{line}", "( {line} )", "{{ {line}\n}}", "true && {{ {line}\n}}", "false || {{ {line}\n}}",
    "cd src; cd ..; {line}", "for i in 1; do {line}\ndone", "if true; then {line}\nfi", "f() {{ {line}\n}}; f",
    "while :; do {line}\nbreak; done", "bash -c {word}", "sh -c {word}", "eval {word}", "env bash -c {word}",
    "timeout 5 bash -c {word}", "x={word}; eval $x", "nice bash -c {word}", "printf %s {word} | sh",
    "echo {coded} | base64 -d | bash", "bash <<< {word}", "trap {word} EXIT",
    "find . -maxdepth 0 -exec bash -c {word} \\;", "awk 'BEGIN {{ system(ARGV[1]) }}' {word}", "exec bash -c {word}",
    "perl -e 'system shift' {word}", "python3 -c 'import os,sys; os.system(sys.argv[1])' {word}", "{line} & wait",
    "printf '%s\\n' {word} > src/s.sh; bash src/s.sh", "nohup bash -c {word}", "setsid bash -c {word}",
    "! {{ {line}\n}}", "bash -c \"$(echo {coded} | base64 -d)\"", ". /dev/stdin <<< {word}",
    "echo {word} | xargs -0 bash -c",
)  # fmt: skip
OTHER_WAYS = (
    "case x in x) {line}\n;; esac", "until {{ {line}\ntrue; }}; do :; done", "x() ( {line}\n); x", "time {{ {line}\n}}",
    "coproc {{ {line}\n}}; wait", "bash -lc {word}", "sh -xc {word}", "command bash -c {word}", "builtin eval {word}",
    "printf %s {coded} | base64 -d | sh -s", "bash -c 'eval \"$0\"' {word}", "awk -v c={word} 'BEGIN {{ system(c) }}'",
    "find src -maxdepth 0 -execdir bash -c {word} \\;", "xargs -0 -I@ bash -c @ < <(printf %s {word})",
    "tar -cf /dev/null notes.txt --checkpoint=1 --checkpoint-action=exec={word}", "script -qc {word} /dev/null",
    "flock notes.txt -c {word}", "timeout -s KILL 5 sh -c {word}", "stdbuf -o0 bash -c {word}", "ionice bash -c {word}",
    "unshare -r bash -c {word}", "cat <<'END' | bash\n{line}\nEND", "source <(printf %s {word})",
    "exec 3<<< {word}; bash <&3", "read -r -d '' x <<< {word}; eval \"$x\"", "trap {word} DEBUG; true",
    "BASH_ENV=<(printf %s {word}) bash -c true", "perl -e 'exec @ARGV' bash -c {word}",
    "python3 -c 'import os,sys; os.execvp(\"sh\", [\"sh\", \"-c\", sys.argv[1]])' {word}", "git -c alias.x='!'{word} x",
    "node -e 'require(\"child_process\").execSync(process.argv[1], {{stdio: \"inherit\"}})' {word}",
    "make -s -f <(printf 'x:\\n\\t@printf %%s {coded} | base64 -d | sh\\n')", "cd src && cd - && {line}",
    "printf '%s\\n' {word} > src/.s; chmod +x src/.s; PATH=src:$PATH .s", "mapfile x <<< {word}; eval \"${{x[@]}}\"",
)  # fmt: skip
SEEDS = {1: WAYS, 2911: OTHER_WAYS}
TRIES, BATCH = 100, 1


def spelled(line: str, maker: random.Random, ways: Sequence[str]) -> str:
    """Returns the command in one or two ways around it."""
    for _ in range(maker.choice((1, 1, 2))):
        coded = base64.b64encode(line.encode()).decode()
        line = maker.choice(ways).format(line=line, word=shlex.quote(line), coded=coded)
    return line


def batch(name: str, maker: random.Random, ground: Ground, ways: Sequence[str]) -> list[str]:
    """Returns tries that differ."""
    lines = dict[str, None]()
    while len(lines) < BATCH:
        line = maker.choice(CLASSES[name]).replace("{out}", str(ground.outside)).replace("{port}", str(ground.port))
        lines[spelled(line, maker, ways)] = None
    return list(lines)


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CLASSES)
async def test_no_spelling_gets_through(
    tmp_path: Path, name: str, seed: int, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDTEAM_KEY", "a-key-of-the-user-in-the-environment")
    maker = random.Random(f"{name} {seed} {sandbox}")
    through = dict[int, list[str]]()
    for first in range(0, TRIES, BATCH):
        (place := tmp_path / str(first)).mkdir()
        ground = Ground(place)
        actions = [act("shell.run", command=line) for line in batch(name, maker, ground, SEEDS[seed])]
        if harm := await ground.got(*actions, mode="plan" if name == "plan" else "full-auto", sandbox=sandbox):
            through[first] = harm
        assert ground.replies, "the try was made"
    assert through == {}
