"""Models on the page: why one does not answer, and keys that go to the keyring and are never shown again."""

import asyncio
import json
from pathlib import Path

import pytest

from duckflow.cli.page_models import PageModels
from tests.cli.shell import Shell
from tests.llm.fake_endpoint import FakeEndpoint, says
from tests.web.chromium import browsing, needs_chromium, visit
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
