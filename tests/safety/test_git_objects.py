"""Contents are read from a repository's files without git: loose, packed, as differences to others."""

import hashlib
import random
import subprocess
from pathlib import Path

import pytest

from duckflow.safety.git_objects import GitObjects


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()


@pytest.fixture
def contents(tmp_path: Path) -> dict[str, bytes]:
    """By name, as git has them: a long file that changes little by little, others of many sizes."""
    git(tmp_path, "init", "-q")
    chance = random.Random(1)
    lines = [f"line {number} {chance.random()}\n" for number in range(2000)]
    made: list[bytes] = [b"", b"x", bytes(range(256)) * 300, chance.randbytes(200_000)]
    for number in range(30):
        lines[chance.randrange(2000)] = f"changed {number}\n"
        del lines[chance.randrange(1000) :][:1]
        made.append("".join(lines).encode())
    for number, data in enumerate(made):
        (tmp_path / f"{number}.txt").write_bytes(data)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    return {hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(): data for data in made}


@pytest.mark.parametrize(
    "packing", ["", "gc -q", "repack -adfq --depth=50", "-c repack.useDeltaBaseOffset=false gc -q"]
)
def test_every_content_is_read(tmp_path: Path, contents: dict[str, bytes], packing: str) -> None:
    if packing:
        git(tmp_path, *packing.split(" "))
    objects = GitObjects(tmp_path / ".git/objects")
    for name, data in contents.items():
        assert objects.has(name)
        assert objects.read(name) == data
    assert not objects.has("0" * 40)
    assert objects.read("f" * 40) is None
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert objects.read(commit) is None, "no content of a file"


def test_new_packs_are_found(tmp_path: Path, contents: dict[str, bytes]) -> None:
    objects = GitObjects(tmp_path / ".git/objects")
    git(tmp_path, "gc", "-q")
    assert objects.refresh()
    assert not objects.refresh()
    assert all(objects.read(name) == data for name, data in contents.items())


def test_damage_is_no_content(tmp_path: Path, contents: dict[str, bytes]) -> None:
    git(tmp_path, "gc", "-q")
    (pack,) = (tmp_path / ".git/objects/pack").glob("*.pack")
    pack.chmod(0o644)
    whole = pack.read_bytes()
    chance = random.Random(2)
    for _ in range(200):
        place = chance.randrange(len(whole))
        pack.write_bytes(whole[:place] + chance.randbytes(20) + whole[place + 20 :])
        objects = GitObjects(tmp_path / ".git/objects")
        for name in contents:
            objects.read(name)
    pack.write_bytes(whole[:100])
    assert all(GitObjects(tmp_path / ".git/objects").read(name) is None for name in list(contents)[-5:])
