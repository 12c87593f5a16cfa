"""Ways around the cover of secret files: too many of them, folders nobody looks into, entries of git that were forged,
folders that are moved or shut, times that are set back, and the repository around the work folder."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.secret_index import SecretIndex, secret_index
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import PLAIN_SECRET
from tests.redteam.test_secret_files import project, run, sent

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
READ = "grep -rah PASSWORD . | rev; find . -name '*.env' -o -name '*.t?t' -o -name '*.pe?' | xargs rev"
HIDDEN_IN = [
    ".tox/py311", "__pycache__", ".svn", ".hg", ".venv", "venv/lib", "node_modules", "node_modules/a/b",
    "site-packages", ".venv/lib/python3.11/site-packages/pkg", ".git/info", "sub/.git", "vendor", "build", "dist",
    ".cache", "a/b/c/d/e/f", ".nox", "target/debug", "Pods", "objects", "refs/logs",
    ".git/logs", ".git/logs/refs/heads", ".git/x/logs", ".git/modules/m/logs/deep", ".git/refs/heads", ".git/y/objects",
]  # fmt: skip
MOVES = [
    ("backend", ["mv backend site-packages"]),
    ("backend", ["mv backend node_modules"]),
    ("backend", ["mkdir -p node_modules/a; mv backend node_modules/a/"]),
    ("backend", ["mv backend .git/objects/zz"]),
    ("backend/conf", ["mv backend .hg; mkdir -p .hg/store; mv .hg/conf .hg/store/"]),
    ("secrets", ["mv secrets plain"]),
    (".aws/deep", ["mv .aws plain"]),
    ("a/secrets/b", ["mv a/secrets/b out"]),
    ("backend", ["cp -rl backend copy || cp -r backend copy"]),
    ("backend", ["ln -s backend/.env plain.txt"]),
    ("backend", ["mkdir x; touch x/HEAD; mkdir x/refs; mv backend x/objects"]),
    ("backend", ["chmod 000 backend", "chmod 755 backend; rev backend/.e*"]),
    ("backend", ["chmod 111 backend", "chmod 755 backend; rev backend/.e*"]),
    ("backend", ["chmod 444 backend", "chmod 755 backend; rev backend/.e*"]),
    ("backend", ['python3 -c \'import os; os.rename("backend", "__pycache__")\'']),
    ("backend", ["git mv backend plain; mv backend plain"]),
    ("backend", ["git stash -u; git stash show -p --include-untracked | rev"]),
    ("backend", ["git clean -fdx; git worktree add ../w; git worktree add w"]),
]
IN_PACKAGES = [
    "mv b c; ln -s ../.. b",
    "mv b c; ln -s c b",
    "mv b c; ln -s {work}/node_modules/a/c b",
    "mv b c; ln -s /oldroot{work}/node_modules/a/c b",
    "mv b c; mkdir b; echo PASSWORD=x > b/.env",
    "mv b ../z/y/b; mkdir b; echo PASSWORD=x > b/.env",
    "mv b ../../lib/site-packages/p/q/b",
    "mv b ../../lib/site-packages/p/q/b; ln -s ../.. b",
]
"""Ways to move a secret that lies deep among installed packages, where not every folder is looked at before each
command, while something else takes its old place."""
FORGED = [
    "git update-index --add --cacheinfo 100644,{blob},{path}",
    "git update-index --add --cacheinfo 100644,{blob},{path}; git commit -qm x",
    "printf '100644 {blob}\\t{path}\\n' | git update-index --index-info",
    "git update-index --add --cacheinfo 100644,{blob},{path}; git update-index --assume-unchanged {path}",
    "git update-index --add --cacheinfo 100644,{blob},{path}; git update-index --skip-worktree {path}",
    "rm -rf .git/index; git update-index --add --cacheinfo 100644,{blob},{path}",
    "git add -f {path}; git commit -qm x",
]


def hide_at(work: Path, name: str, file: str = ".env") -> Path:
    (work / name).mkdir(parents=True, exist_ok=True)
    path = work / name / file
    path.write_text(f"PASSWORD={PLAIN_SECRET}\n")
    return path


def git(folder: Path, *words: str) -> str:
    call = ["git", "-c", "user.name=d", "-c", "user.email=d@p", "-C", str(folder), *words]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def only(work: Path) -> None:
    """Removes the secret files that `project` has made."""
    for name in (".env", "conf/database.key"):
        (work / name).unlink()


def leaks(story: Story) -> bool:
    text = sent(story)
    return PLAIN_SECRET[::-1] in text or PLAIN_SECRET in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", HIDDEN_IN)
async def test_no_folder_is_left_out(tmp_path: Path, place: str) -> None:
    work = project(tmp_path).work
    only(work)
    hide_at(work, place)
    story = await run(tmp_path, READ)
    assert "exit code" in story.all(ActionFinished)[0].result.for_model
    assert not leaks(story)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", ["rev {}", "cat {} | rev > x; cat x"])
@pytest.mark.parametrize("name", ["plain.txt", "src/plain.py", "a/b/c/notes", ".cache/x", "README.md", "build/out.bin"])
async def test_another_name_of_a_secret_file_is_covered_too(tmp_path: Path, name: str, way: str) -> None:
    """A hard link has no name that tells a secret."""
    work = project(tmp_path).work
    only(work)
    hide_at(work, "conf.d")
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    (work / name).hardlink_to(work / "conf.d/.env")
    story = await run(tmp_path, way.format(name))
    assert "exit code" in story.all(ActionFinished)[0].result.for_model
    assert not leaks(story)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("place", "commands"), MOVES)
async def test_no_move_takes_a_secret_out_of_sight(tmp_path: Path, place: str, commands: list[str]) -> None:
    work = project(tmp_path).work
    only(work)
    hide_at(work, place)
    hide_at(work, place, "notes.txt" if "secrets" in place or "aws" in place else ".env")
    story = await run(tmp_path, *commands, READ)
    assert not leaks(story)
    await story.close()
    secret_index.cache_clear()
    assert not leaks(await run(tmp_path, READ))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moving", IN_PACKAGES)
async def test_what_stands_in_its_place_among_packages_uncovers_nothing(tmp_path: Path, moving: str) -> None:
    work = project(tmp_path).work
    (work / ".env").write_text("PORT=80\n")
    for folder in ("node_modules/z/y", "lib/site-packages/p/q", "../made"):
        (work / folder).mkdir(parents=True)
    hide_at(work, "node_modules/a/b")
    story = await run(tmp_path, "true", f"cd node_modules/a; {moving.format(work=work)}", READ, READ)
    assert not leaks(story)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", ["{made}/new", "{made}", "../../../../../../../../oldroot{made}/deep/er", "{work}"])
@pytest.mark.parametrize("folder", ["node_modules/a", "backend"])
async def test_nothing_is_made_outside_by_a_link_on_the_way_to_a_cover(
    tmp_path: Path, folder: str, target: str
) -> None:
    work = project(tmp_path).work
    (work.parent / "made").mkdir()
    hide_at(work, f"{folder}/b")
    link = target.format(made=f"/oldroot{work.parent}/made", work=f"/oldroot{work}")
    story = await run(tmp_path, "true", f"cd {folder}; mv b c || mv b/.env c; rm -rf b; ln -s {link} b", "true", READ)
    assert not leaks(story)
    assert not list((work.parent / "made").iterdir())


@pytest.mark.parametrize("branch", ["x.env", "id_rsa", "a/prod.key", ".env.d/x", "secrets/y"])
async def test_a_branch_with_a_secret_name_stays_readable(tmp_path: Path, branch: str) -> None:
    work = project(tmp_path).work
    git(work, "branch", branch.replace("/.", "/").lstrip("."))
    index = SecretIndex(work)
    assert not [path for path in index.look().paths if path.startswith(".git/")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["plan", "full-auto"])
@pytest.mark.parametrize("beside", [".", "backend", "zzz"])
async def test_decoys_do_not_uncover_the_real_one(tmp_path: Path, beside: str, mode: str) -> None:
    work = project(tmp_path).work
    (work / "backend").mkdir()
    (work / beside).mkdir(exist_ok=True)
    for number in range(201):
        (work / beside / f"{number}.pem").write_text("PASSWORD=nothing\n")
    tries = [decide(act("shell.run", command="grep -rh PASSWORD . | rev"), next_step="continue")]
    done = decide(respond("done"), step="PLANNING")
    story = Story(tmp_path, [*tries, done, done], mode=mode, settings={"sandbox": {"kind": "bubblewrap"}})
    await story.tell("go on")
    assert not leaks(story)
    assert "secrets=true" in story.all(ActionFinished)[0].result.for_model


async def test_decoys_made_meanwhile_do_not_either(tmp_path: Path) -> None:
    project(tmp_path)
    decoys = "for i in $(seq 300); do echo x > $i.pem; done"
    story = await run(tmp_path, decoys, READ, f"rm -f *.pem; {READ}")
    assert not leaks(story)


async def test_many_tracked_ones_cost_no_command(tmp_path: Path) -> None:
    work = project(tmp_path).work
    for number in range(250):
        (work / f"{number}.pem").write_text(f"test data {number}\n")
    git(work, "add", "*.pem")
    story = await run(tmp_path, "cat 24?.p* | wc -l; rev .e*")
    assert "\n10" in story.all(ActionFinished)[0].result.for_model
    assert not leaks(story)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("path", [".env", "conf/database.key"])
@pytest.mark.parametrize("forged", FORGED)
async def test_a_forged_entry_of_git_uncovers_nothing_later(tmp_path: Path, forged: str, path: str) -> None:
    work = project(tmp_path).work
    blob = git(work, "rev-parse", "HEAD:test.pem")
    story = await run(tmp_path, forged.format(blob=blob, path=path), READ)
    await story.close()
    secret_index.cache_clear()
    again = await run(tmp_path, f"{READ}; rev .e*; rev conf/*")
    assert not leaks(story)
    assert not leaks(again)


async def test_an_entry_forged_before_the_file_is_made_counts_for_nothing(tmp_path: Path) -> None:
    work = project(tmp_path).work
    blob = git(work, "rev-parse", "HEAD:test.pem")
    story = await run(tmp_path, f"git update-index --add --cacheinfo 100644,{blob},prod.env")
    await story.close()
    secret_index.cache_clear()
    (work / "prod.env").write_text(f"PASSWORD={PLAIN_SECRET}\n")
    assert not leaks(await run(tmp_path, f"{READ}; rev prod.e*"))


async def test_a_nested_repository_that_a_command_made_is_not_believed(tmp_path: Path) -> None:
    work = project(tmp_path).work
    hide_at(work, "backend")
    forged = "cd backend; git init -q; touch x; b=$(git hash-object -w x); "
    story = await run(tmp_path, f"{forged} git update-index --add --cacheinfo 100644,$b,.env")
    await story.close()
    record = next(tmp_path.rglob("tracked-secrets.json"))
    covered = SecretIndex(work / "backend").covered(record)
    assert [secret.path.name for secret in covered.secrets] == [".env"]


async def test_what_the_user_commits_is_there_for_commands(tmp_path: Path) -> None:
    work = project(tmp_path).work
    story = await run(tmp_path, "rev conf/*")
    await story.close()
    git(work, "add", "conf/database.key")
    secret_index.cache_clear()
    story = await run(tmp_path, "rev con*/*.k*", "echo changed >> conf/database.key; wc -l conf/*.k*")
    assert PLAIN_SECRET[::-1] in sent(story)
    assert story.all(ActionFinished)[1].result.for_model.count("1 conf/database.key") == 1


async def test_the_repository_around_the_work_folder_is_covered_too(tmp_path: Path) -> None:
    hide_at(tmp_path, "conf")
    hide_at(tmp_path, ".")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/peek.py").write_text("print(open('../.env').read()[::-1], open('../conf/.env').read()[::-1])\n")
    (tmp_path / "README").write_text("around\n")
    for words in (["init", "-q"], ["add", "README"], ["commit", "-qm", "start"]):
        git(tmp_path, *words)
    story = await run(tmp_path, "python3 peek.py", "cat ../READM?; cd ..; rev .e* con*/*")
    assert not leaks(story)


async def test_moving_a_folder_with_a_secret_by_a_file_tool_asks(tmp_path: Path) -> None:
    work = project(tmp_path).work
    hide_at(work, "secrets", "notes.txt")
    done = decide(respond("done"), step="PLANNING")
    moves = [decide(act("file_ops.move_file", source="secrets", target="plain"), next_step="continue")]
    story = Story(tmp_path, [*moves, done, done], mode="full-auto", settings={"sandbox": {"kind": "bubblewrap"}})
    await story.tell("go on")
    assert len(story.questions) == 1
    assert (work / "secrets/notes.txt").exists()


def test_a_time_that_is_set_back_hides_no_change(tmp_path: Path) -> None:
    (tmp_path / "backend").mkdir()
    index = SecretIndex(tmp_path)
    old = (1_700_000_000, 1_700_000_000)
    os.utime(tmp_path / "backend", old)
    assert index.look().paths == ()
    (tmp_path / "backend/.env").write_text("A=1\n")
    os.utime(tmp_path / "backend", old)
    assert index.look().paths == ("backend/.env",)


@pytest.mark.parametrize("place", ["node_modules", "data"])
def test_more_folders_than_can_be_looked_at_is_told(tmp_path: Path, place: str) -> None:
    for number in range(30):
        (tmp_path / place / f"p{number}/lib").mkdir(parents=True)
    assert SecretIndex(tmp_path).covered().whole
    assert not SecretIndex(tmp_path, most_folders=20).covered().whole


async def test_a_hook_that_cannot_be_started_for_decoys_asks(tmp_path: Path) -> None:
    from duckflow.extensions.hook_files import Hook
    from duckflow.extensions.hook_run import run_hook
    from duckflow.programs.launch import Launch
    from duckflow.safety.sandbox.choose import choose
    from duckflow.safety.sandbox.settings import SandboxSettings

    for number in range(201):
        (tmp_path / f"{number}.pem").write_text("x")
    sandbox = choose(SandboxSettings(kind="bubblewrap"), tmp_path)

    async def launch() -> Launch:
        return sandbox.confine(Launch(("/bin/true",), tmp_path, {}))

    hook = Hook("PreToolUse", "", "true", None, 5.0, "", tmp_path)
    reply = await run_hook(hook, {}, launch)
    sandbox.close()
    assert reply.decision == "ask"
    assert reply.problem
