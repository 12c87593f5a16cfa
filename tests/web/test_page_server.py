"""Pages seen from the wire: real HTTP to a real server, with real conversations behind it."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from duckflow.events.types import MessageAdded, Noticed, OutputStreamed, StreamReset, TextStreamed
from duckflow.llm.scripted import ScriptedReply
from duckflow.pacemaker.vitals import BARS
from duckflow.state.data import say
from duckflow.state.message import Message
from tests.journeys.plans import PROPOSE, SNAKE, report, run_step, when, write_tasks
from tests.journeys.story import act, decide, respond
from tests.web.played import PlayedFleet
from tests.web.site import ID, Browser, Reader, Site, Talk

WRITE = decide(act("file_ops.write_file", path="a.txt", content="one\n"), respond("Written **well**."))
HELLO = decide(respond("Hello."), step="PLANNING")
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def asked(reader: Reader, number: int = 1) -> dict[str, Any]:
    await reader.until(lambda: len(reader.asked) >= number)
    return list(reader.asked.values())[number - 1]


async def test_a_conversation_is_seen_and_led_from_a_page(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE, WRITE, HELLO], mode="ask") as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            assert (await browser.post(f"sessions/{ID}/say", text="write it"))["taken"] == "message"
            gate = await asked(reader)
            assert gate["gate"]["impacts"][0]["path"] == "a.txt" and "+one" in gate["gate"]["diff"]
            assert all(isinstance(one["label"], str) and one["label"] for one in gate["choices"])
            (entry,) = (await browser.get("sessions"))["sessions"]
            assert entry["state"] == "waiting" and entry["question"] == gate["title"] and entry["vitals"]["mood"] > 0
            taken = await browser.post(f"sessions/{ID}/answer", question_id=gate["question_id"], choice="yes")
            assert taken["taken"] == "answer"
            await reader.until(lambda: reader.turns_over)
            assert (talk.folder / "a.txt").read_text() == "one\n"
            (said,) = reader.of("text", by="model")
            assert said["html"] == "<p>Written <strong>well</strong>.</p>\n"

            await browser.post(f"sessions/{ID}/undo")
            undo = await asked(reader, 2)
            assert (await browser.post(f"sessions/{ID}/say", text="yes", question_id=undo["question_id"]))[
                "taken"
            ] == "answer"
            await reader.until(lambda: reader.of("notice", about="undone"))
            assert not (talk.folder / "a.txt").exists()
            (changed,) = await browser.get(f"sessions/{ID}/changes")
            assert changed["files"] == changed["taken"] == ["a.txt"]

            await browser.post(f"sessions/{ID}/say", text="write it again")
            third = (await asked(reader, 3))["question_id"]
            unclear = await browser.post(f"sessions/{ID}/answer", question_id=third, text="hm")
            assert unclear["taken"] == "unclear" and unclear["told"][0]
            no = await browser.post(f"sessions/{ID}/say", text="no, use tabs", question_id=third)
            assert no["taken"] == "answer"
            await reader.until(lambda: reader.turns_over == 2)
        snapshot = await browser.get(f"sessions/{ID}")
        assert snapshot["writable"] and snapshot["number"] == talk.session.number and snapshot["questions"] == []
        assert "messages" not in snapshot["state"] and snapshot["state"]["turn"] == 2


async def test_several_pages_see_the_same_and_the_first_answer_counts(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE], mode="ask") as talk, Site(talk.paths) as site:
        one, two = await site.visit(), await site.visit()
        async with one.reading() as first, two.reading() as second:
            await one.post(f"sessions/{ID}/say", text="write it")
            question = (await asked(first))["question_id"]
            assert (await asked(second))["question_id"] == question
            answers = await asyncio.gather(
                *(
                    browser.post(f"sessions/{ID}/answer", question_id=question, choice=choice)
                    for browser in (one, two)
                    for choice in ("yes", "no", "yes")
                )
            )
            meant = sorted(answer["taken"] for answer in answers)
            assert meant == ["answer"] + ["closed"] * 5
            assert all(answer["told"] for answer in answers if answer["taken"] == "closed")
            for reader in (first, second):
                await reader.until(lambda reader=reader: reader.turns_over)
                (closed,) = reader.of("question")
                assert closed["answer"]["choice"] in ("yes", "no")
        assert first.numbers == second.numbers == list(range(1, talk.session.number + 1))


async def test_a_very_risky_action_takes_a_typed_word_and_no_click(tmp_path: Path) -> None:
    risky = decide(act("shell.run", command="sudo rm -rf /etc/nothing-of-this-name"), respond("Done."))
    async with Talk(tmp_path, [risky, HELLO], mode="ask") as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await browser.post(f"sessions/{ID}/say", text="clean up")
            gate = await asked(reader)
            assert gate["gate"]["risk"] == "forbidden"
            path, question = f"sessions/{ID}/answer", gate["question_id"]
            for choice in ("yes", "session", "always"):
                clicked = await browser.post(path, question_id=question, choice=choice)
                assert clicked["taken"] == "unclear" and "yes" in clicked["told"][0]
            assert (await browser.post(path, question_id=question, choice="no"))["taken"] == "answer"
            await reader.until(lambda: reader.turns_over)


async def test_no_event_is_lost_or_doubled_when_the_server_goes_and_comes(tmp_path: Path) -> None:
    """Two thousand events while streams are cut and servers replaced, a page that reads from the start among them."""
    async with Talk(tmp_path, []) as talk:
        site = await Site(talk.paths).__aenter__()
        port = site.place.port
        browser = await site.visit()
        async with browser.reading() as steady:
            for number in range(2000):
                talk.session.emit(MessageAdded(message=Message(role="system", text=f"event {number}")))
                if number % 10 == 0:
                    talk.session.emit(TextStreamed(text="…"))
                    await asyncio.sleep(0)
                if number % 500 == 499:
                    await steady.until(lambda: len(steady.numbers) > 10)
                    await site.__aexit__()
                    site = await Site(talk.paths, port).__aenter__()
            async with browser.reading(after=1000) as late:
                for reader in (steady, late):
                    await reader.until(lambda reader=reader: reader.numbers[-1:] == [talk.session.number])
        assert steady.numbers == list(range(1, talk.session.number + 1)) and steady.opened > 3
        assert late.numbers == list(range(1001, talk.session.number + 1))
        await site.__aexit__()


async def test_live_text_comes_between_what_is_kept_and_in_order(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await reader.until(lambda: reader.numbers)
            for number in range(50):
                talk.session.emit(TextStreamed(text=f"{number}"))
                talk.session.emit(MessageAdded(message=Message(role="system", text=f"{number}")))
                talk.session.emit(OutputStreamed(text=f"{number}"))
            await reader.until(lambda: len([item for item in reader.items if item["kind"] == "output"]) == 50)
            order = [name for told in reader.heard for name in (*[item["kind"] for item in told["items"]],
                     *["kept"] * bool(told["number"]))]  # fmt: skip
            first = order.index("text")
            assert order[first:] == ["text", "kept", "output"] * 50


async def test_a_reply_is_put_together_and_comes_as_markdown_while_it_is_said(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await reader.until(lambda: reader.numbers)
            for piece in ("Some **wo", "rds** and", " `code`"):
                talk.session.emit(TextStreamed(text=piece))
            talk.session.emit(TextStreamed(text="hm", channel="think"))
            talk.session.emit(TextStreamed(text=" more"))
            talk.session.emit(StreamReset())
            talk.session.emit(TextStreamed(text="anew"))
            talk.session.emit(Noticed(what=say("gate.yes")))
            await reader.until(lambda: reader.of("notice"))
        told = [
            (item.get("by"), item.get("text"), item.get("html")) for item in reader.items if item["kind"] != "notice"
        ]
        gone = (None, None, None)
        assert told == [
            ("model", None, "<p>Some <strong>words</strong> and <code>code</code></p>\n"),
            ("thought", "hm", None),
            gone,
            ("model", None, "<p>Some <strong>words</strong> and <code>code</code> more</p>\n"),
            gone,
            ("model", None, "<p>anew</p>\n"),
        ]


async def test_an_old_session_is_read_from_its_journal_until_it_runs_again(tmp_path: Path) -> None:
    async with Talk(tmp_path, [WRITE]) as talk:
        await talk.built.conversation.say("write it")
        kept = talk.session.number
    async with Site(talk.paths) as site:
        browser = await site.visit()
        (entry,) = (await browser.get("sessions"))["sessions"]
        assert entry["state"] == "old" and entry["title"] == "write it"
        snapshot = await browser.get(f"sessions/{ID}")
        assert (snapshot["number"], snapshot["writable"]) == (kept, False)
        assert snapshot["state"]["files_changed"] == ["a.txt"]
        refused = await browser.post(f"sessions/{ID}/say", 409, text="more")
        assert "continue it" in refused["error"]
        async with browser.reading() as reader:
            await reader.until(lambda: reader.numbers[-1:] == [kept])
            async with Talk(tmp_path, [HELLO]):
                await reader.until(lambda: reader.opened > 1)
                assert (await browser.post(f"sessions/{ID}/say", text="hi"))["taken"] == "message"
                await reader.until(lambda: reader.turns_over == 2)
        assert reader.numbers == list(range(1, reader.numbers[-1] + 1))


async def test_thoughts_are_there_again_after_a_reload(tmp_path: Path) -> None:
    thinks = ScriptedReply(text=json.dumps(WRITE), thought="first I look, then I wonder")
    async with Talk(tmp_path, [thinks]) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        for number in range(2):
            async with browser.reading() as reader:
                if not number:
                    await browser.post(f"sessions/{ID}/say", text="write it")
                await reader.until(lambda: reader.turns_over)
                assert [item["thoughts"] for item in reader.of("reason")] == ["first I look, then I wonder"]


async def test_jobs_are_seen_and_held_by_hand(tmp_path: Path) -> None:
    script = [PROPOSE, SNAKE, run_step(1), when("Now its step", write_tasks("a.py")), report()]
    async with Talk(tmp_path, script) as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await browser.post(f"sessions/{ID}/say", text="plan a snake game")
            await reader.until(lambda: reader.turns_over)
            [draft] = reader.of("plan")
            await browser.post(f"sessions/{ID}/plan", plan=draft["plan"])
            (job,) = await reader.until(lambda: reader.facts["state"].get("jobs"))
            await browser.post(f"sessions/{ID}/control", wish="cancel", job=job)
            await reader.until(lambda: reader.of("report"))
            assert (await browser.post(f"sessions/{ID}/control", 400, wish="explode", job=job))["error"]
        snapshot = await browser.get(f"sessions/{ID}")
        assert next(iter(snapshot["state"]["plans"].values()))["steps"]


async def test_a_page_reads_files_context_and_chart_and_sets_the_mode(tmp_path: Path) -> None:
    async with Talk(tmp_path, [HELLO]) as talk, Site(talk.paths) as site:
        (talk.folder / "duck.py").write_text("x = 1\n")
        browser = await site.visit()
        me = await browser.get("me?language=ja")
        assert me["language"] == "ja" and me["version"] and not me["fleet"]
        async with browser.reading() as reader:
            picture = {"name": "dot.png", "data": base64.b64encode(DOT).decode()}
            await browser.post(f"sessions/{ID}/say", text="look", files=[picture])
            await reader.until(lambda: reader.turns_over)
            assert (await browser.post(f"sessions/{ID}/mode", mode="plan")) == {"mode": "plan"}
            await reader.until(lambda: reader.facts["mode"] == "plan")
            assert (await browser.post(f"sessions/{ID}/mode", 400, mode="yolo"))["error"]
            own = await browser.post(f"sessions/{ID}/say", text="/quit")
            assert own == {"taken": "command", "told": [], "goes": "#/"}
            await browser.post(f"sessions/{ID}/say", text="/status")
            (shown,) = await reader.until(lambda: reader.of("command"))
            assert "plan" in shown["text"] and not set(BARS) & set(shown["text"]), "the page has a chart"
        assert await browser.get(f"sessions/{ID}/files?q=duc") == ["duck.py"]
        parts = await browser.get(f"sessions/{ID}/context")
        assert sum(part["tokens"] for part in parts) > 100 and all(part["label"] for part in parts)
        chart = await browser.get(f"sessions/{ID}/chart")
        assert chart[-1]["tokens"] > 0 and 0 <= chart[-1]["mood"] <= 1
        audit = await browser.get(f"sessions/{ID}/audit")
        assert [entry["operation"] for entry in audit] == ["response"]
        (digest,) = [one["digest"] for told in await browser.get(f"sessions/{ID}/record?before=9999")
                     for item in told["items"] for one in item.get("pictures", ())]  # fmt: skip
        answer = await browser.http.get(f"{browser.top}api/sessions/{ID}/pictures/{digest}")
        assert answer.content == DOT and answer.headers["content-type"] == "image/png"
        assert (await browser.http.get(f"{browser.top}api/sessions/{ID}/pictures/{'0' * 64}")).status_code == 404


class Inbox(PlayedFleet):
    """A fleet with one question."""

    def __init__(self, risk: str = "medium") -> None:
        super().__init__(asks=1)
        self._question = {"title": say("gate.yes").model_dump(), "gate": {"risk": risk}}

    async def inbox(self) -> Sequence[Mapping[str, Any]]:
        return [{"asked_id": "a", "question": self._question}]


async def test_a_fleet_asks_on_the_page_where_there_is_one(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths) as site, Site(talk.paths, fleet=Inbox()) as with_fleet:
        without: Browser = await site.visit()
        missing = await without.http.get(f"{without.top}api/fleet")
        assert missing.status_code == 404 and missing.json()["error"]
        browser = await with_fleet.visit()
        (one,) = (await browser.get("fleet"))["asked"]
        assert isinstance(one["question"]["title"], str)
        taken = [(await browser.post("fleet/answer", asked="a", choice="yes"))["taken"] for _ in range(2)]
        assert taken == ["answer", "closed"]


async def test_a_very_risky_action_in_a_fleet_takes_a_typed_yes(tmp_path: Path) -> None:
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=Inbox("forbidden")) as site:
        browser = await site.visit()
        clicked = await browser.post("fleet/answer", asked="a", choice="yes", for_all_same=True)
        assert clicked["taken"] == "unclear" and clicked["told"]
        assert (await browser.post("fleet/answer", asked="a", text="yes"))["taken"] == "answer"


async def test_only_known_changes_can_be_made_to_a_fleet(tmp_path: Path) -> None:
    fleet = Inbox()
    async with Talk(tmp_path, []) as talk, Site(talk.paths, fleet=fleet) as site:
        browser = await site.visit()
        for what in ("pick", "merge", "cancel", "retry"):
            await browser.post("fleet/change", what=what, fleet="f", tasks=["t"], attempt=2)
        await browser.post("fleet/change", what="merge", fleet="f", attempt="2")
        for wrong in ({"what": "retry"}, {"what": "worker", "tasks": ["t"]}, {"what": ["merge"], "tasks": ["t"]}):
            assert (await browser.post("fleet/change", 400, fleet="f", **wrong))["error"]
        (report,) = (await browser.get("fleet?open=f/t"))["closely"]["f/t"]["attempts"]
        assert "3" in report["open"] and (await browser.get("fleet/diff?fleet=f&task=t&attempt=2"))["diff"] == "f t 2"
    assert fleet.done == [
        *((what, "f", "t", 2) for what in ("pick", "merge", "cancel", "retry")),
        ("work", "f"),
        ("merge", "f", "", 0),
    ]


async def test_a_yes_for_the_tests_on_the_page_is_a_rule_for_the_session(tmp_path: Path) -> None:
    runs = [
        decide(act("shell.run", command=f"python3 -m pytest -q{more}"), next_step="continue") for more in ("", " -x")
    ]
    async with Talk(tmp_path, [*runs, HELLO], mode="ask") as talk, Site(talk.paths) as site:
        browser = await site.visit()
        async with browser.reading() as reader:
            await browser.post(f"sessions/{ID}/say", text="test it")
            gate = await asked(reader)
            assert any("every ordinary run of pytest" in choice["label"] for choice in gate["choices"])
            said, question_id = "yes, and don't ask again for pytest", gate["question_id"]
            taken = await browser.post(f"sessions/{ID}/answer", text=said, question_id=question_id)
            assert taken["taken"] == "answer"
            await reader.until(lambda: reader.turns_over)
            assert len(reader.asked) == 1 and len(reader.of("notice", about="allowed")) == 1
