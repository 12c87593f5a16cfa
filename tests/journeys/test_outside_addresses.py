"""Tools of servers at an address: streamable HTTP in both eras of the protocol, and logins."""

import json
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.backends.null
import pytest

from duckflow.events.types import Noticed
from duckflow.i18n.words import Words
from duckflow.state.question import Answer
from duckflow.tools.outside.login import Logins, login_name
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_outside_tools import calls, results, servers, settings, told, until
from tests.tools.outside.http_server import HttpServer, serving


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[username]


async def call_add(tmp_path: Path, server: HttpServer, *answers: Answer) -> Story:
    given = settings(("*",), far={"url": server.url, "headers": {"X-Team": "ducks"}})
    story = Story(tmp_path, calls(act("mcp__far__add", a=2, b=3)), settings=given)
    async with told(story):
        story.answers = list(answers)
        await story.tell("add")
    return story


@pytest.mark.parametrize("habit", ["json", "stream", "broken"])
async def test_a_tool_at_an_address_is_called(tmp_path: Path, habit: str) -> None:
    """An answer that breaks off is gone on with where it stopped."""
    async with serving(habit) as server:
        story = await call_add(tmp_path, server)
    assert results(story)[0].for_model == "5"
    posts = [(headers, message) for verb, headers, message in server.seen if verb == "POST"]
    assert all(headers["x-team"] == "ducks" for headers, _ in posts)
    assert posts[-1][0]["mcp-protocol-version"] == "2025-06-18" and posts[-1][0]["mcp-session-id"] == "s1"
    assert "DELETE" in [verb for verb, _, _ in server.seen]


async def test_a_server_of_the_newer_era_is_spoken_to_in_its_way(tmp_path: Path) -> None:
    """No handshake and no session; what it wants to know in between is asked and sent after."""
    async with serving("stateless") as server:
        story = await call_add(tmp_path, server, Answer(choice="yes"))
    assert results(story)[0].for_model == "5accept"
    assert [one.title.key for one in story.questions] == ["mcp.asks"]


async def test_in_the_newer_era_changes_are_listened_for(tmp_path: Path) -> None:
    """A stream that breaks off is made again, and what was missed is read anew."""
    async with serving("stateless") as server:
        story = Story(tmp_path, [decide(respond("ok"))] * 2, settings=settings(far={"url": server.url}))
        async with told(story):
            await story.tell("hello")
            for tells in (True, False):
                await until(lambda: server.listeners == len(server.tools))
                server.tells = tells
                server.change.set()
                await until(lambda: not server.change.is_set())
                await until(lambda: len(servers(story)["far"].lists["tools"]) == len(server.tools))
            await story.tell("and now?")
    assert "mcp__far__more2" in story.prompt() and "mcp__far__more1" not in story.prompt(0)
    asked = [message["params"] for _, _, message in server.seen if "listen" in str(message)]
    assert asked[0]["notifications"] == {"toolsListChanged": True}


async def test_a_tool_that_needs_more_rights_says_how_to_get_them(tmp_path: Path) -> None:
    async with serving("rights") as server:
        story = await call_add(tmp_path, server)
    (result,) = results(story)
    assert not result.ok and "it wants a login for files:write" in result.for_model
    assert 'duckflow mcp login far --scope "files:write"' in Words("en").phrase(result.for_user)


async def test_nobody_there_is_told(tmp_path: Path) -> None:
    async with serving("json") as server:
        pass
    story = await call_add(tmp_path, server)
    assert "unknown operation" in results(story)[0].for_model


async def test_the_older_transport_is_named_and_not_just_refused(tmp_path: Path) -> None:
    async with serving("older") as server:
        story = await call_add(tmp_path, server)
    (notice,) = [event.what for event in story.all(Noticed) if event.what.key == "mcp.ended"]
    assert "older transport" in str(notice.values["reason"])


@pytest.mark.parametrize(
    "entry",
    [
        {"headers": {"Authorization": "Bearer ${NOWHERE_TOKEN}"}},
        {"url": "http://127.0.0.1:9/${NOWHERE_TOKEN}/mcp"},
        {"url": "", "command": "true", "env": {"TOKEN": "${NOWHERE_TOKEN}"}},
    ],
    ids=["header", "address", "variable"],
)
async def test_a_variable_that_is_not_set_is_named_at_once_and_nothing_is_sent(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    async with serving("json") as server:
        given = settings(far={"url": server.url} | entry)
        story = Story(tmp_path, [decide(respond("ok"))], settings=given)
        async with told(story):
            await story.tell("hello")
            await until(lambda: servers(story)["far"].state == "failed")
    assert "${NOWHERE_TOKEN}: not set here" in servers(story)["far"].why and not server.seen


async def test_a_variable_that_is_not_set_may_have_a_stand_in(tmp_path: Path) -> None:
    async with serving("json") as server:
        given = settings(("*",), far={"url": server.url, "headers": {"X-Team": "${NOWHERE_TEAM:-none}"}})
        story = Story(tmp_path, calls(act("mcp__far__add", a=2, b=3)), settings=given)
        async with told(story):
            await story.tell("add")
    assert results(story)[0].for_model == "5" and server.seen[0][1]["x-team"] == "none"


async def test_a_login_that_has_run_out_is_renewed(tmp_path: Path) -> None:
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    try:
        async with serving("login") as server:
            (tmp_path / "1").mkdir()
            story = await call_add(tmp_path / "1", server)
            assert "unknown operation" in results(story)[0].for_model
            assert "mcp.login_needed" in {event.what.key for event in story.all(Noticed)}
            login = {"access_token": "old", "refresh_token": "r", "client": {"client_id": "c"}, "resource": server.url}
            Logins(tmp_path / "logins").keep(server.url, {**login, "endpoint": server.url.replace("/mcp", "/token")})
            story = await call_add(tmp_path, server)
        assert results(story)[0].for_model == "5"
        assert json.loads(ring.kept[login_name(server.url)])["access_token"] == "fresh"
    finally:
        keyring.set_keyring(before)


class Forgetful(Ring):
    """A keyring without a desktop: it takes what it is given and never gives it back."""

    def get_password(self, service: str, username: str) -> str | None:
        return None


@pytest.mark.parametrize("ring", [Forgetful(), keyring.backends.fail.Keyring(), keyring.backends.null.Keyring()])
async def test_a_login_that_no_keyring_keeps_lies_in_a_file_for_the_user_alone(
    tmp_path: Path, ring: keyring.backend.KeyringBackend
) -> None:
    before, url = keyring.get_keyring(), "https://far.example/mcp"
    keyring.set_keyring(ring)
    try:
        path = Logins(tmp_path / "data/logins").keep(url, {"access_token": "mine"})
        assert path and path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
        assert await Logins(tmp_path / "data/logins").token_for(url, refused=False) == "mine"
        assert await Logins(tmp_path / "data/logins").token_for("https://other.example/mcp", refused=False) == ""
        keyring.set_keyring(Ring())
        assert Logins(tmp_path / "data/logins").keep(url, {"access_token": "newer"}) is None
        assert await Logins(tmp_path / "data/logins").token_for(url, refused=False) == "newer" and not path.exists()
    finally:
        keyring.set_keyring(before)
