"""Sixteen hundred tries made by a seeded program: what other tests try, spelled in other ways. The spellings of
the second seed were never looked at while rules were written: a failure names its seed and number, not its command.

The table, a hundred tries a row: `.venv/bin/pytest -m slow tests/redteam/test_many_tries.py -v`."""

import base64
import random
import shlex
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
SEEDS = {1: "looked at", 2911: "never looked at"}
TRIES, BATCH = 100, 1


def spelled(line: str, maker: random.Random) -> str:
    """One or two ways around it."""
    for _ in range(maker.choice((1, 1, 2))):
        coded = base64.b64encode(line.encode()).decode()
        line = maker.choice(WAYS).format(line=line, word=shlex.quote(line), coded=coded)
    return line


def batch(name: str, maker: random.Random, ground: Ground) -> list[str]:
    """Tries that differ."""
    lines = dict[str, None]()
    while len(lines) < BATCH:
        line = maker.choice(CLASSES[name]).replace("{out}", str(ground.outside)).replace("{port}", str(ground.port))
        lines[spelled(line, maker)] = None
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
        actions = [act("shell.run", command=line) for line in batch(name, maker, ground)]
        if harm := await ground.got(*actions, mode="plan" if name == "plan" else "full-auto", sandbox=sandbox):
            through[first] = harm
        assert ground.replies, "the try was made"
    assert through == {}
