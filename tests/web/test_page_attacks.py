"""Somebody attacks the powers of the page: folders, keys, files, forms, reviews. Nothing gets through."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.story import act, decide, respond
from tests.web.played import PlayedFleet, PlayedModels
from tests.web.site import ID, Browser, Site, Talk

HELLO = decide(respond("Hello."), step="PLANNING")
NEW_POWERS = (
    "endpoints", "models/check", "fleet/start", "fleet/change", f"sessions/{ID}/review", f"sessions/{ID}/agent",
    f"sessions/{ID}/rename", f"sessions/{ID}/fork", f"sessions/{ID}/archive", f"sessions/{ID}/remove",
)  # fmt: skip
NEW_LOOKS = ("search?q=duck", "endpoints", "models", "folders", f"sessions/{ID}/hunks?turn=1", "fleet")
STRANGE: list[dict[str, Any]] = [
    {}, {"what": None}, {"what": 1, "tasks": "t"}, {"what": "merge", "fleet": [], "tasks": [1, {}]},
    {"name": {"a": 1}, "key": 3, "address": []}, {"turn": -1, "line": 10**9, "path": 7}, {"agent": None, "text": 5},
    {"folder": 1, "tasks": {}, "attempts": "9", "budget": "-1"}, {"title": ["x"]}, {"away": "yes"},
]  # fmt: skip
REVIEW = f"sessions/{ID}/review"
EVIL = '"><img src=x onerror=alert(1)><script>alert(1)</script>'


def played(top: Path) -> tuple[Talk, Site]:
    talk = Talk(top, [HELLO])
    return talk, Site(talk.paths, fleet=PlayedFleet(2, asks=1), models=PlayedModels())


@pytest.mark.parametrize("headers", [{}, {"origin": "http://evil.example"}, {"origin": "null"}])
async def test_another_site_can_do_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    talk, site = played(tmp_path)
    async with talk, site:
        browser = await site.visit()
        for path in NEW_POWERS:
            answer = await browser.http.post(f"{browser.top}api/{path}", json={"what": "cancel"}, headers=headers)
            assert answer.status_code == 403, path
        own = {"origin": browser.origin, "sec-fetch-site": "cross-site"}
        for path in (*NEW_POWERS, *NEW_LOOKS):
            method = "POST" if path in NEW_POWERS else "GET"
            answer = await browser.http.request(method, f"{browser.top}api/{path}", headers=own)
            assert answer.status_code == 403, path


async def test_nobody_without_the_cookie_gets_anything(tmp_path: Path) -> None:
    talk, site = played(tmp_path)
    async with talk, site:
        browser = await site.visit()
        browser.http.cookies.clear()
        for path in NEW_LOOKS:
            assert (await browser.http.get(f"{browser.top}api/{path}")).status_code == 401, path
        for path in NEW_POWERS:
            answer = await browser.http.post(f"{browser.top}api/{path}", json={}, headers={"origin": browser.origin})
            assert answer.status_code == 401, path


async def test_a_form_of_another_kind_or_a_giant_one_is_refused(tmp_path: Path) -> None:
    talk, site = played(tmp_path)
    async with talk, site:
        browser = await site.visit()
        headers = {"origin": browser.origin}
        for path in NEW_POWERS:
            plain = {**headers, "content-type": "text/plain"}
            answer = await browser.http.post(f"{browser.top}api/{path}", content='{"what":"cancel"}', headers=plain)
            assert answer.status_code == 415, path
        kind = {**headers, "content-type": "application/json"}
        for body in (b'{"key":"' + b"k" * 25 * 1024 * 1024 + b'"}', b"[" * 100_000, b"\xff\xfe", b"{"):
            answer = await browser.http.post(f"{browser.top}api/endpoints", content=body, headers=kind)
            assert answer.status_code in (413, 415), body[:8]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", STRANGE)
async def test_values_of_the_wrong_type_are_refused_with_a_sentence(tmp_path: Path, values: dict[str, Any]) -> None:
    talk, site = played(tmp_path)
    async with talk, site:
        browser = await site.visit()
        for path in NEW_POWERS:
            answer = await browser.http.post(
                f"{browser.top}api/{path}", json=values, headers={"origin": browser.origin}
            )
            assert answer.status_code < 500 and answer.headers["content-type"].startswith("application/json"), path


async def test_links_in_the_home_lead_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only folders of the home are listed, whatever path names them."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / "work").mkdir(parents=True)
    (outside / "secret-folder").mkdir(parents=True)
    for hidden in (".ssh", "work/.git"):
        (home / hidden / "keys").mkdir(parents=True)
    (home / "to-hidden").symlink_to(home / ".ssh")
    (home / "way-out").symlink_to(outside)
    (home / "work" / "up").symlink_to("/")
    monkeypatch.setenv("HOME", str(home))
    talk, site = played(tmp_path)
    async with talk, site:
        browser = await site.visit()
        for place in (
            home / "way-out", home / "way-out/secret-folder", home / "work/up/etc", home / "work/../../outside",
            f"{home}/work/..//../outside", "~/way-out", "~root", "/", f"{home}\0/etc", f"{home}-evil", "//", "~/..",
            "~/.ssh", "~/.ssh/keys", "~/work/.git/keys", "~/work/../.ssh", "~/to-hidden", "~/to-hidden/keys",
        ):  # fmt: skip
            answer = await browser.http.get(f"{browser.top}api/folders", params={"at": str(place)})
            assert answer.status_code == 400 and answer.json().keys() == {"error"}, place
        assert (await browser.get("folders"))["folders"] == ["work"]
        # A link that leads in a circle is no folder, and hides none.
        (home / "circle").symlink_to("circle")
        assert "work" in (await browser.get("folders"))["folders"]


async def test_a_fleet_takes_no_flags_from_its_form(tmp_path: Path) -> None:
    """A value stays a value: none becomes a flag or a shell's word."""
    fleet = PlayedFleet(2)
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet) as site:
        browser = await site.visit()
        evil = {"model": "--database=postgresql://evil", "checks": "--yes\n$(touch x)", "attempts": 99, "budget": "3"}
        await browser.post("fleet/start", folder=str(tmp_path), tasks="--places evil", **evil)
        ((_, folder, tasks, flags),) = fleet.done
        assert (folder, tasks) == (str(tmp_path), "--places evil")
        assert flags == {
            "--model": ["--database=postgresql://evil"],
            "--attempts": ["4"],
            "--fleet-budget-usd": ["3"],
            "--check": ["--yes", "$(touch x)"],
        }
        for wrong in ({"budget": "1e9;"}, {"mode": "contained"}, {"mode": "--yes"}, {"budget": "-5"}):
            await browser.post("fleet/start", 400, folder=str(tmp_path), tasks="t", **wrong)


async def test_names_and_contents_stay_text(tmp_path: Path) -> None:
    """Whatever files, sessions and messages are called, what is sent is JSON that a page draws as text."""
    write = decide(act("file_ops.write_file", path="a.py", content=f"x = '{EVIL}'\n"), respond(EVIL))
    talk = Talk(tmp_path, [write, HELLO], folder="<b>folder")
    async with talk, Site(talk.paths) as site:
        await talk.built.conversation.say(f"write {EVIL}")
        browser = await site.visit()
        for path in ("sessions", f"sessions/{ID}/hunks?turn=1", f"sessions/{ID}/changes", "search?q=alert"):
            answer = await browser.http.get(f"{browser.top}api/{path}")
            assert answer.headers["content-type"] == "application/json", path
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "script-src 'self'" in answer.headers["content-security-policy"]
        said = [item["html"] for told in await browser.get(f"sessions/{ID}/record?before=9999")
                for item in told["items"] if item.get("by") == "model"]  # fmt: skip
        assert said and all("<img" not in html and "<script" not in html for html in said)
        exported = await browser.http.get(f"{browser.top}api/sessions/{ID}/export?format=html")
        assert exported.headers["content-disposition"].startswith("attachment")


async def refused(browser: Browser, path: str, /, **values: Any) -> str:
    answer = await browser.http.post(f"{browser.top}api/{path}", json=values, headers={"origin": browser.origin})
    assert answer.status_code in (400, 404, 409), (path, values, answer.text)
    return json.dumps(answer.json())


async def test_a_review_reaches_no_file_beyond_the_change(tmp_path: Path) -> None:
    writes = [act("file_ops.write_file", path=name, content="a = 1\n") for name in ("a.py", "b.py")]
    (tmp_path / "outside.txt").write_text("kept")
    async with Talk(tmp_path, [decide(*writes, respond("ok"))]) as talk, Site(talk.paths) as site:
        await talk.built.conversation.say("write it")
        browser = await site.visit()
        hunk_of_b = (await browser.get(f"sessions/{ID}/hunks?turn=1"))[1]["hunk_id"]
        for hunk in (hunk_of_b, "made-up"):
            await refused(browser, REVIEW, what="take_back", turn=1, path="a.py", hunk=hunk)
        for name in ("../outside.txt", str(tmp_path / "outside.txt"), ".git/config", "a.py/../../outside.txt", ""):
            await refused(browser, REVIEW, what="take_back", turn=1, path=name)
            await refused(browser, REVIEW, what="comment", turn=1, path=name, line=1, text="x")
        await refused(browser, REVIEW, what="take_back", turn=99, path="a.py")
        await refused(browser, REVIEW, what="put_back", hunk="../../x")
        assert (tmp_path / "outside.txt").read_text() == "kept" and (talk.folder / "a.py").exists()
        assert (await browser.http.get(f"{browser.top}api/sessions/..%2F..%2Fx/hunks")).status_code == 404
        await refused(browser, f"sessions/{ID}/agent", agent="../../x")
