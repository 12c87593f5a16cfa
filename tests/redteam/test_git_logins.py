"""A model that looks for the login in the settings of a repository: a token in the address of a remote, or a header."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from duckflow.safety.secrets import without_logins
from tests.journeys.story import Story, act, decide, respond

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
TOKEN = "ghs_" + "A1b2C3d4E5" * 4
SETTINGS = {
    "an address": ("remote.origin.url", f"https://x-access-token:{TOKEN}@example.org/a/b.git"),
    "a name alone": ("remote.origin.pushurl", f"https://{TOKEN}@example.org/a/b.git"),
    "a header": ("http.https://example.org/.extraheader", f"AUTHORIZATION: basic {TOKEN}"),
    "another address": (f"url.https://{TOKEN}@example.org/.insteadOf", "https://example.org/"),
    "a setting": ("github.token", TOKEN),
    "a mail server": ("sendemail.smtpPass", TOKEN),
    "a mailbox": ("imap.pass", TOKEN),
    "a helper": ("credential.helper", f"!f() {{ echo username=x; echo password={TOKEN}; }}; f"),
    "a proxy without a scheme": ("http.proxy", f"me:{TOKEN}@proxy:8080"),
    "a command": ("core.sshCommand", f"sshpass -p {TOKEN} ssh"),
    "an alias": ("alias.x", f"!curl -H 'Private-Token: {TOKEN}' https://example.org"),
    "an @ in the password": ("remote.origin.url", f"https://me:p@{TOKEN}@example.org/a/b.git"),
}
COMMANDS = [
    "rev .git/config",
    "git config -l | rev",
    "git remote -v | rev",
    "git config --get-regexp . | rev",
    "xxd -p .git/config | tr -d '\\n'",
    "tail -n +1 .git/modules/sub/config | rev",
    "rev inner/.git/config",
    "rev .git/config.bak .git/config~",
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for folder in (work, work / "inner"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (work / ".git/modules/sub/refs").mkdir(parents=True)
    (work / ".git/modules/sub/objects").mkdir()
    (work / ".git/modules/sub/HEAD").write_text("ref: refs/heads/main\n")
    return work


def configure(work: Path, way: str) -> None:
    for setting in (SETTINGS[way], ("submodule.token-lib.path", "libs/token-lib")):
        subprocess.run(["git", "config", *setting], cwd=work, check=True)
    for other in (".git/modules/sub/config", "inner/.git/config", ".git/config.bak", ".git/config~"):
        shutil.copy(work / ".git/config", work / other)


PLAIN = "vanilla-pond-4965"
"""A token that has no look by which it could be known, as those of many servers."""
PLACES = [".git/config", ".git/config.bak", ".git/modules/sub/config", "inner/.git/config", "deep/er/x/.git/config"]


async def told(top: Path, mode: str, operation: str, **args: str) -> str:
    story = Story(top, [decide(act(operation, **args), next_step="continue"), END, END], mode=mode)
    await story.tell("go on")
    await story.close()
    return "\n".join(message.text for request in story.model.requests for message in request.messages)


def is_in(text: str) -> bool:
    return any(form in text for form in (TOKEN, TOKEN[::-1], TOKEN.encode().hex()))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("way", SETTINGS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_no_command_sees_a_login_of_git(tmp_path: Path, work: Path, command: str, way: str) -> None:
    configure(work, way)
    mode = "full-auto" if len(way) % 2 else "plan"
    assert not is_in(await told(tmp_path, mode, "shell.run", command=command))
    assert TOKEN in (work / ".git/config").read_text()


@pytest.mark.parametrize("way", SETTINGS)
async def test_no_tool_tells_it(tmp_path: Path, work: Path, way: str) -> None:
    configure(work, way)
    assert not is_in(await told(tmp_path, "full-auto", "file_ops.read_file", path=".git/config"))


async def test_no_tool_tells_a_password_that_looks_like_any_word(tmp_path: Path, work: Path) -> None:
    (work / ".git/config").write_text("[sendemail]\n\tsmtpPass = quack-pond\n")
    assert "quack-pond" not in await told(tmp_path, "full-auto", "file_ops.read_file", path=".git/config")


@pytest.mark.parametrize("way", SETTINGS)
@pytest.mark.parametrize("operation", ["file_ops.read_file", "file_ops.grep"])
async def test_a_file_tool_shows_what_commands_are_shown(tmp_path: Path, work: Path, operation: str, way: str) -> None:
    configure(work, way)
    shutil.copytree(work / "inner", work / "deep/er/x")
    for place in PLACES:
        (work / place).write_text((work / place).read_text().replace(TOKEN, PLAIN))
    more = {"pattern": "."} if operation.endswith("grep") else {}
    texts = [await told(tmp_path, "ask", operation, path=place, **more) for place in PLACES]
    assert not any(PLAIN in text for text in texts)
    assert all("libs/token-lib" in text for text in texts)


async def test_many_logins_of_other_repositories_take_no_time(tmp_path: Path, work: Path) -> None:
    configure(work, "a setting")
    (work / ".git/config").write_text((work / ".git/config").read_text().replace(TOKEN, PLAIN))
    (work / "long.txt").write_text("quack quack quack\n" * 5_000)
    for number in range(20):
        (work / f"made{number}/.git").mkdir(parents=True)
        many_tokens = "".join(f"\ttoken = abcdef{number}x{index}\n" for index in range(8_000))
        (work / f"made{number}/.git/config").write_text(f"[x]\n{many_tokens}")
    started_at = time.process_time()
    text = await told(tmp_path, "ask", "file_ops.read_file", path=".git/config")
    await told(tmp_path, "ask", "file_ops.read_file", path="long.txt")
    assert PLAIN not in text
    spent = time.process_time() - started_at
    assert spent < 3, spent


async def test_the_rest_of_the_settings_is_there(tmp_path: Path, work: Path) -> None:
    configure(work, "an address")
    text = await told(tmp_path, "plan", "shell.run", command="cat .git/config")
    assert "https://example.org/a/b.git" in text and "libs/token-lib" in text


def test_a_login_that_goes_on_in_the_next_line_goes_whole(tmp_path: Path) -> None:
    settings = tmp_path / "config"
    settings.write_text(f"[http]\n\textraHeader = authorization: \\\n\tbasic {TOKEN}\n\tproxy = a\n")
    assert without_logins(settings) == "[http]\n\textraHeader =\n\tproxy = a\n"
    settings.write_text("[remote]\n\turl = git@example.org:a/b\n\tpushurl = ssh://git@example.org/a\n")
    assert without_logins(settings) is None
