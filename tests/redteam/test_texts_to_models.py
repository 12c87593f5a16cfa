"""Texts that go to a model beside the results of tools: none of them holds a secret that nobody was asked about."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import duckflow
from duckflow.events.talking import AskedBack
from duckflow.llm.scripted import ScriptedReply
from duckflow.safety.secret_diffs import without_secret_lines
from duckflow.state.changes import DiffSide
from duckflow.state.question import Answer
from tests.journeys.calling import called
from tests.journeys.plans import PROPOSE, SNAKE, Typing, until, when
from tests.journeys.story import Story, act, decide, respond

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
KEY = "sk-proj-" + "Q7dXw2LkTz" * 4
NICK = "correct horse battery staple"
PASSWORD = "the-plain-password-of-the-pond"
SECOND = "second line of it is here"
PEM = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
SECRETS = (KEY, NICK, PASSWORD, SECOND, "hunter22hunter22xx", "hunter22passw0rd", "ghp_abcdefghij", "AKIAIOSFOD", PEM)
FILES = {
    "conf.py": f'A = 1\nKEY = "{KEY}"\nB = 2\n',
    "settings.yaml": "a: 1\npassword: 'hunter22hunter22xx'\nb: 2\n",
    "up.txt": "one\nurl = https://me:hunter22passw0rd@example.com/\nb\n",
    "gh.md": "one\ntoken ghp_abcdefghijABCDEFGHIJ0123456789abcd\nb\n",
    "aws.tf": 'a = 1\nkey = "AKIAIOSFODNN7EXAMPLE"\nb = 2\n',
    "copy.txt": f"one\n{PASSWORD}\nb\n",
    "pem.py": f"A = 1\nK = '''-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----'''\nB = 1\n",
}
REVIEW = act("agent.run", task="review the change", kind="review", files=[])
EDIT_KEY = act("file_ops.edit_file", path="deploy_key", edits=[{"old": "second line", "new": "2nd line"}])
EDIT_ENV = act("file_ops.edit_file", path=".env", edits=[{"old": "API_KEY", "new": "API_KEYS"}])
DELETE_KEY, DELETE_ENV = (act("file_ops.delete_file", path=path) for path in ("deploy_key", ".env"))
MOVE_KEY = act("file_ops.move_file", source="deploy_key", target="k.txt")


def step(*actions: dict[str, Any]) -> dict[str, Any]:
    return decide(*actions, step="EXECUTION", next_step="continue")


class Asked(Story):
    """Every question is answered with yes."""

    def answer(self, question: Any) -> Answer:
        return Answer(choice="yes" if any(choice.key == "yes" for choice in question.choices) else "stop")


def prepared(story: Story) -> Story:
    folder = story.folder
    (folder / ".env").write_text(f"API_KEY={KEY}\nNICK={NICK}\nPASSWORD={PASSWORD}\n")
    (folder / "deploy_key").write_text(f"{NICK}\n{SECOND}\n")
    (folder / "soft").symlink_to("deploy_key")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return story


def sent(story: Story, first: int = 0) -> str:
    """All that the model was sent, with its own words."""
    messages = [message for request in story.model.requests[first:] for message in request.messages]
    return "\n".join(message.whole for message in messages)


def leaks(story: Story, first: int = 0) -> list[str]:
    text = sent(story, first)
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("way", ["edit", "sed"])
@pytest.mark.parametrize("name", FILES)
async def test_a_review_of_a_change_beside_a_key_shows_no_key(
    tmp_path: Path, name: str, way: str, native: bool
) -> None:
    first_line = FILES[name].partition("\n")[0]
    change = act("file_ops.edit_file", path=name, edits=[{"old": first_line, "new": f"{first_line}0"}])
    if way == "sed":
        change = act("shell.run", command=f"sed -i '1s/$/0/' {name}")
    replies = [step(act("file_ops.read_file", path=name)), step(change), step(REVIEW), END, END, END]
    story = prepared(Story(tmp_path, replies, native=native))
    await story.tell("change it")
    assert f"+{first_line}0" in sent(story) and not story.gates()
    assert leaks(story) == []


@pytest.mark.parametrize("change", [EDIT_KEY, EDIT_ENV, DELETE_KEY, DELETE_ENV, MOVE_KEY], ids=str)
async def test_a_review_of_a_secret_file_names_it_alone(tmp_path: Path, change: dict[str, Any]) -> None:
    story = prepared(Asked(tmp_path, [step(change), step(REVIEW), END, END, END], mode="ask"))
    await story.tell("change it")
    name = change["args"].get("path") or change["args"]["source"]
    assert any("review the change" in message.text and name in message.text for message in all_messages(story))
    assert leaks(story) == []


def all_messages(story: Story) -> list[Any]:
    return [message for request in story.model.requests for message in request.messages]


BACK = {
    "removed": (DELETE_ENV, "why do you want to do that?", "en"),
    "removed, another question": (DELETE_ENV, "what is in this file, and why is it in the way?", "en"),
    "a key removed": (DELETE_KEY, "why is that necessary?", "en"),
    "edited": (EDIT_ENV, "why do you want to do that?", "en"),
    "a key edited": (EDIT_KEY, "why this line and not the other one?", "en"),
    "through a link": (EDIT_KEY | {"args": EDIT_KEY["args"] | {"path": "soft"}}, "why do you do that?", "en"),
    "in Japanese": (DELETE_ENV, "なぜこのファイルを消すのですか？", "ja"),
    "beside a key": (
        act("file_ops.edit_file", path="conf.py", edits=[{"old": "A = 1", "new": "A = 2"}]),
        "why do you want to do that?",
        "en",
    ),
}


@pytest.mark.parametrize("case", BACK)
async def test_a_question_back_at_the_gate_shows_no_secret(tmp_path: Path, case: str) -> None:
    action, words, language = BACK[case]
    read = [step(act("file_ops.read_file", path="conf.py"))] if case == "beside a key" else []
    story = Typing(tmp_path, [*read, step(action), {"answer": "because"}, END, END], "ask", language)
    prepared(story)
    turn = asyncio.ensure_future(story.tell("tidy up"))
    await story.asked()
    before = len(story.model.requests)
    await story.chat.take(words)
    assert story.all(AskedBack)
    await until(story, lambda: len(story.model.requests) > before)
    assert leaks(story) == [] and words in sent(story, before)
    await story.chat.take("no")
    await turn


PLAN: dict[str, Any] = {
    "name": "Work",
    "steps": [{"name": "s0", "description": "d", "success": "f0.txt exists", "depends_on": []}],
    "risks": [],
}


def once(words: str, decision: dict[str, Any]) -> ScriptedReply:
    return replace(called(decision), when=words)


@pytest.mark.parametrize("action", [DELETE_ENV, EDIT_KEY, DELETE_KEY], ids=str)
@pytest.mark.parametrize("words", ["by the way, which Python do we use here", "list the files please"])
async def test_the_gate_of_a_job_shows_the_conversation_no_secret(
    tmp_path: Path, action: dict[str, Any], words: str
) -> None:
    replies = [
        called(decide(act("plan_tool.propose", goal="the work"), step="PLANNING", next_step="pending_user")),
        when("Make a plan for this goal", PLAN),
        once("approved the plan", decide(act("task_loop.run"), next_step="defer")),
        once("Your step: s0", {"rationale": "I do it.", "actions": [action]}),
        *[called(END)] * 4,
    ]
    story = Typing(tmp_path, replies, mode="ask", native=True)
    prepared(story)
    await story.tell("do the work")
    await story.tell("yes")
    await until(story, lambda: any(question.gate for question in story.questions))
    before = len(story.model.requests)
    turn = asyncio.ensure_future(story.tell(words))
    await until(story, lambda: action["args"]["path"] in sent(story, before))
    assert leaks(story, before) == []
    story.chat.interrupt()
    await asyncio.wait([turn], timeout=10)


async def typed_command(story: Story, command: str) -> None:
    await story.chat.run_own(command, is_typed=True)
    await story.tell("what was that?")


async def taken_back(story: Story, path: str) -> None:
    await story.tell("edit it")
    hunk = next(hunk for hunk in await story.chat.review.hunks() if hunk.path == path)
    await story.chat.review.take_back(hunk.turn, hunk.path, hunk.hunk_id)
    await story.tell("and now?")


async def commented(story: Story, path: str, line: int, side: DiffSide = "new") -> None:
    await story.tell("edit it")
    await story.chat.review.comment(story.session.state.turn, path, line, "what is this?", side)
    await story.chat.review.send()


async def written_before(story: Story, path: str, text: str) -> None:
    (story.folder / path).parent.mkdir(exist_ok=True)
    (story.folder / path).write_text(text)
    await story.tell("hello")


OTHER_TEXTS: dict[str, tuple[Callable[[Story], Awaitable[Any]], list[dict[str, Any]], str]] = {
    "!cat .env": (lambda story: typed_command(story, "cat .env"), [], "API_KEY|•••"),
    "!cat deploy_key": (lambda story: typed_command(story, "cat deploy_key"), [], "!cat deploy_key"),
    "!cat soft": (lambda story: typed_command(story, "cat soft"), [], "!cat soft"),
    "!grep": (lambda story: typed_command(story, "grep -n . .env deploy_key"), [], "•••"),
    "!cat conf.py": (lambda story: typed_command(story, "cat conf.py"), [], "•••"),
    "@conf.py": (lambda story: story.tell("look at @conf.py"), [], "•••"),
    "@copy.txt": (lambda story: story.tell("look at @copy.txt"), [], "•••"),
    "@pem.py": (lambda story: story.tell("look at @pem.py"), [], "•••"),
    "a hunk of conf.py": (
        lambda story: taken_back(story, "conf.py"),
        [act("file_ops.edit_file", path="conf.py", edits=[{"old": "A = 1", "new": "A = 2"}])],
        "•••",
    ),
    "a hunk of .env": (lambda story: taken_back(story, ".env"), [EDIT_ENV], "•••"),
    "a hunk of a key": (lambda story: taken_back(story, "deploy_key"), [EDIT_KEY], "•••"),
    "a comment on .env": (lambda story: commented(story, ".env", 2), [EDIT_ENV], "•••"),
    "a comment on a key": (lambda story: commented(story, "deploy_key", 2, "old"), [EDIT_KEY], "•••"),
    "a lesson": (
        lambda story: written_before(story, ".duckflow/lessons.md", f"- [preference] use {PASSWORD} and {KEY}\n"),
        [],
        "•••",
    ),
    "rules": (lambda story: written_before(story, "AGENTS.md", f"Log in with {PASSWORD} or {KEY}.\n"), [], "•••"),
}


@pytest.mark.parametrize("case", OTHER_TEXTS)
async def test_no_other_text_shows_a_secret(tmp_path: Path, case: str) -> None:
    bring, actions, shown = OTHER_TEXTS[case]
    story = prepared(Asked(tmp_path, [*map(step, actions), *[END] * 5]))
    await bring(story)
    assert leaks(story) == [] and any(word in sent(story) for word in shown.split("|"))


MISSES = [{"old": "second line of", "new": "x"}, {"old": "§", "new": "y"}]
AFTER_A_MOVE = {
    "read": act("file_ops.read_file", path="k.txt"),
    "cat": act("shell.run", command="cat k.txt"),
    "grep": act("file_ops.grep", pattern="line", path="k.txt"),
    "grep in the folder": act("file_ops.grep", pattern="horse|second", path="."),
    "a failed edit": act("file_ops.edit_file", path="k.txt", edits=MISSES),
    "moved again": act("file_ops.move_file", source="k.txt", target="l.md"),
    "a link to it": act("shell.run", command="ln -s k.txt l.txt; cat -n l.txt"),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["ask", "full-auto"])
@pytest.mark.parametrize("way", AFTER_A_MOVE)
async def test_the_lines_of_a_moved_secret_stay_secret(tmp_path: Path, way: str, mode: str) -> None:
    more = [step(act("file_ops.read_file", path="l.md"))] if way == "moved again" else []
    story = prepared(Asked(tmp_path, [step(MOVE_KEY), step(AFTER_A_MOVE[way]), *more, END, END], mode=mode))
    await story.tell("move it")
    assert (story.folder / "k.txt").exists() or way == "moved again"
    assert leaks(story) == []


@pytest.mark.parametrize("command", ["cp .env x.txt", "cat .env > x.txt", "tac .env > x.txt", "cp -p .env x.txt"])
async def test_the_lines_of_a_secret_that_a_command_copied_stay_secret(tmp_path: Path, command: str) -> None:
    copy, read = act("shell.run", command=command), act("file_ops.read_file", path="x.txt")
    story = prepared(Asked(tmp_path, [step(copy), step(read), END, END], mode="ask"))
    await story.tell("copy it")
    assert (story.folder / "x.txt").exists() and leaks(story) == []


async def test_a_moved_folder_of_secrets_keeps_its_lines_secret(tmp_path: Path) -> None:
    moved, read = act("file_ops.move_file", source="secrets", target="plain"), "plain/notes.cfg"
    story = Asked(tmp_path, [step(moved), step(act("file_ops.read_file", path=read)), END, END])
    (story.folder / "secrets").mkdir()
    (story.folder / "secrets" / "notes.cfg").write_text(f"{NICK}\n")
    await story.tell("move it")
    assert (story.folder / read).exists() and leaks(story) == []


CRITERIA = ["credentials.json", "secrets.txt", "token.json", "soft.txt", "folder/plain.txt"]


@pytest.mark.parametrize("path", CRITERIA)
async def test_a_criterion_does_not_tell_what_stands_in_a_secret_file(tmp_path: Path, path: str) -> None:
    async def told(guess: str) -> str:
        base = [{"name": "Write a", "description": "write a.txt", "success": "`a.txt` exists", "files": ["a.txt"]}]
        look = {"name": "Look", "description": "check", "success": f"`{path}` contains `{guess}`", "files": [path]}
        propose = act("plan_tool.propose", text="do it", name="Plan", steps=base)
        revise = act("plan_tool.revise", text="look", steps=[base[0] | {"was": 1}, look])
        closed = act("plan_tool.update_step", id="2", status="completed")
        replies = [decide(propose, step="PLANNING", next_step="pending_user"), step(revise), step(closed), END, END]
        top = tmp_path / guess.replace(" ", "_")
        top.mkdir()
        story = Story(top, replies, mode="ask")
        (story.folder / "folder").mkdir()
        (story.folder / "credentials.json").write_text(f'{{"password": "{NICK}"}}\n')
        (story.folder / "secrets.txt").write_text(f"{NICK}\n")
        (story.folder / "token.json").write_text(f'"{NICK}"\n')
        (story.folder / "soft.txt").symlink_to("secrets.txt")
        (story.folder / "folder" / "plain.txt").symlink_to("../secrets.txt")
        await story.tell("do it with a plan")
        await story.tell("yes, go ahead")
        results = [message.text for message in story.session.state.messages if message.role == "tool"]
        return results[-1].replace(guess, "GUESS")

    assert await told("correct horse b") == await told("correct horse q")


EXPORTED = [DELETE_ENV, DELETE_KEY, EDIT_ENV, EDIT_KEY, EDIT_KEY | {"args": EDIT_KEY["args"] | {"path": "soft"}}]


@pytest.mark.parametrize("kind", ["md", "html"])
@pytest.mark.parametrize("action", EXPORTED, ids=str)
async def test_an_export_holds_no_line_of_a_secret_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: dict[str, Any], kind: str
) -> None:
    story = prepared(Story(tmp_path, [step(action), END], mode="ask"))
    await story.tell("tidy up")
    monkeypatch.chdir(story.folder)
    await story.chat.run_command(f"/export {kind} out.{kind}")
    text = (story.folder / f"out.{kind}").read_text()
    assert [secret for secret in SECRETS if secret in text] == [] and "•••" in text


OTHER, ENV_HEAD = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+{1}", "--- a/.env\n+++ b/.env"
DIFFS = {
    "a hunk that says too many lines": "--- a/x\n+++ b/x\n@@ -1,90 +1,90 @@\n-a\n--- a/.env\n+++ b/.env\n{hunk}",
    "a command before it": "echo '\n--- a/x\n+++ b/x\n@@ -1,90 +1,90 @@\n'\n--- a/.env\n+++ b/.env\n{hunk}",
    "between two others": OTHER.format("x", "b") + f"\n{ENV_HEAD}\n{{hunk}}\n" + OTHER.format("y", "c"),
    "removed": "--- a/deploy_key\n+++ /dev/null\n{hunk}",
    "new": "--- /dev/null\n+++ b/new/.env\n{hunk}",
    "git's own": "diff --git a/.env b/.env\nindex 1..2 100644\n--- a/.env\n+++ b/.env\n{hunk}",
    "with a blank": "--- a/my folder/api_key\n+++ b/my folder/api_key\n{hunk}",
    "in quotes": '--- "a/f\\303\\274r/.env"\n+++ "b/f\\303\\274r/.env"\n{hunk}',
    "through a link": "--- a/soft\n+++ b/soft\n{hunk}",
    "a link itself": "--- a/.env → x\n+++ b/.env → y\n{hunk}",
    "cut off": "--- a/.env\n+++ b/.env\n@@ -1,9 +1,9 @@\n-" + NICK,
    "lines that look like a head": "--- a/.env\n+++ b/.env\n@@ -1,4 +1,2 @@\n--- a/x\n-++ b/x\n@@ -1 +1 @@\n-" + NICK,
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFS)
def test_a_diff_is_told_without_the_lines_of_secret_files(tmp_path: Path, case: str) -> None:
    (tmp_path / "deploy_key").write_text(NICK)
    (tmp_path / "soft").symlink_to("deploy_key")
    diff = DIFFS[case].replace("{hunk}", f"@@ -1,2 +1,2 @@\n context of it\n-{NICK}\n+{SECOND}")
    told = without_secret_lines(diff, tmp_path)
    assert NICK not in told and SECOND not in told and "context of it" not in told and "@@ •••" in told
    assert case != "between two others" or ("+b" in told and told.endswith("-a\n+c") and "+1 −1" in told)


async def test_what_the_user_types_and_allows_stays_readable(tmp_path: Path) -> None:
    read, note = act("file_ops.read_file", path=".env"), act("response", text=f"I use {KEY}.")
    story = prepared(Asked(tmp_path, [step(read), decide(note), END], mode="ask"))
    await story.tell(f"my password is {PASSWORD}, and PASSWORD=hunter22passw0rd is an old one")
    await story.tell("go on")
    last = story.prompt()
    assert f"my password is {PASSWORD}, and PASSWORD=hunter22passw0rd is an old one" in last
    assert f"API_KEY={KEY}\nNICK={NICK}" in last and f"I use {KEY}." in last


async def test_what_the_user_types_stays_readable_where_a_plan_is_drafted(tmp_path: Path) -> None:
    story = prepared(Story(tmp_path, [PROPOSE, SNAKE, END]))
    await story.tell(f"plan a game whose password is {PASSWORD}")
    draft = next(number for number in (1, 2) if "Make a plan for this goal" in story.prompt(number))
    assert f"whose password is {PASSWORD}" in story.prompt(draft)


async def test_a_text_is_filtered_the_same_way_in_every_request(tmp_path: Path) -> None:
    reads = [step(act("file_ops.read_file", path=name)) for name in FILES]
    story = prepared(Story(tmp_path, [*reads, END]))
    (story.folder / "AGENTS.md").write_text(f"Log in with {PASSWORD}.\n")
    await story.tell("look at @conf.py")
    requests = [request.messages for request in story.model.requests]
    for earlier, later in pairwise(requests):
        assert earlier[0] == later[0] and earlier[1:-1] == later[1 : len(earlier) - 1]
    assert leaks(story) == []


def test_every_text_of_a_session_goes_through_the_filter() -> None:
    """A module that streams from a model by itself would pass it by. `doctor` sends three words of its own."""
    sources = (Path(duckflow.__file__).parent / room for room in ("agent", "cli", "commands", "tools", "work"))
    streaming = {
        path.name
        for room in sources
        for path in room.rglob("*.py")
        if re.search(r"\bclosable\(|provider\.stream\(", path.read_text(encoding="utf-8"))
    }
    assert streaming == {"connection.py", "model.py"}


async def test_a_secret_that_is_a_word_of_the_prompt_does_not_break_it(tmp_path: Path) -> None:
    story = Story(tmp_path, [END])
    (story.folder / ".env").write_text("SECRET=continue\nTOKEN=operation\nPASSWORD=pending_user\n")
    await story.tell("hello")
    assert "•••" not in sent(story) and "pending_user" in sent(story)
