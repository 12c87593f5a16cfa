"""Models on the page: why one does not answer, and keys that go to the keyring and are never shown again."""

import asyncio
import json
from pathlib import Path

import pytest

from duckflow.cli.page_models import PageModels
from tests.cli.shell import Shell
from tests.journeys.story import decide, respond
from tests.llm.fake_endpoint import FakeEndpoint, says
from tests.web.chromium import READING_MS, browsing, needs_chromium, visit
from tests.web.played import PlayedModels
from tests.web.site import Site, Talk
from tests.web.test_page_everywhere import violations
from tests.web.test_page_processes import Program

SECRET, TYPED = "sk-right", "sk-typed-0123456789"
RING = """
import json, pathlib
from keyring.backend import KeyringBackend
PLACE = pathlib.Path({place!r})
class Ring(KeyringBackend):
    priority = 1
    def get_password(self, service, username):
        return json.loads(PLACE.read_text()).get(service + "/" + username) if PLACE.exists() else None
    def set_password(self, service, username, password):
        PLACE.write_text(json.dumps({{service + "/" + username: password}}))
    def delete_password(self, service, username):
        PLACE.unlink()
"""


async def test_a_key_is_taken_once_and_never_given_out(tmp_path: Path) -> None:
    models = PlayedModels()
    async with Talk(tmp_path, []) as talk, Site(talk.paths, models=models) as site:
        browser = await site.visit()
        wrong = await browser.post("endpoints", 400, name="anthropic", key="sk-wrong-0123456789")
        assert wrong["error"] and "sk-wrong" not in json.dumps(wrong)
        kept = await browser.post("endpoints", name="anthropic", key=SECRET, default=True)
        assert models.kept == [("anthropic", "", "", True)]
        listed = await browser.get("endpoints")
        assert listed["endpoints"][1]["key"] == "keyring" and SECRET not in json.dumps([kept, listed])
        await browser.post("endpoints", 400, name="anthropic", key="k" * 5000)
        assert (await browser.post("models/check", 400, model="nope"))["error"]
        assert (await browser.post("models/check", model="openai:gpt-5-mini"))["told"]


async def test_keys_are_not_taken_where_they_would_travel(tmp_path: Path) -> None:
    models = PlayedModels()
    async with Talk(tmp_path, []) as talk, Site(talk.paths, host="0.0.0.0", models=models) as site:
        browser = await site.visit()
        refused = await browser.post("endpoints", 400, name="anthropic", key=SECRET)
        assert "not be encrypted" in refused["error"] and models.kept == []
        assert (await browser.get("endpoints"))["keys_here"] is False


@pytest.mark.parametrize(
    "form", ["http://ann:{key}@{host}", "http://{key}@{host}/v1", "{host}/v1?key={key}", "@{host}"]
)
async def test_an_address_with_a_secret_in_it_is_not_stored(tmp_path: Path, form: str) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths, models=PageModels(talk.paths)) as site:
        with FakeEndpoint(says("ok"), models=[{"id": "duck-1"}]) as server:
            browser, host = await site.visit(), server.url.removeprefix("http://").removesuffix("/v1")
            address = form.format(key=TYPED, host=host)
            refused = await browser.post("endpoints", 400, address=address, default=True)
            assert TYPED not in refused["error"] and server.paths == []
            assert not talk.paths.user_config.exists()
            await browser.post("endpoints", address=f"{host}/v1", default=True)
            assert "duck-1" in talk.paths.user_config.read_text()


async def test_a_page_beside_a_terminal_has_no_models(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        assert await browser.get("models") == []
        assert (await browser.post("endpoints", 400, name="openai", key=SECRET))["error"]


@needs_chromium
@pytest.mark.slow
async def test_a_server_of_ones_own_is_tried_kept_and_used(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    ring = tmp_path / "ring.json"
    # Nothing is imported from a folder that holds the work folder.
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "duckring.py").write_text(RING.format(place=str(ring)))
    shell.environment |= {"PYTHON_KEYRING_BACKEND": "duckring.Ring", "PYTHONPATH": str(modules)}
    with FakeEndpoint(says("ok"), models=[{"id": "duck-1"}], key=TYPED) as server:
        # An address that is this machine's, and not known as such: keys of loopback are not kept.
        address = server.url.replace("127.0.0.1", "0.0.0.0")
        program = await asyncio.to_thread(Program, shell)
        try:
            async with browsing() as browser:
                tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/models")
                form = await tab.see('form[aria-label="Your own server"]')
                await form.get_by_label("Address").fill("http://127.0.0.1:9")
                await form.get_by_role("button").click()
                await form.locator(".what.warn").wait_for()
                assert await violations(tab) == []
                await form.get_by_label("Address").fill(address)
                await form.get_by_label("Key").fill(TYPED)
                await form.get_by_label("Use this model when none is named").check()
                await form.get_by_role("button").click()
                await form.locator(".what.ok", has_text="answered").wait_for()
                assert await form.get_by_label("Key").input_value() == ""
                assert TYPED not in await tab.page.content()
                await tab.see(".endpoints li", "keyring duckflow server")
                assert [problem for problem in tab.problems if "400" not in problem] == []
        finally:
            program.stop()
    assert json.loads(ring.read_text()) == {"duckflow/server": TYPED}
    config = shell.config.read_text()
    assert TYPED not in config and "duck-1" in config and address in config


async def test_a_key_without_a_keyring_reaches_every_session_as_long_as_the_page_runs(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    hello = json.dumps(decide(respond("Quack."), step="PLANNING"))
    with FakeEndpoint(says("ok"), *[says(hello)] * 4, models=[{"id": "duck-1"}], key=TYPED) as server:
        program = await asyncio.to_thread(Program, shell)
        try:
            browser = await program.visit()
            assert (await browser.get("endpoints"))["lacks_default"] is True
            early = (await browser.post("sessions", folder=str(shell.work)))["id"]
            await browser.post("endpoints", address=server.url, key=TYPED, default=True)
            listed = await browser.get("endpoints")
            assert listed["lacks_default"] is False
            assert [one["key"] for one in listed["endpoints"] if one["name"] == "server"]
            new = (await browser.post("sessions", folder=str(shell.work), message="hello"))["id"]
            async with browser.reading(new) as reader:
                await reader.until(lambda: reader.turns_over == 1)
                assert not reader.asked and reader.of("text", by="model")
            # A session that was open before gets the key and the model, too.
            await browser.post(f"sessions/{early}/say", text="hello")
            async with browser.reading(early) as reader:
                await reader.until(lambda: reader.turns_over == 1)
                assert not reader.asked and reader.of("text", by="model")
            pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
            for pid in (pid for pid in pids if str(tmp_path).encode() in read_bytes(pid, "environ")):
                assert TYPED.encode() not in read_bytes(pid, "cmdline") + read_bytes(pid, "environ")
        finally:
            program.stop()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TYPED.encode() in path.read_bytes()]


async def test_a_key_typed_in_one_session_is_not_asked_for_in_the_next(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    hello = json.dumps(decide(respond("Quack."), step="PLANNING"))
    with FakeEndpoint(*[says("ok"), says(hello), says(hello)], models=[{"id": "duck-1"}], key=TYPED) as server:
        table = f'[llm.endpoints.mine]\nbase_url = "{server.url}"\nkey_env = "MINE_API_KEY"\n'
        shell.write_config(f'[llm]\nmodel = "mine:duck-1"\n{table}')
        program = await asyncio.to_thread(Program, shell)
        try:
            browser = await program.visit()
            first = (await browser.post("sessions", folder=str(shell.work), message="hello"))["id"]
            async with browser.reading(first) as reader:
                asked = await reader.until(lambda: next(iter(reader.facts.get("questions", [])), None))
                # What is typed elsewhere while a key is asked for goes to no model.
                for more in ({}, {"later": True}, {"question_id": asked["question_id"], "aimed": True}):
                    taken = await browser.post(f"sessions/{first}/say", text=TYPED, **more)
                    assert taken["taken"] == "unclear"
                await browser.post(f"sessions/{first}/answer", question_id=asked["question_id"], text=TYPED)
                await reader.until(lambda: reader.turns_over == 1)
            second = (await browser.post("sessions", folder=str(shell.work), message="hello"))["id"]
            async with browser.reading(second) as reader:
                await reader.until(lambda: reader.turns_over == 1)
                assert not reader.asked and reader.of("text", by="model")
        finally:
            program.stop()
    assert TYPED not in json.dumps(server.received)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TYPED.encode() in path.read_bytes()]


def read_bytes(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@needs_chromium
async def test_the_field_for_a_key_has_the_focus_and_nothing_else_takes_the_key(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    hello = json.dumps(decide(respond("Quack."), step="PLANNING"))
    with FakeEndpoint(says("ok"), says(hello), models=[{"id": "duck-1"}], key=TYPED) as server:
        program = await asyncio.to_thread(Program, shell)
        try:
            async with browsing() as browser:
                tab = await visit(browser, f"http://127.0.0.1:{program.port}/?token={program.token}", "#/new")
                keyboard = tab.page.keyboard
                await tab.see(".new-session textarea:focus")
                await keyboard.type("hello")
                await keyboard.press("Enter")
                await tab.choose("my own server")
                await tab.see(".composer textarea:focus")
                await tab.see(".card h2", "address")
                await tab.page.wait_for_timeout(READING_MS)
                await keyboard.type(server.url)
                await keyboard.press("Enter")
                for key in ("sk-wrong-0123456789", TYPED):
                    await tab.see(".card", "Incorrect" if key == TYPED else "needs a key")
                    await tab.see(".card [type=password]:focus")
                    assert await tab.find(".composer textarea").is_disabled()
                    await tab.page.wait_for_timeout(READING_MS)
                    await keyboard.type(key)
                    await keyboard.press("Enter")
                await tab.see(".r-said", "Quack")
                await tab.see(".composer textarea:focus")
                assert await tab.find(".composer textarea").input_value() == ""
                assert TYPED not in await tab.page.content()
                await tab.go("#/models")
                form = await tab.see('form[aria-label="Your own server"]')
                assert not await form.get_by_label("Use this model").is_checked()
                await form.get_by_label("Address").fill("http://127.0.0.1:9")
                await form.get_by_label("Key").fill(TYPED)
                await form.get_by_role("button").click()
                await form.locator(".what.warn").wait_for()
                assert await form.get_by_label("Key").input_value() == TYPED, "it was not the key's fault"
                await (await tab.see(".endpoints li button", "openai")).click()
                await tab.see(".endpoints li [type=password]:focus")
        finally:
            program.stop()
