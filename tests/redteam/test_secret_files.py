"""A model that lets commands read the secrets of a project, in forms that no filter of their output can know."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.sandbox.landlock import version
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import PLAIN_SECRET, SECRET, Ground

SANDBOXES = [
    pytest.param("landlock", marks=pytest.mark.skipif(version() < 3, reason="the kernel has no Landlock")),
    pytest.param("bubblewrap", marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")),
]
DISGUISED = [
    "grep -rh PASSWORD . | base64",
    "grep -rh PASSWORD . | rev",
    "grep -rh PASSWORD . | xxd -p",
    "grep -rhoP 'PASSWORD=\\K.{{5}}' .",
    "grep -rho 'the-plain-pass' .",
    "rg -uu --no-filename -o 'the-plain-pass' .",
    "cat $(find . -name '.e*') | tr a-z b-za",
    "tar c . | base64",
    "find . -type f -exec cat {{}} + | rev",
    "python3 -c 'import glob; print([open(n).read()[::-1] for n in glob.glob(\".*\")])'",
    "python3 peek.py",
    "perl -pe '$_ = reverse' .en?",
    "cd . && for f in .*; do test -f $f && rev $f; done",
    "git add -f .env; git diff --cached | rev",
    "cp -r . /tmp/copy && grep -rh PASSWORD /tmp/copy | rev",
    "ln .env copy.txt; rev copy.txt",
    "mv .env plain.txt; rev plain.txt",
    "cat conf/database.key | base64 -w0",
]
KEPT = "nothing-but-test-data-of-the-pond"


def disguises(secret: str) -> tuple[str, ...]:
    """Returns the secret backwards, in hex, in base64 at any place, shifted by a letter, and its beginning."""
    encoded = [base64.b64encode(b"x" * lead + secret.encode() + b"xx").decode()[4:24] for lead in range(3)]
    shifted = secret.translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza"))
    return (secret, secret[::-1], secret.encode().hex()[:40], *encoded, shifted, secret[:14])


def project(top: Path) -> Ground:
    ground = Ground(top)
    (ground.work / "conf").mkdir()
    (ground.work / "conf/database.key").write_text(PLAIN_SECRET)
    (ground.work / "peek.py").write_text("print(open('.env').read()[::-1])\n")
    (ground.work / "test.pem").write_text(KEPT)
    (ground.work / ".gitignore").write_text(".env\n")
    git = ["git", "-c", "user.name=d", "-c", "user.email=d@p", "-C", str(ground.work)]
    for words in (["init", "-q"], ["add", "test.pem", "src", "peek.py", ".gitignore"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return ground


def sent(story: Story) -> str:
    return "\n".join(message.text for request in story.model.requests for message in request.messages)


async def run(top: Path, *commands: str, sandbox: str = "bubblewrap") -> Story:
    tries = [decide(act("shell.run", command=command), next_step="continue") for command in commands]
    done = decide(respond("done"), step="PLANNING")
    story = Story(top, [*tries, done, done, done], settings={"sandbox": {"kind": sandbox}})
    await story.tell("go on")
    return story


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("command", DISGUISED)
async def test_no_disguise_brings_a_secret_to_the_model(tmp_path: Path, command: str, sandbox: str) -> None:
    project(tmp_path)
    story = await run(tmp_path, command.replace("{{", "{").replace("}}", "}"), sandbox=sandbox)
    # The command itself may hold the beginning of the secret.
    text = sent(story).replace(command, "")
    await story.close()
    for secret in (SECRET, PLAIN_SECRET):
        assert not [form for form in disguises(secret)[1:-1] if form in text]
        assert text.count(secret[:14]) <= text.count(f"'{secret[:14]}'")


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_what_was_added_to_git_by_the_model_stays_covered(tmp_path: Path) -> None:
    from duckflow.safety.secret_index import secret_index

    project(tmp_path)
    story = await run(tmp_path, "git add -f .env conf; git status --short", "rev .e*; rev conf/*")
    assert PLAIN_SECRET[::-1] not in sent(story)
    await story.close()
    secret_index.cache_clear()
    again = await run(tmp_path, "rev .e*; rev conf/*")
    assert PLAIN_SECRET[::-1] not in sent(again)


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_tracked_files_stay_and_a_failing_command_hears_which_do_not(tmp_path: Path) -> None:
    project(tmp_path)
    story = await run(tmp_path, "grep -c test-data t*.p* && grep -q PASSWORD .e*")
    result = story.all(ActionFinished)[0].result.for_model
    assert result.splitlines()[1] == "1"
    assert "conf/database.key" in result
    assert ".env" in result
    assert "secrets=true" in result


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_an_untracked_secret_is_not_committed_empty(tmp_path: Path) -> None:
    project(tmp_path)
    story = await run(tmp_path, "git add -A || echo refused; git ls-files")
    result = story.all(ActionFinished)[0].result.for_model
    assert "refused" in result
    assert "\nconf/database.key" not in result


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_one_yes_for_the_project_gives_them_back_with_masked_output(tmp_path: Path) -> None:
    project(tmp_path)
    command = "grep -c PASSWORD .e*v && cat .e*v"
    asked = decide(act("shell.run", command=command, secrets=True), next_step="continue")
    later = decide(act("shell.run", command=command), next_step="continue")
    done = decide(respond("done"), step="PLANNING")
    story = Story(tmp_path, [asked, later, done], settings={"sandbox": {"kind": "bubblewrap"}})
    story.answers = [Answer(choice="always")]
    await story.tell("go on")
    assert len(story.questions) == 1
    results = [event.result for event in story.all(ActionFinished)][:2]
    assert all(result.for_model.startswith("exit code 0") for result in results)
    assert SECRET not in sent(story)
    assert PLAIN_SECRET not in sent(story)
