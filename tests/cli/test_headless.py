"""The command itself, as a shell would call it: real processes, real HTTP, real exit codes."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

Reply = Callable[[BaseHTTPRequestHandler], None]
QUICK = (
    "[llm]\nbackoff_seconds = 0.05\nfirst_byte_seconds = 1.0\nlocal_first_byte_seconds = 1.0\n"
    "between_chunks_seconds = 1.0\ntries = 3\npatience_seconds = 2\n"
)


class Server:
    """Answers each request with the next reply, the last one again and again."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.bodies: list[bytes] = []
        self.count = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                reply = outer.replies[min(outer.count, len(outer.replies) - 1)]
                outer.count += 1
                reply(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self.variables = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-secret"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def status(code: int, body: str = "{}", **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return reply


def stream(text: str, whole: bool = True, usage: dict[str, int] | None = None) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for piece in (text[: len(text) // 2], text[len(text) // 2 :])[: 2 if whole else 1]:
            chunk = {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
            handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        if whole:
            end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            end |= {"usage": usage} if usage else {}
            handler.wfile.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())

    return reply


def hang(handler: BaseHTTPRequestHandler) -> None:
    threading.Event().wait(3)


FINE = stream(json.dumps(decide(respond("All is well."), step="PLANNING")))


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def impatient_shell(top: Path) -> Shell:
    """One in which a model that says nothing is not waited for."""
    shell = Shell(top)
    shell.write_config(QUICK)
    return shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return impatient_shell(tmp_path)


def test_a_file_is_created_and_the_answer_stands_on_stdout(shell: Shell) -> None:
    model = shell.script(decide(act("file_ops.write_file", path="a.py"), respond("Here it is.")), "print(1)\n")
    done = shell.run("-p", "create a.py", "-m", model, "--mode", "auto-edit")
    assert (done.returncode, done.stdout) == (0, "Here it is.\n")
    assert "Created a.py" in done.stderr
    assert (shell.work / "a.py").read_text() == "print(1)\n"


UNABLE = decide(respond("I could not do it: nobody may be asked."), step="PLANNING")


def test_without_a_yes_it_stops_at_the_gate(shell: Shell) -> None:
    write = decide(act("file_ops.write_file", path="a.py"), respond("Here it is."))
    model = shell.script(write, "print(1)\n", UNABLE)
    done = shell.run("-p", "create a.py", "-m", model)
    assert done.returncode == 3
    assert "a.py" in done.stderr and "--mode auto-edit" in done.stderr
    assert not (shell.work / "a.py").exists()


def test_a_command_that_needs_a_yes_is_shown_whole(shell: Shell) -> None:
    command = "touch " + " ".join(f"file-{number}" for number in range(60))
    done = shell.run("-p", "make them", "-m", shell.script(decide(act("shell.run", command=command)), UNABLE))
    assert done.returncode == 3 and f"$ {command}" in done.stderr and "--mode full-auto" in done.stderr


def test_a_command_that_no_mode_allows_comes_without_a_hint_at_a_mode(shell: Shell) -> None:
    done = shell.run("-p", "tidy up", "-m", shell.script(decide(act("shell.run", command="rm -rf ~")), UNABLE))
    assert done.returncode == 3 and "in every mode ($ rm -rf ~)" in done.stderr and "--mode" not in done.stderr


def test_a_read_that_needs_a_yes_is_named(shell: Shell) -> None:
    (shell.work / ".env").write_text("KEY=1\n")
    missing = decide(act("duck_call", text="I may not read it."), step="PLANNING")
    done = shell.run("-p", "read it", "-m", shell.script(decide(act("file_ops.read_file", path=".env")), missing))
    assert done.returncode == 3 and "()" not in done.stderr and "read_file" in done.stderr, done.stderr


def test_a_command_that_needs_a_yes_in_every_mode_names_no_other_mode(shell: Shell) -> None:
    (shell.work / "tests").mkdir()
    remove = shell.script(decide(act("shell.run", command="rm -rf tests")), UNABLE)
    done = shell.run("-p", "tidy up", "-m", remove, "--mode", "full-auto")
    assert done.returncode == 3 and "in every mode ($ rm -rf tests)" in done.stderr and "--mode" not in done.stderr


def test_undo_and_redo_are_carried_out_where_nobody_can_be_asked(shell: Shell) -> None:
    (shell.work / "a.py").write_text("x = 1\n")
    model = shell.script(decide(act("shell.run", command="sed -i s/1/2/ a.py"), respond("It is 2.")))
    shell.run("-p", "set x to 2", "-m", model, "--mode", "full-auto")
    for command, text in (("/undo", "x = 1\n"), ("/redo", "x = 2\n")):
        assert shell.run("-c", "-p", command, "-m", model).returncode == 0
        assert (shell.work / "a.py").read_text() == text


def test_a_reply_that_had_to_be_repaired_is_sent_again_where_nobody_can_be_asked(shell: Shell) -> None:
    write = decide(act("file_ops.write_file", path="a.txt", content="a"), next_step="continue")
    broken = {"text": json.dumps(write)[:-1] + ",}"}
    model = shell.script(broken, write, decide(respond("It is there.")))
    done = shell.run("-p", "write a.txt", "-m", model, "--mode", "full-auto", "--output-format", "json")
    result = json.loads(done.stdout)
    assert (shell.work / "a.txt").exists() and done.returncode == 0 and not result["left_out"]
    assert "valid JSON" in result["actions"][0]["for_model"]


def test_an_action_that_nobody_can_allow_is_left_out_and_the_others_are_done(shell: Shell) -> None:
    edits = [act("file_ops.write_file", path=f"part{number}.py", content="print(1)\n") for number in range(8)]
    online = act("shell.run", command="curl -s http://127.0.0.1:9/", network=True)
    told = decide(respond("Eight parts are written. The page was not fetched."))
    model = shell.script(decide(*edits, online, next_step="continue"), told)
    given = ("-p", "write the parts and fetch the page", "-m", model, "--mode", "full-auto", "--output-format", "json")
    done = shell.run(*given)
    result = json.loads(done.stdout)
    assert done.returncode == 0 and len(list(shell.work.glob("part*.py"))) == 8, done.stderr
    assert result["result"].startswith("Eight parts") and "nobody could be asked: curl -s http" in result["result"]
    assert result["left_out"] == ["curl -s http://127.0.0.1:9/"] and result["outcome"] == "done"
    refused = next(one["for_model"] for one in result["actions"] if not one["ok"])
    assert "nobody can be asked here" in refused and "said no" not in refused


def test_a_task_that_failed_for_lack_of_a_yes_has_its_own_exit_code(shell: Shell) -> None:
    write = act("file_ops.write_file", path="a.py", content="print(1)\n")
    online = act("shell.run", command="curl -s http://127.0.0.1:9/", network=True)
    missing = decide(act("duck_call", text="The page is needed and cannot be fetched."))
    model = shell.script(decide(write, online, next_step="continue"), missing)
    done = shell.run("-p", "write what the page says", "-m", model, "--mode", "full-auto")
    assert done.returncode == 3 and "needs your approval" in done.stderr


def test_a_model_that_keeps_asking_where_nobody_answers_is_stopped(shell: Shell) -> None:
    asks = [decide(act("shell.run", command=f"rm -rf tests{number}"), next_step="continue") for number in range(9)]
    model = shell.script(*asks)
    done = shell.run("-p", "tidy up", "-m", model, "--mode", "full-auto", "--output-format", "json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["outcome"], result["loops"]) == (3, "gate", 4)
    assert result["left_out"] == [f"rm -rf tests{number}" for number in range(4)]


WRITES = act("file_ops.write_file", path="a.py", content="print(1)\n")
OFFER = "Written. Would you like me to also add a test?"
ENDS: list[tuple[list[dict[str, Any]], int, str]] = [
    ([decide(WRITES, next_step="continue"), decide(respond(OFFER))], 0, "Would you like me to"),
    ([decide(WRITES, respond(OFFER)), decide(WRITES, respond("Done."))], 0, ""),
    ([decide(respond("Which folder should it be in?"), step="PLANNING")], 7, "Which folder should"),
    ([decide(WRITES, act("duck_call", text="I am stuck."))], 7, ""),
    ([decide(respond("It prints 1. Anything else?"), step="PLANNING")], 0, "Anything else?"),
    ([decide(respond("Tabs or spaces?"), WRITES, next_step="continue")], 7, "Tabs or spaces?"),
    ([decide(respond("What does it print?"), WRITES, next_step="continue"), decide(WRITES, respond("Done."))], 0, ""),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("replies", "code", "question"), ENDS)
def test_only_a_question_that_the_work_waits_for_has_its_own_exit_code(
    shell: Shell, replies: list[dict[str, Any]], code: int, question: str
) -> None:
    given = ("-p", "create a.py", "-m", shell.script(*replies), "--mode", "auto-edit", "--output-format", "json")
    done = shell.run(*given)
    result = json.loads(done.stdout)
    assert (done.returncode, result["exit_code"]) == (code, code)
    assert result["question"].startswith(question) and bool(result["question"]) == bool(question)


def test_json_output_is_one_object_with_the_whole_result(shell: Shell) -> None:
    model = shell.script(decide(act("file_ops.write_file", path="a.py"), respond("できました")), "print(1)\n")
    done = shell.run("-p", "作って", "-m", model, "--mode", "auto-edit", "--output-format", "json", "--lang", "ja")
    told = json.loads(done.stdout)
    assert told["result"] == "できました" and told["exit_code"] == 0 and told["outcome"] == "done"
    assert told["files_changed"] == ["a.py"] and told["usage"]["calls"] == 2
    assert "作成しました" in done.stderr


def test_json_output_says_what_is_unverified(shell: Shell) -> None:
    work = act("file_ops.write_file", path="a.py", content="x = 1\n"), act("shell.run", command="test -e b.py")
    said = [decide(respond(f"I wrote it, {number}.")) for number in range(2)]
    model = shell.script(decide(*work, next_step="continue"), *said)
    done = shell.run("-p", "Create a.py", "-m", model, "--mode", "full-auto", "--output-format", "json")
    told = json.loads(done.stdout)
    assert (
        told["outcome"] == "done" and told["why"].startswith("The result is not verified; ") and "b.py" in told["why"]
    )


def test_stream_json_is_one_event_a_line_and_ends_with_the_result(shell: Shell) -> None:
    model = shell.script(decide(respond("Hello."), step="PLANNING"))
    lines = shell.run("-p", "hi", "-m", model, "--output-format", "stream-json").stdout.splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds[-1] == "result"
    assert {"turn_began", "decision_made", "action_finished", "turn_ended"} <= set(kinds)


def test_piped_text_is_material(shell: Shell) -> None:
    model = shell.script({"text": "unused", "when": "never"}, decide(respond("Read it."), step="PLANNING"))
    done = shell.run("-p", "what is this?", "-m", model, "--output-format", "stream-json", stdin="the material\n")
    said = [json.loads(line)["message"] for line in done.stdout.splitlines() if '"message_added"' in line]
    assert (said[0]["role"], said[0]["text"]) == ("user", "what is this?")
    assert (said[1]["role"], said[1]["operation"], said[1]["text"]) == ("tool", "stdin", "the material")


def test_a_session_is_continued_picked_and_forked(shell: Shell) -> None:
    shell.run("-p", "first question", "-m", shell.script(decide(respond("one"), step="PLANNING")))
    again = shell.script(decide(respond("two"), step="PLANNING"))
    told = json.loads(shell.run("-c", "-p", "second", "-m", again, "--output-format", "json").stdout)
    assert told["turn"] == 2
    again = shell.script(decide(respond("three"), step="PLANNING"))
    fork = json.loads(shell.run("--fork", "-p", "third", "-m", again, "--output-format", "json").stdout)
    assert fork["turn"] == 3 and fork["session_id"] != told["session_id"]
    again = shell.script(decide(respond("four"), step="PLANNING"))
    picked = json.loads(shell.run("-r", told["session_id"], "-p", "x", "-m", again, "--output-format", "json").stdout)
    assert picked["turn"] == 3
    listed = shell.run("sessions").stdout
    assert told["session_id"] in listed and fork["session_id"] in listed and "first question" in listed


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("-p", "  "), "nothing to do"),
        (("-c", "-p", "x"), "no session"),
        (("-r", "nope", "-p", "x"), "no session nope"),
        (("-p", "x", "-m", "nowhere:model"), "nowhere"),
        ((), "terminal"),
    ],
)
def test_bad_usage_gets_one_clear_line(shell: Shell, arguments: tuple[str, ...], hint: str) -> None:
    done = shell.run(*arguments)
    assert done.returncode in (2, 5)
    assert hint in done.stderr and "Traceback" not in done.stderr


def test_a_provider_that_stumbles_is_asked_again(shell: Shell, server: Server) -> None:
    (shell.home / "config/config.toml").write_text(QUICK.replace("tries = 3", "tries = 6"))
    busy = status(429, '{"error": {"message": "slow down"}}', retry_after="0")
    server.replies = [busy, status(500, "oops"), status(503), stream("half of it", whole=False), hang, FINE]
    done = shell.run("-p", "hi", "-m", "duck", **server.variables)
    assert (done.returncode, done.stdout) == (0, "All is well.\n"), done.stderr
    assert server.count == 6


FAILING: list[tuple[str, Reply, int, str]] = [
    ("429", status(429, '{"error": {"message": "slow down"}}', retry_after="0"), 5, "busy"),
    ("500", status(500, "oops"), 5, "500"),
    ("401", status(401, '{"error": {"message": "bad key"}}'), 5, "OPENAI_API_KEY"),
    ("404", status(404, '{"error": {"message": "no such model", "code": "model_not_found"}}'), 5, "duck"),
    ("html", status(200, "<html>welcome</html>", content_type="text/html"), 1, "not a model"),
    ("half a stream", stream("half of it", whole=False), 5, "cut off"),
    ("garbage", stream('{"rationale": "cut'), 1, "could not be used"),
    ("nothing", hang, 5, "sent nothing"),
]


@pytest.mark.parametrize(
    "kinds",
    [pytest.param(FAILING[:4], id="refused"), pytest.param(FAILING[4:], id="no reply", marks=pytest.mark.slow)],
)
def test_a_provider_that_keeps_failing_ends_in_a_clear_message_and_the_conversation_goes_on(
    shell: Shell, server: Server, kinds: list[tuple[str, Reply, int, str]]
) -> None:
    """One after the other in the same conversation: each finds it as the one before has left it."""
    for number, (kind, reply, code, hint) in enumerate(kinds):
        server.replies = [reply]
        going_on = ("-c",) if number else ()
        done = shell.run(*going_on, "-p", "hi", "-m", "duck", **server.variables)
        assert done.returncode == code, (kind, done.stderr)
        assert hint in done.stderr, kind
        assert "Traceback" not in done.stderr and "sk-secret" not in done.stderr, kind
    server.replies, server.count = [FINE], 0
    again = shell.run("-c", "-p", "and now?", "-m", "duck", **server.variables)
    assert again.stdout == "All is well.\n"
    kept = "".join(path.read_bytes().decode("latin-1") for path in shell.home.rglob("*") if path.is_file())
    assert "sk-secret" not in kept


def test_a_session_goes_on_with_its_user_defined_endpoint(shell: Shell, server: Server) -> None:
    """Nothing in the environment leads to that endpoint, and the config names no model."""
    shell.write_config(f'[llm.endpoints.mine]\nbase_url = "{server.variables["OPENAI_BASE_URL"]}"\n')
    server.replies = [stream("Hello there.")]
    assert shell.run("-p", "hi", "-m", "mine:duck").stdout == "Hello there.\n"
    assert shell.run("-c", "-p", "hi again").stdout == "Hello there.\n"


def test_plain_prose_from_a_model_is_an_answer(shell: Shell, server: Server) -> None:
    server.replies = [stream("Hello there.")]
    done = shell.run("-p", "hi", "-m", "duck", **server.variables)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")


def test_a_budget_stops_it(shell: Shell) -> None:
    path = shell.home / "script.jsonl"
    reply = {
        "json": decide(act("file_ops.list_files"), step="PLANNING", next_step="continue"),
        "usage": {"cost_usd": 0.6, "prompt_tokens": 5},
    }
    path.write_text("\n".join([json.dumps(reply)] * 5))
    look = ("-p", "look", "-m", f"scripted:{path}", "--output-format", "json")
    done = shell.run(*look, "--max-budget-usd", "1")
    assert done.returncode == 6
    assert json.loads(done.stdout)["usage"]["cost_usd"] == 1.2
    done = shell.run(*look, "--max-tokens", "1", "--lang", "ja")
    assert done.returncode == 6 and "1 トークンでは次の呼び出しができません" in str(json.loads(done.stdout))
    assert json.loads(done.stdout)["usage"]["calls"] == 0, "what cannot fit is not begun"


def test_a_budget_in_dollars_needs_no_prices_in_the_settings(shell: Shell, server: Server) -> None:
    look = json.dumps(decide(act("file_ops.list_files"), step="PLANNING", next_step="continue"))
    used = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "prompt_tokens_details": 0}
    server.replies = [stream(look, usage=used)]
    for number in range(9):
        (shell.work / f"{number}.txt").write_text("x")
    done = shell.run(
        *("-p", "look", "-m", "openai:gpt-5-mini", "--max-budget-usd", "0.8", "--output-format", "json"),
        **server.variables,
    )
    assert done.returncode == 6
    told = json.loads(done.stdout)["usage"]
    assert (told["calls"], told["cost_usd"]) == (2, pytest.approx(2 * (0.25 + 0.2)))


def test_a_budget_in_dollars_is_refused_where_nobody_knows_the_price(shell: Shell, server: Server) -> None:
    server.replies = [stream("Hello.")]
    budget = ("-p", "hi", "-m", "openai:duck", "--max-budget-usd", "1")
    done = shell.run(*budget, **server.variables)
    assert done.returncode == 6 and """config set 'llm.prices."openai:duck"'""" in done.stderr and not server.bodies
    shell.run("config", "set", 'llm.prices."openai:duck"', "{input = 0, output = 0}")
    assert shell.run(*budget, **server.variables).stdout == "Hello.\n", "a price of nothing is a price"


@pytest.mark.parametrize(("policy", "calls", "requests"), [("stop", 1, 4), ("continue:2", 3, 12), ("replan", 2, 8)])
def test_a_duck_call_without_a_person_follows_the_policy(shell: Shell, policy: str, calls: int, requests: int) -> None:
    model = shell.script(*[decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")] * 20)
    done = shell.run("-p", "look", "-m", model, "--on-duck-call", policy, "--output-format", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["outcome"]) == (4, "pacemaker")
    assert [call["reason"] for call in told["duck_calls"]] == ["STAGNATION"] * calls
    assert told["usage"]["calls"] == requests
    assert any("same result 4 times" in line for line in told["duck_calls"][0]["findings"])


def test_the_record_of_a_session_shows_what_was_done_and_no_keys(shell: Shell) -> None:
    key = "sk-" + "a1b2c3d4e5" * 3
    plain = act("file_ops.write_file", path="a.py", content="print(1)\n")
    secret = act("file_ops.write_file", path="b.py", content=f'KEY = "{key}"\n')
    model = shell.script(decide(plain, next_step="continue"), decide(secret, respond("Here it is.")))
    shell.run("-p", "create a.py and b.py", "-m", model, "--mode", "auto-edit")
    told, whole = shell.run("audit").stdout, shell.run("audit", "--json").stdout
    assert "file_ops.write_file a.py" in told
    first, second = (json.loads(line) for line in whole.splitlines()[:2])
    assert first["operation"] == "file_ops.write_file" and first["changed"] == ["a.py"]
    assert "•••" in second["args"]["content"] and key not in told + whole


@pytest.mark.parametrize("line", ["/statsu", "/nosuch with words", "/my-command:part"])
def test_an_unknown_command_is_wrong_usage_and_costs_nothing(shell: Shell, line: str) -> None:
    ran = shell.run("-p", line, "-m", shell.script())
    assert ran.returncode == 2 and ran.stdout == "" and line.split()[0] in ran.stderr
    assert ("/status" in ran.stderr) == (line == "/statsu")


@pytest.mark.parametrize("line", ["/tmp is full, why?", "/usr/bin or /bin?", "/ is what?", "/1 of it"])
def test_a_path_at_the_beginning_is_no_command(shell: Shell, line: str) -> None:
    assert shell.run("-p", line, "-m", shell.script()).stdout == "Hello there.\n"


def test_help_speaks_both_languages(shell: Shell) -> None:
    assert "coding companion" in shell.run("--help").stdout
    assert "相棒" in shell.run("--help", "--lang", "ja").stdout
    assert shell.run("--version").stdout.startswith("duckflow ")


def test_without_a_key_and_a_model_the_ways_to_one_are_explained(shell: Shell) -> None:
    done = shell.run("-p", "hi")
    assert done.returncode == 5
    told = [line for line in done.stderr.splitlines() if not line.startswith("·")]
    assert len(told) == 4 and "OPENAI_API_KEY" in told[1] and "Ollama" in told[2] and "duckflow models pull" in told[3]
