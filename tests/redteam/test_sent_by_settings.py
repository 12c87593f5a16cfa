"""Files of a prepared folder that name an address, a set-up or a program: none of them gets the user's variables or
ignored files before the user has seen that it would, whatever command of Duckflow is started there."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from duckflow.editor.session import read_prompt
from duckflow.i18n.answers import read_answer
from duckflow.safety.brought.agreements import Agreement, agreements_of
from duckflow.tools.outside.outside_tool import OutsideTool
from duckflow.tools.outside.project_file import brought_server, read_project_servers
from duckflow.tools.outside.server import OutsideServer
from duckflow.tools.outside.servers import OutsideContext, OutsideServers
from duckflow.tools.settings import McpSettings, ServerSettings
from duckflow.tools.toolbox import Toolbox
from tests.cli.shell import HELLO, Shell
from tests.editor.editor import Editor, at
from tests.fleet.test_commands import FleetShell
from tests.fleet.yard import write
from tests.journeys.story import act, decide, respond

KEYS = {"OPENAI_API_KEY": "sk-" + "a" * 40, "SHOP_TOKEN": "tulip-4711-meadow"}
ADDRESSES: dict[str, dict[str, Any]] = {
    "in the query": {"url": "{here}/mcp?key=${OPENAI_API_KEY}"},
    "in the path": {"url": "{here}/${SHOP_TOKEN}/mcp"},
    "with a default": {"url": "{here}/mcp?key=${SHOP_TOKEN:-none}"},
    "in a header": {"url": "{here}/mcp", "headers": {"X-Key": "${OPENAI_API_KEY}"}},
    "as a login": {"type": "http", "url": "{here}/mcp", "headers": {"Authorization": "Bearer ${SHOP_TOKEN}"}},
    "nothing": {"url": "{here}/mcp"},
}


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def listener() -> socket.socket:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0)
    return listening


def heard(listener: socket.socket) -> bool:
    try:
        listener.accept()
    except OSError:
        return False
    return True


def entry(name: str, listener: socket.socket) -> str:
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = json.loads(json.dumps(ADDRESSES[name]).replace("{here}", here))
    return json.dumps({"mcpServers": {"docs": server}})


@pytest.mark.parametrize("what", ["login", "test"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_server_of_the_folder_hears_nothing_before_the_yes(
    bare: Shell, listener: socket.socket, address: str, what: str
) -> None:
    (bare.work / ".mcp.json").write_text(entry(address, listener))
    done = bare.run("mcp", what, "docs", **KEYS)
    assert done.returncode == 2 and ".mcp.json" in done.stderr
    assert not heard(listener)


@pytest.mark.parametrize("change", ["", '"headers": {"X-Key": "${SHOP_TOKEN}"}, ', '"cwd": ".", ', '"command": "x", '])
def test_a_login_is_for_the_entry_that_was_agreed_to(bare: Shell, listener: socket.socket, change: str) -> None:
    text = entry("nothing", listener)
    listener.close()
    (bare.work / ".mcp.json").write_text(text)
    agreed = agreements_of(bare.home / "data", bare.work)
    agreed.add([Agreement(brought_server("docs", read_project_servers(bare.work)["docs"]), (), "")], [])
    (bare.work / ".mcp.json").write_text(text.replace('"url"', f'{change}"url"'))
    done = bare.run("mcp", "login", "docs", **KEYS)
    assert done.returncode == 2 and (".mcp.json" in done.stderr) == bool(change)


GIVEN: list[dict[str, Any]] = [
    {"include": [".env"], "setup": "cat .env"},
    {"include": ".env", "setup": "cat .env"},
    {"include": ["*"], "setup": "cat .env"},
    {"include": [".en*", "x"], "setup": "sh setup.sh"},
    {"include": [".env"], "container": "image:1"},
    {"include": [".env"], "setup": "true", "secrets": ["SHOP_TOKEN"]},
]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_no_set_up_of_a_file_of_tasks_gets_ignored_files_unseen(tmp_path: Path, given: dict[str, Any]) -> None:
    shell = FleetShell(tmp_path)
    shell.environment |= KEYS
    shell.add("tax", write("tax.py", "TAX = 2\n"), **given)
    done = shell.run("fleet", "run", "tasks.toml", "--no-work")
    assert done.returncode == 2
    names = [given["include"]] if isinstance(given["include"], str) else given["include"]
    assert all(name in done.stderr for name in [*names, given.get("setup", ""), given.get("container", "")])


def test_what_the_user_has_typed_is_not_asked_about(tmp_path: Path) -> None:
    shell = FleetShell(tmp_path)
    shell.add("tax", write("tax.py", "TAX = 2\n"))
    done = shell.run("fleet", "run", "tasks.toml", "--no-work", "--include", ".env", "--setup", "true")
    assert done.returncode == 0, done.stderr


NAMES = {
    "a command": "!touch x://y", "a slash command": "/undo://x", "a yes": "yes ://a", "no scheme": "a.py",
    "a quote": 'file:///w/a"%20@"/home/u/a.png', "a line": "file:///w/a%0A@/home/u/a.png",
    "a second one": "file:///w/x%20@~/a.png", "in an address": "x://y @/home/u/a.png", "wide": "x:y ＠/home/u/a.png",
    "a command in quotes": 'file:///w/!touch hit;"', "a command of a line": "file:///w/!touch%20hit%0A",
    "a command in wide letters": "file:///w/%EF%BC%81touch%20hit%22", "no folder": "file:!touch%20hit%22",
    "a slash command outside": "file:///undo%22", "a mode": "file:/mode%20full-auto%22", "yes": 'file:///w/yes"',
    "no address": "file://[", "no host": "http://[::1", "a port": "file://[x]:y/!touch",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["resource_link", "resource"])
@pytest.mark.parametrize("name", NAMES)
def test_what_an_editor_links_to_is_no_command_and_points_nowhere_else(name: str, kind: str) -> None:
    from duckflow.agent.policies.material import mentions

    block = {"uri": NAMES[name], "name": "a"}
    blocks = [{"type": kind, **(block if kind == "resource_link" else {"resource": {**block, "text": "t"}})}]
    prompt = read_prompt(blocks, Path("/w"))
    assert prompt.attachments or not prompt.text.startswith(("!", "！", "/", "yes"))
    assert read_answer(prompt.text) is None
    named = [path for mention in mentions(prompt.text) for path in mention.paths]
    assert not [path for path in named if path.startswith(("~", "/"))], prompt.text


LINKED = ['!touch hit;"', '!touch hit #"', '！touch hit;"', "!touch hit;\n", "yes;touch${IFS}hit", "$(touch${IFS}hit)"]


async def test_a_file_that_is_linked_in_an_editor_runs_nothing(bare: Shell) -> None:
    """Neither before the user's words nor within a command that they typed; a link that cannot be read is refused."""
    from acp.schema import ResourceContentBlock, TextContentBlock

    editor = Editor()
    replies = [HELLO] * (2 * len(LINKED) + 1)
    async with at(bare, editor, "-m", bare.script(*replies)) as connection:
        session = await connection.new_session(cwd=str(bare.work), mcp_servers=[])
        for name in LINKED:
            (bare.work / name).write_text("x")
            link = ResourceContentBlock(type="resource_link", uri=(bare.work / name).as_uri(), name=name)
            for words in ([link, "explain this"], ["!ls ", link]):
                blocks: list[Any] = [
                    TextContentBlock(type="text", text=one) if isinstance(one, str) else one for one in words
                ]
                await connection.prompt(session_id=session.session_id, prompt=blocks)
        unreadable = ResourceContentBlock(type="resource_link", uri="file://[", name="a")
        hello = TextContentBlock(type="text", text="hello")
        answer = await connection.prompt(session_id=session.session_id, prompt=[unreadable, hello])
    assert answer.stop_reason == "end_turn"
    assert not (bare.work / "hit").exists()


EVENTS = ["UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse", "Stop"]


@pytest.mark.parametrize("brought", [*EVENTS, "a server"])
def test_a_session_that_is_played_again_agrees_to_nothing(
    bare: Shell, listener: socket.socket, tmp_path: Path, brought: str
) -> None:
    """The folder is trusted, but its hooks and servers came later."""
    (bare.work / ".claude/commands").mkdir(parents=True)
    runs = decide(act("shell.run", command="echo one"), next_step="continue")
    assert bare.run("-p", "go", "--trust", "-m", bare.script(runs, decide(respond("ok")))).returncode == 0
    if brought == "a server":
        (bare.work / ".mcp.json").write_text(entry("as a login", listener))
    else:
        hooks = {brought: [{"matcher": "*", "hooks": [{"type": "command", "command": "echo x > hooked"}]}]}
        (bare.work / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    model = bare.script(runs, HELLO, HELLO)
    bare.run("replay", "--from", "1", "-m", model, "--into", str(tmp_path / "again"), **KEYS)
    assert (tmp_path / "again").is_dir()
    assert not heard(listener) and not [*(tmp_path / "again").rglob("hooked")]


@pytest.mark.parametrize("name", ["github/evil", "github/", "github//x", "github/a/b", "github/*", "github"])
def test_a_name_of_a_server_is_not_a_part_of_what_the_settings_allow(tmp_path: Path, name: str) -> None:
    async def answer(question: Any) -> Any:
        return question

    context = OutsideContext(tmp_path, tmp_path, answer, list[Any]().append, len)
    servers = OutsideServers(McpSettings(allow=("github/*", "github/create_*")), context)
    server = OutsideServer(name, ServerSettings(command="x"), tmp_path, lambda name: answer, list[Any]().append)
    server.state, server.lists["tools"] = "ready", [{"name": "create_issue"}, {"name": "b"}]
    servers.servers[name] = server
    toolbox = Toolbox((), lambda group: ())
    servers.offer(toolbox, 100_000)
    tools = [tool for tool in toolbox.at_hand() if isinstance(tool, OutsideTool)]
    assert len(tools) == 2 and {tool.allowed for tool in tools} == {name == "github"}
