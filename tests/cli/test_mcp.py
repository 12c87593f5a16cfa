"""`duckflow mcp`: servers are added, tried, listed and removed; and Duckflow serves other agents itself."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond
from tests.journeys.test_outside_tools import SERVER

WRITES = decide(act("file_ops.write_file", path="a.txt", content="hello\n"), next_step="continue")
RUNS = decide(act("shell.run", command="cat a.txt"), next_step="continue")


def test_a_server_is_added_tried_listed_and_removed(bare: Shell) -> None:
    bare.write_config('# mine\nlanguage = "en"\n')
    command = (sys.executable, "-I", "-S", str(SERVER))
    added = bare.run("mcp", "add", "math", "--env", "API_KEY=hushhush", "--", *command)
    assert added.returncode == 0 and "math" in added.stdout
    assert bare.run("mcp", "add", "far", "https://example.com/mcp", "--header", "X-A: b").returncode == 0
    listed = bare.run("mcp", "list").stdout
    assert "math" in listed and str(SERVER) in listed and "https://example.com/mcp" in listed
    assert "hushhush" not in listed
    assert "hushhush" not in bare.run("config", "list").stdout
    tried = bare.run("mcp", "test", "math")
    assert (
        tried.returncode == 0 and "✓ math: test server 1, 13 tools" in tried.stdout and "add: Adds two" in tried.stdout
    )
    assert bare.run("mcp", "remove", "math").returncode == 0
    assert bare.run("mcp", "remove", "far").returncode == 0
    assert "# mine" in bare.config.read_text() and "mcp" not in bare.run("config", "list", "--changed").stdout


def test_servers_that_cannot_be_used_are_refused_with_a_reason(bare: Shell) -> None:
    bare.run("mcp", "add", "bad", "--", sys.executable, "-I", "-S", str(SERVER), "dead")
    tried = bare.run("mcp", "test", "bad")
    assert tried.returncode == 1 and "no key was given" in tried.stdout
    assert bare.run("mcp", "test", "other").returncode == 2
    assert bare.run("mcp", "add", "a b", "--", "x").returncode == 2
    assert bare.run("mcp", "add", "empty").returncode == 2
    assert "needs no login" in bare.run("mcp", "login", "bad").stderr


def test_a_headless_command_sees_the_servers_as_they_are(bare: Shell) -> None:
    bare.run("mcp", "add", "math", "--", sys.executable, "-I", "-S", str(SERVER))
    listed = bare.run("-p", "/mcp", "-m", bare.script())
    assert listed.returncode == 0 and "✓ math: ready" in listed.stdout and "13 tools" in listed.stdout


class Agent:
    """Another agent that uses Duckflow."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0
        self.asked: list[dict[str, Any]] = []
        self.told: list[str] = []

    def request(self, method: str, answer: Any = None, **params: Any) -> Any:
        """The answer to it; what is asked meanwhile is answered with `answer`."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            assert self._process.stdout
            message = json.loads(self._process.stdout.readline())
            if message.get("method") == "elicitation/create":
                self.asked.append(message["params"])
                self._send({"id": message["id"], "result": answer})
            elif message.get("method") == "notifications/progress":
                self.told.append(message["params"]["message"])
            elif message.get("id") == self._number:
                return message.get("result") or message["error"]

    def call(self, name: str, answer: Any = None, **arguments: Any) -> Any:
        meta = {"progressToken": "p"}
        return self.request("tools/call", answer, name=name, arguments=arguments, _meta=meta)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


@contextmanager
def agent(bare: Shell, **capabilities: Any) -> Generator[Agent]:
    process = subprocess.Popen(
        [sys.executable, "-m", "duckflow", "mcp", "serve"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=bare.work, env=bare.environment,
    )  # fmt: skip
    try:
        one = Agent(process)
        about = {"name": "test", "version": "1"}
        hello = one.request("initialize", protocolVersion="2025-06-18", capabilities=capabilities, clientInfo=about)
        assert hello["protocolVersion"] == "2025-06-18" and hello["serverInfo"]["name"] == "duckflow"
        yield one
        assert process.stdin
        process.stdin.close()
        assert process.wait(30) == 0
    finally:
        process.kill()


def test_a_file_or_nothing_at_all_may_stand_for_the_other_agent(bare: Shell, tmp_path: Path) -> None:
    """People who try it by hand redirect stdin: neither a file nor an immediate end of the input breaks it."""
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_text(
        '{"jsonrpc":"2.0","id":1,"method":"initialize"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    )
    command = [sys.executable, "-m", "duckflow", "mcp", "serve"]
    with requests.open() as source, answers.open("w") as target:
        assert not subprocess.call(command, stdin=source, stdout=target, cwd=bare.work, env=bare.environment)
    assert [json.loads(line)["id"] for line in answers.read_text().splitlines()] == [1, 2]
    nothing = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, cwd=bare.work, env=bare.environment, check=True
    )
    assert not nothing.stdout and not nothing.stderr


def test_another_agent_gives_a_task_and_goes_on_with_it(bare: Shell) -> None:
    """A Gate is shown in full to the other agent's user. The result says what changed and what proves that it works."""
    model = bare.script(WRITES, RUNS, decide(respond("Done.")), decide(respond("You are welcome.")))
    yes = {"action": "accept", "content": {"answer": "yes"}}
    with agent(bare, elicitation={}) as other:
        tools = other.request("tools/list")["tools"]
        assert [tool["name"] for tool in tools] == ["duckflow", "duckflow_reply"]
        done = other.call("duckflow", yes, prompt="write a.txt", cwd=str(bare.work), mode="ask", model=model)
        result = done["structuredContent"]
        assert result["content"] == "Done." and result["files_changed"] == ["a.txt"] and not done["isError"]
        assert [(one["command"], one["exit_code"]) for one in result["evidence"]] == [("cat a.txt", 0)]
        assert "a.txt" in other.asked[0]["message"] and "+hello" in other.asked[0]["message"]
        assert set(other.asked[0]["requestedSchema"]["properties"]["answer"]["enum"]) >= {"yes", "no"}
        assert other.told
        again = other.call("duckflow_reply", sessionId=result["sessionId"], prompt="thanks")
        assert again["structuredContent"]["content"] == "You are welcome."
        assert again["structuredContent"]["sessionId"] == result["sessionId"]
    assert (bare.work / "a.txt").read_text() == "hello\n"


def test_an_action_is_refused_with_a_reason_where_nobody_can_be_asked(bare: Shell) -> None:
    model = bare.script(WRITES, decide(respond("Done.")))
    with agent(bare) as other:
        done = other.call("duckflow", prompt="write a.txt", cwd=str(bare.work), mode="ask", model=model)
        assert done["isError"] and "nobody could be asked" in done["structuredContent"]["content"]
        assert done["structuredContent"]["outcome"] == "gate" and done["structuredContent"]["left_out"] == ["a.txt"]
        wrong = other.call("duckflow", prompt="x", cwd="/no/such/folder")
        assert wrong["isError"] and "/no/such/folder" in wrong["content"][0]["text"]
        assert "no tool" in other.call("other")["message"]
        assert "sessions" in other.call("duckflow_reply", sessionId="nosuch", prompt="x")["content"][0]["text"].lower()
    assert not (bare.work / "a.txt").exists()


def test_a_no_of_the_other_agents_user_counts(bare: Shell) -> None:
    model = bare.script(WRITES, decide(respond("Then not.")))
    with agent(bare, elicitation={}) as other:
        no = {"action": "accept", "content": {"answer": "no", "reason": "write b.txt"}}
        done = other.call("duckflow", no, prompt="write a.txt", cwd=str(bare.work), mode="ask", model=model)
        assert done["structuredContent"]["content"] == "Then not."
        assert not (bare.work / "a.txt").exists()
