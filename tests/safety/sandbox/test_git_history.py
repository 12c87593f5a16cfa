"""Whatever a command does in bubblewrap, undo brings back every commit, branch, tag, stash and staged file; and git
works there as it does outside."""

import hashlib
import shutil
import struct
import subprocess
import zlib
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest
from yard import Ran, Yard

from duckflow.errors import DuckflowError
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.undo import Undo
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import WorkAuthor

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

LOST = {
    "rm": "rm -rf .git",
    "python": "python3 -c \"import shutil; shutil.rmtree('.git', ignore_errors=True)\"",
    "find": "find .git -delete",
    "find files": "find . -type f -exec rm -f {} +",
    "moved": "mv .git gone || mv .git/objects .git/gone; rm -rf gone .git/gone",
    "moved within": "mv .git/objects/pack .git/objects/x; mv .git/objects/* .git/; mv .git/refs .git/y; rm -rf .git/y",
    "truncated": "chmod -R u+w .git; find .git -type f -exec truncate -s 0 {} +",
    "overwritten": "chmod -R u+w .git; for f in $(find .git/objects -type f); do echo x > $f; done",
    "replaced": "for f in .git/objects/??/*; do cp -f .git/HEAD new; mv -f new $f; done",
    "dd": "chmod -R u+w .git; for f in $(find .git/objects -type f); do dd if=/dev/zero of=$f bs=9 count=1; done",
    "pruned": "git stash clear; git update-ref -d refs/heads/side; git reset -q --hard HEAD~1; git tag -d old;"
    " git reflog expire --expire=now --all; git gc -q --prune=now",
    "repacked": "git update-ref -d refs/heads/side; git repack -adq; git prune --expire=now; git prune-packed",
    "refs": "rm -rf .git/refs .git/packed-refs .git/logs; echo ref: refs/heads/none > .git/HEAD",
    "index": "rm .git/index; git rm -rfq --cached . ; echo broken > .git/index",
    "orphan": "git checkout -q --orphan new; git rm -rfq . ; git branch -D main side;"
    " git commit -qm empty --allow-empty",
    "begun anew": "rm -rf .git; git init -q -b other; git commit -q --allow-empty -m other",
    "filtered": "git filter-branch -f --msg-filter 'echo changed' -- --all;"
    " git for-each-ref --format 'delete %(refname)'"
    " refs/original | git update-ref --stdin; git reflog expire --expire=now --all; git gc -q --prune=now",
    "alternates": "mkdir -p fake/objects/info fake/pack; echo $PWD/fake > .git/objects/info/alternates",
    "replace refs": "git replace $(git rev-parse HEAD) $(git rev-parse HEAD~1)",
    "lists of packs": "rm -f .git/objects/pack/*.idx",
    "lists cut off": "chmod -R u+w .git; for f in .git/objects/pack/*.idx; do head -c 1090 $f > x; cp x $f; done",
    "lists exchanged": "cd .git/objects/pack; chmod u+w * .; for f in *.idx; do echo x > y; mv -f y $f; done",
    "grafted": "git rev-parse HEAD > .git/shallow; git rev-parse HEAD > .git/info/grafts",
}
WORKS = {
    "add and commit": "echo new > n && git add n && git commit -qm new && test $(git rev-list --count HEAD) = 3",
    "amend": "git commit -q --amend -m other && test $(git rev-list --count HEAD) = 2",
    "stash": "echo x >> a && git stash -q && git stash pop -q && git stash -q && git stash drop -q",
    "rebase": "git checkout -q side && git rebase -q main && git log --format=%s -1 | grep side",
    "merge": "git merge -q --no-ff -m merged side && test -f s",
    "cherry-pick": "git cherry-pick side && test -f s",
    "tag and branch": "git tag -a v1 -m v1 && git branch x && git branch -D x && git tag -d v1",
    "gc": "git gc -q && git fsck --strict && git gc -q --aggressive --prune=now && git fsck",
    "repack": "git repack -adq && git repack -q -A -d --unpack-unreachable=now && git fsck",
    "pack-refs": "git pack-refs --all && git branch -D side && git for-each-ref",
    "fetch": "git init -q other && git -C other commit -q --allow-empty -m o && git fetch -q ./other &&"
    " git log -1 FETCH_HEAD",
    "large fetch": "git clone -q . c && cd c && for n in $(seq 40); do echo $n > $n; git add .;"
    " git commit -qm $n; done;"
    " cd .. && git fetch -q ./c HEAD && git fsck && git log FETCH_HEAD --format=%s -1 | grep 40",
    "worktree": "git worktree add -q tree side && cd tree && echo t > t && git add t && git commit -qm t && cd .. &&"
    " git worktree remove --force tree",
    "submodule": "git init -q lib && git -C lib commit -q --allow-empty -m l && git -c protocol.file.allow=always"
    " submodule --quiet add ./lib sub; git -C lib log -1",
    "clone": "git clone -q . copy && git -C copy fsck --strict && git -C copy log -1 &&"
    " test ! -e copy/.git/objects/info/alternates",
    "bisect": "git bisect start HEAD HEAD~1 && git bisect reset",
    "notes": "git notes add -m note && git notes show",
    "filters": "printf '*.up filter=up\\n' > .gitattributes && printf abc > f.up && git -c filter.up.clean='tr a-z A-Z'"
    " add f.up .gitattributes && git show :f.up | grep ABC",
    "commit-graph": "git commit-graph write --reachable && (git multi-pack-index write || true) && git log --oneline",
    "maintenance": "git maintenance run --task=gc --quiet && git fsck",
    "elsewhere": "git init -q /tmp/x && cd /tmp/x && git commit -q --allow-empty -m x && git gc -q && git fsck",
}
IDENTITY = {f"GIT_{role}_{what}": "duck@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Ground:
    """A repository in a yard, with undo around each command in the sandbox."""

    def __init__(self, place: Yard) -> None:
        self.place = place
        self.folder = place.folder
        self.sandbox: Sandbox = place.sandbox(SandboxSettings(kind="bubblewrap"))
        self.undo = Undo(Workspace(place.folder), place.top / "private/undo", UndoSettings(), "s")
        self._turn = 0

    def git(self, *arguments: str) -> str:
        environment = self.place.environment() | IDENTITY
        done = subprocess.run(["git", *arguments], cwd=self.folder, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode()

    def begin(self, packed: bool, *options: str) -> None:
        self.git("init", "-q", "-b", "main", *options)
        for name in ("a", "b"):
            (self.folder / name).write_text(f"{name}\n")
            self.git("add", name)
            self.git("commit", "-qm", name)
        self.git("checkout", "-qb", "side", "HEAD~1")
        (self.folder / "s").write_text("s\n")
        self.git("add", "s")
        self.git("commit", "-qm", "side")
        self.git("checkout", "-q", "main")
        self.git("tag", "old", "HEAD~1")
        (self.folder / "a").write_text("stashed\n")
        self.git("stash", "-q")
        if packed:
            self.git("gc", "-q")

    def history(self) -> str:
        """Returns what is checked out and staged, and every branch, tag and stash, with all their objects."""
        self.git("fsck", "--full", "--strict")
        questions = ("for-each-ref", "stash list", "log --all --format=%H%T%P", "ls-files --stage", "rev-parse HEAD")
        told = [self.git(*question.split()) for question in questions]
        return "".join([(self.folder / ".git/HEAD").read_text(), *told, self.git("diff", "HEAD~1", "HEAD")])

    async def shell(self, command: str) -> Ran:
        self._turn += 1
        named = "".join(f"export {name}={value};" for name, value in IDENTITY.items())
        async with self.undo.command(WorkAuthor(self._turn), text=command):
            return self.place.run(self.sandbox, named + command)


@pytest.fixture
async def ground(place: Yard) -> AsyncGenerator[Ground]:
    made = Ground(place)
    yield made
    await made.undo.close()
    made.sandbox.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("way", LOST)
async def test_no_command_loses_history_for_good(ground: Ground, way: str, packed: bool) -> None:
    ground.begin(packed)
    (ground.folder / "new").write_text("staged\n")
    ground.git("add", "new")
    before = ground.history()
    await ground.shell(LOST[way])
    try:
        outcome = await ground.undo.restore()
    except DuckflowError as nothing:
        # The sandbox stopped the command, so nothing happened.
        assert nothing.key == "undo.nothing"
    else:
        lost = {"undo.packs", "undo.git_gone", "undo.impossible"}
        assert not outcome.conflicts and not {phrase.key for phrase in outcome.not_covered} & lost
    assert ground.history() == before


@pytest.mark.one_in(2)
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("way", WORKS)
async def test_git_works_as_it_does_outside(ground: Ground, way: str, packed: bool) -> None:
    ground.begin(packed)
    ran = await ground.shell(f"set -e; {WORKS[way]}")
    assert (ran.code, ran.meddled) == (0, ()), ran.output
    ground.git("fsck", "--full", "--strict")


@pytest.mark.parametrize("option", ["--object-format=sha256", "--shared", "--template="])
async def test_unusual_repositories_work_and_come_back(ground: Ground, option: str) -> None:
    ground.begin(True, option)
    ground.git("update-index", "--split-index")
    before = ground.history()
    ran = await ground.shell("echo n > n && git add n && git commit -qm n && git gc -q && git fsck")
    assert ran.code == 0, ran.output
    await ground.shell("rm -rf .git")
    await ground.undo.restore()
    await ground.undo.restore()
    assert ground.history() == before


async def test_a_shallow_clone_and_one_with_alternates_keep_their_history(ground: Ground) -> None:
    ground.begin(True)
    for name, options in {"shallow": ["--depth=1"], "sharing": ["--shared"]}.items():
        ground.git("clone", "-q", *options, f"file://{ground.folder}" if name == "shallow" else ".", name)
        before = ground.git("-C", name, "log", "--format=%H")
        ran = await ground.shell(f"cd {name} && echo n > n && git add n && git commit -qm n && git gc -q && git fsck")
        assert ran.code == 0, ran.output
        await ground.shell(f"rm -rf {name}/.git")
        await ground.undo.restore()
        await ground.undo.restore()
        assert ground.git("-C", name, "log", "--format=%H") == before


async def test_a_folder_that_is_a_bare_repository_itself(ground: Ground) -> None:
    source = ground.place.top / "source"
    ground.git("init", "-q", "-b", "main", str(source))
    (source / "a").write_text("a\n")
    ground.git("-C", str(source), "add", "a")
    ground.git("-C", str(source), "commit", "-qm", "a")
    ground.git("-C", str(source), "gc", "-q")
    ground.git("clone", "-q", "--bare", "--no-local", str(source), ".")
    before = ground.git("log", "--format=%H")
    await ground.shell("git update-ref -d refs/heads/main; rm -rf objects refs HEAD packed-refs")
    await ground.undo.restore()
    assert ground.git("log", "--format=%H") == before
    ground.git("fsck", "--full", "--strict")


async def test_a_forged_pack_changes_no_history(ground: Ground) -> None:
    """Tries a list of contents that names an old object where the pack holds another one."""
    ground.begin(True)
    before = ground.history()
    blob = ground.git("rev-parse", "HEAD:a").strip()
    pack, index = forged(bytes.fromhex(blob), b"evil\n")
    for name, content in ((".pack", pack), (".idx", index)):
        (ground.folder / f"forged{name}").write_bytes(content)
    name = f"pack-{'f' * 40}"
    ran = await ground.shell(f"for e in pack idx; do cp forged.$e .git/objects/pack/{name}.$e; done; git show HEAD:a")
    assert ran.meddled == (f".git/objects/pack/{name}.idx",), ran.output
    assert ground.git("show", "HEAD:a") == "a\n"
    assert ground.history() == before


SCRIPTS = {
    "removed": "import shutil; shutil.rmtree('.git', ignore_errors=True)",
    "packs removed": "import glob, os; [os.unlink(path) for path in glob.glob('.git/objects/pack/*')]",
    "cut off": "import glob, os; [(os.chmod(p, 0o644), os.truncate(p, 9)) for p in glob.glob('.git/objects/pack/*')]",
    "moved away": "import os; os.rename('.git/objects/pack', 'away')",
    "a folder in its place": "import os; os.rename('.git', 'gone'); os.makedirs('.git/objects/pack')",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", SCRIPTS)
async def test_a_command_that_does_not_name_git_sees_the_packs_read_only(ground: Ground, way: str) -> None:
    ground.begin(True)
    (ground.folder / "lose.py").write_text(SCRIPTS[way])
    packs = ground.folder / ".git/objects/pack"
    before, there = ground.history(), {path.name for path in packs.iterdir()}
    await ground.shell("python3 lose.py")
    assert {path.name for path in packs.iterdir()} == there
    with suppress(DuckflowError):
        await ground.undo.restore()
    assert ground.history() == before


async def test_no_keep_file_of_duckflow_stays_beside_the_packs(ground: Ground) -> None:
    ground.begin(True)
    packs = ground.folder / ".git/objects/pack"
    there = {path.name for path in packs.iterdir()}
    await ground.shell("git status")
    assert any(path.suffix == ".keep" for path in packs.iterdir())
    ground.sandbox.close()
    assert {path.name for path in packs.iterdir()} == there


def forged(old: bytes, content: bytes) -> tuple[bytes, bytes]:
    """Makes a pack with one blob, and a list of contents that gives it the name of another object."""
    size = len(content)
    entry = bytes([0x30 | size]) + zlib.compress(content)
    pack = b"PACK" + struct.pack(">II", 2, 1) + entry
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    fan = b"".join(struct.pack(">I", 1 if first >= old[0] else 0) for first in range(256))
    index = b"\377tOc" + struct.pack(">I", 2) + fan + old + struct.pack(">II", zlib.crc32(entry), 12) + pack[-20:]
    return pack, index + hashlib.sha1(index, usedforsecurity=False).digest()
