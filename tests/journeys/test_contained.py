"""The mode `contained`: in a root of its own everything is done unasked, and elsewhere it is refused."""

import contextlib
import json
import shutil
import socket
import sys
from pathlib import Path

import pytest

from duckflow.errors import UsageError
from duckflow.safety.contained import in_reach, looks_contained, require_contained
from duckflow.state.question import Answer
from tests.cli.shell import Shell
from tests.journeys.container import SECRET, Container, package_index
from tests.journeys.story import Story, act, decide, respond

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="a root of its own needs bubblewrap")


def shell(command: str) -> dict[str, object]:
    return act("shell.run", command=command)


@needs_bubblewrap
def test_a_model_installs_edits_runs_and_ends_without_a_question(tmp_path: Path) -> None:
    container = Container(tmp_path)
    (container.app / "main.py").write_text("import ducklib\nprint(ducklib.say())\n")
    looks = 'env; cat /proc/$PPID/environ; echo "key: <$OPENAI_API_KEY>"'
    with package_index(tmp_path, "ducklib", "1.0", "def say():\n    return 'quack'\n") as index:
        install = f"python -m pip install --quiet --prefix /opt/site --index-url {index} ducklib"
        model = container.script(
            decide(shell(install), shell("(sleep 1; echo served > late.txt) > /dev/null 2>&1 &"), next_step="continue"),
            decide(
                act("file_ops.write_file", path="/etc/duck.conf", content="loud\n"),
                act("file_ops.edit_file", path="main.py", edits=[{"old": "say())", "new": "say() + '!')"}]),
                shell(looks),
                next_step="continue",
            ),
            decide(
                shell("PYTHONPATH=$(echo /opt/site/lib/python3*/site-packages) python main.py"),
                shell("sleep 1.2; cat late.txt"),
                next_step="continue",
            ),
            decide(shell("rm -rf /"), next_step="continue"),
            decide(shell("git push --force origin main"), next_step="continue"),
            decide(shell("echo done > end.txt"), respond("Done.")),
        )
        done = container.duckflow("--contained", "-m", model, "-p", "Make it quack.", "--output-format", "stream-json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stdout, done.stderr)
    told = json.dumps(lines)
    assert "quack!" in told and "served" in told, "the service outlives its command"
    assert SECRET not in told and "key: <>" in told
    assert "question" not in [line["type"] for line in lines], "nothing is asked"
    assert (container.etc / "duck.conf").read_text() == "loud\n"
    assert (container.app / "end.txt").exists(), "what is forbidden is left out, and the rest is done"
    assert (container.app / "main.py").read_text().endswith("say() + '!')\n")
    left_out = lines[-1]["left_out"]
    assert any("rm -rf /" in one for one in left_out) and any("--force" in one for one in left_out)
    # The record is there, and the folder can be taken back.
    assert "pip install" in container.duckflow("audit").stdout
    undone = container.duckflow("--contained", "-c", "-m", model, "-p", "/undo")
    assert undone.returncode == 0 and not (container.app / "end.txt").exists(), (undone.stdout, undone.stderr)
    assert (container.app / "main.py").read_text().endswith("say())\n")


@needs_bubblewrap
def test_it_is_refused_where_the_machine_is_no_container(tmp_path: Path) -> None:
    container = Container(tmp_path, marked=False)
    model = container.script(decide(shell("echo here > here.txt"), respond("Done.")))
    for flags in (["--contained"], ["--mode", "contained"]):
        refused = container.duckflow(*flags, "-m", model, "-p", "Go.")
        assert refused.returncode == 2 and "--yes-really" in refused.stderr, (refused.stdout, refused.stderr)
        assert not (container.app / "here.txt").exists()
    really = container.duckflow("--contained", "--yes-really", "-m", model, "-p", "Go.")
    assert really.returncode == 0 and (container.app / "here.txt").exists(), (really.stdout, really.stderr)
    inside = container.run(sys.executable, "-m", "duckflow.cli.sandboxes")
    assert inside.returncode == 0


@needs_bubblewrap
def test_a_home_as_work_folder_is_no_question_and_ssh_keys_are_told(tmp_path: Path) -> None:
    container = Container(tmp_path)
    model = container.script(decide(shell("pwd > where.txt"), respond("Done.")))
    done = container.duckflow("--contained", "-m", model, "-p", "Go.", folder="/home/duck")
    assert done.returncode == 0 and (container.home / "where.txt").read_text() == "/home/duck\n", done.stderr
    (container.home / ".ssh").mkdir()
    (container.home / ".ssh/known_hosts").write_text("host ssh-ed25519 AAAA\n")
    assert container.duckflow("--contained", "-m", model, "-p", "/status").returncode == 0
    (container.home / ".ssh/deploy").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    refused = container.duckflow("--contained", "-m", model, "-p", "Go.")
    assert refused.returncode == 2 and "~/.ssh" in refused.stderr


@needs_bubblewrap
def test_the_pacemaker_answers_itself_and_then_ends(tmp_path: Path) -> None:
    container = Container(tmp_path)
    (container.app / "a.txt").write_text("a\n")
    same = decide(act("file_ops.read_file", path="a.txt"), next_step="continue")
    done = container.duckflow("--contained", "-m", container.script(*[same] * 200), "-p", "Go.")
    assert done.returncode == 4, (done.stdout, done.stderr)
    audit = container.duckflow("audit", "--json").stdout
    assert audit.count("duck_call") >= 3
    assert audit.count('"replan"') >= 2


@pytest.mark.parametrize("sign", [".dockerenv", "run/.containerenv", "cgroup", "layers", "variable", "runner"])
def test_signs_of_a_container(tmp_path: Path, sign: str) -> None:
    for folder in ("run", "proc/1", "proc/self"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/1/cgroup").write_text("0::/init.scope\n")
    (tmp_path / "proc/self/mountinfo").write_text("29 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    environ: dict[str, str] = {"CI": "true", "GITHUB_ACTIONS": "true"}
    assert not looks_contained(environ, tmp_path)
    match sign:
        case "cgroup":
            (tmp_path / "proc/1/cgroup").write_text("0::/docker/0123\n")
        case "layers":
            (tmp_path / "proc/self/mountinfo").write_text("29 1 0:5 / / rw - overlay overlay rw,lowerdir=/a\n")
        case "variable":
            environ["container"] = "podman"
        case "runner":
            environ["RUNNER_ENVIRONMENT"] = "github-hosted"
        case _:
            (tmp_path / sign).touch()
    assert looks_contained(environ, tmp_path)
    require_contained(environ, tmp_path / "home", really=False, root=tmp_path)


@pytest.mark.parametrize(
    "place",
    [".aws/credentials", ".config/gcloud/access_tokens.db", ".kube/config", ".docker/config.json", ".netrc", "socket"]
    + ["agent", "token"],
)
def test_what_is_in_reach_is_named(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / ".dockerenv").touch()
    environ: dict[str, str] = {}
    require_contained(environ, home, really=False, root=tmp_path)
    path = home / place
    with socket.socket(socket.AF_UNIX) as listening:
        match place:
            case "socket":
                (tmp_path / "run").mkdir()
                with contextlib.chdir(tmp_path / "run"):
                    listening.bind("docker.sock")
            case "agent":
                environ["SSH_AUTH_SOCK"] = str(home)
            case "token":
                path = tmp_path / "run/secrets/kubernetes.io/serviceaccount/token"
                path.parent.mkdir(parents=True)
                path.write_text("ey")
            case _:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("key = 1\n")
        assert len(in_reach(environ, home, tmp_path)) == 1
        with pytest.raises(UsageError):
            require_contained(environ, home, really=False, root=tmp_path)
    require_contained(environ, home, really=True, root=tmp_path)


def test_nothing_in_the_folder_turns_it_on(tmp_path: Path) -> None:
    bare = Shell(tmp_path)
    (bare.work / ".duckflow").mkdir()
    (bare.work / ".duckflow/config.toml").write_text('[safety]\nmode = "contained"\n')
    refused = bare.run("-m", bare.script(), "-p", "Hello.")
    assert refused.returncode == 2 and "safety" in refused.stderr
    shutil.rmtree(bare.work / ".duckflow")
    commands = bare.work / ".claude/commands"
    commands.mkdir(parents=True)
    (commands / "go.md").write_text("---\nmode: contained\n---\nGo.\n")
    model = bare.script(decide(act("shell.run", command="touch /tmp/x", network=True), respond("Done.")))
    done = bare.run("--trust", "-m", model, "-p", "/go", "--output-format", "json")
    assert json.loads(done.stdout)["left_out"], done.stdout


async def test_it_cannot_be_chosen_later(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Hello."))], mode="ask")
    with pytest.raises(UsageError) as refused:
        story.chat.choices.change_mode("contained")
    assert refused.value.key == "contained.at_start"
    told = await story.chat.run_command("/mode contained")
    assert "duckflow --contained" in (told or "")
    assert story.chat.choices.mode == "ask"


async def test_a_duck_call_in_another_mode_still_waits_for_the_user(tmp_path: Path) -> None:
    same = decide(act("file_ops.list_files", path="."), next_step="continue")
    story = Story(tmp_path, [same] * 60, mode="full-auto")
    story.answers = [Answer(choice="stop")]
    assert await story.tell("Go.") == "pacemaker"
    assert len(story.duck_calls()) == 1
