"""Tasks handed to agents: a fresh context, the same Gate and record, and a report that comes back."""

import asyncio
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from duckflow.errors import ProviderRefused
from duckflow.events.types import ActionFinished, MessageAdded, Noticed
from duckflow.events.work import AgentEnded, AgentStarted, TaskChanged
from duckflow.i18n.words import Words
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.message import ToolCall, Usage
from duckflow.state.question import Answer, Question
from duckflow.ui.console.printer import Glyphs
from duckflow.ui.console.status_bar import job_bars
from tests.cli.shell import Shell
from tests.journeys.calling import called
from tests.journeys.cast import calls, hand, on_stage, reading
from tests.journeys.plans import PROPOSE, job_ended, until, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_steps import REPORT, RUN_ALL, a_plan

PIECES, LINES = 36, 130
DONE = decide(respond("Done."))


def big_module() -> str:
    """3,500 lines, one of which says how much."""
    parts = [f"def step_{number:04d}(value):\n    return value + {number}\n" for number in range(1, 1167)]
    parts[801] = "def rate_for(value):\n    return value * 3\n"
    return "\n".join(parts)


def written(path: str, text: str = "A = 1\n") -> dict[str, object]:
    return act("file_ops.write_file", path=path, content=text)


async def test_an_exploration_of_a_large_file_leaves_the_conversation_small(tmp_path: Path) -> None:
    text = big_module()
    count = text.count("\n")
    starts = [1 + round(number * (count - LINES) / (PIECES - 1)) for number in range(PIECES)]
    pieces = [calls(reading("big.py", start, start + LINES - 1)) for start in starts]
    edit = act("file_ops.edit_file", path="big.py", edits=[{"old": "return value * 3", "new": "return value * 4"}])
    found = decide(respond("big.py:2404 rate_for: `return value * 3`."))
    main = [calls(hand("Where in big.py is the rate?")), calls(edit), decide(respond("The rate is 4."))]
    story, cast = on_stage(tmp_path, main, {"explore-1": [*pieces, found]})
    (story.folder / "big.py").write_text(text)
    assert await story.tell("change the rate in big.py to 4") == "done"
    assert (story.folder / "big.py").read_text() == text.replace("return value * 3", "return value * 4")
    assert count > 3490 and len(cast.sizes("explore-1")) == PIECES + 1
    assert max(cast.sizes()) < 30_000, "with the tools"
    assert not story.questions, "to read on is no reason to ask"
    assert "explore-1: done\nFound:\nbig.py:2404 rate_for" in cast.asked(number=1)
    assert "return value + 1166" not in cast.asked(), "what it read stays with it"
    assert all(event.message.job for event in story.all(MessageAdded) if "return value + 1166" in event.message.text)
    assert "file_ops_write_file" not in [tool.name for tool in cast.parts["explore-1"].requests[0].tools]


async def test_four_run_side_by_side_and_a_fifth_waits(tmp_path: Path) -> None:
    agents = {f"explore-{number}": [ScriptedReply(f"Found {number}.", chunk=3, delay=0.05)] for number in range(1, 6)}
    main = [calls(*(hand(f"look for {number}") for number in range(1, 6))), DONE]
    story, cast = on_stage(tmp_path, main, agents)
    assert await story.tell("look for five things") == "done"
    assert cast.together == 4
    told = cast.asked()
    assert all(f"explore-{number}: done\nFound:\nFound {number}." in told for number in range(1, 6))
    assert [one.status for one in story.session.state.agents.values()] == ["done"] * 5


class Refusing(Story):
    def answer(self, question: Question) -> Answer | None:
        return Answer(choice="no", text="not there" if len(self.questions) == 1 else "")


async def test_what_it_wants_to_change_is_asked_for_with_its_name(tmp_path: Path) -> None:
    work = [calls(written("a.py")), calls(written("b.py"))]
    main = [calls(hand("write it", "work")), DONE]
    story, cast = on_stage(tmp_path, main, {"work-1": work}, mode="ask", story=Refusing)
    assert await story.tell("write it") == "done"
    assert [question.job_name for question in story.questions] == ["work-1", "work-1"]
    assert not list(story.folder.iterdir())
    assert "not there" in cast.asked("work-1"), "a no with a wish is heard by the agent"
    assert "work-1: stopped" in cast.asked() and "Open: " in cast.asked()
    assert story.session.state.pending_gate is None


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_at_a_limit_it_reports_what_it_has(tmp_path: Path, language: str) -> None:
    looks = [calls(reading(f"{name}.py")) for name in "abc"]
    last = decide(respond("So far: a.py has A."))
    settings = {"agent": {"agent_loops": 4}}
    main = [calls(hand("look")), DONE]
    story, cast = on_stage(tmp_path, main, {"explore-1": [*looks, last]}, language=language, settings=settings)
    for name in "abc":
        (story.folder / f"{name}.py").write_text(f"{name} = 1\n")
    assert await story.tell("look") == "done"
    assert ("Report now" in cast.asked("explore-1")) == (language == "en")
    assert "So far: a.py has A." in cast.asked()


async def test_what_it_does_beyond_a_limit_is_not_done_and_part_of_the_work_comes_back(tmp_path: Path) -> None:
    work = [calls(written(f"{name}.py")) for name in "abcdef"]
    main = [calls(hand("write it", "work")), DONE]
    story, cast = on_stage(tmp_path, main, {"work-1": work}, settings={"agent": {"agent_loops": 4}})
    assert await story.tell("write it") == "done"
    assert sorted(path.name for path in story.folder.iterdir()) == ["a.py", "b.py", "c.py"]
    told = cast.asked()
    assert "work-1: capped\nChanged: a.py, b.py, c.py\n" in told and "used up its 4 replies" in told


async def test_its_tokens_and_its_time_are_limited_too(tmp_path: Path) -> None:
    dear, cheap = (Usage(prompt_tokens=tokens, cost_usd=tokens / 4000, calls=1) for tokens in (900, 10))
    work = ScriptedReply("I look.", calls=(ToolCall(call_id="c1", name="file_ops_list_files"),), usage=dear)
    main = [calls(hand("look"), hand("wait", "work")), DONE]
    slow = ScriptedReply("Never.", delay=30)
    agents = {"explore-1": [work, work], "work-2": [replace(called(calls(written("a.py"))), usage=cheap), slow]}
    settings = {"agent": {"agent_tokens": 1000, "agent_seconds": 3}}
    story, cast = on_stage(tmp_path, main, agents, settings=settings)
    assert await story.tell("look") == "done"
    told = cast.asked()
    assert "used up its 1000 tokens" in told and "used up its 3 seconds" in told
    assert "Changed: a.py" in told, "what was done in time"
    agents_now = story.session.state.agents
    assert [one.status for one in agents_now.values()] == ["capped", "capped"]
    assert agents_now["explore-1"].usage.cost_usd == pytest.approx(0.45)
    assert story.session.state.usage.cost_usd == pytest.approx(0.4525), "counted in the session's"
    assert "explore-1: 2 calls" in await story.chat.run_command("/cost")
    shown = await story.chat.run_command("/agents")
    assert "explore-1 (stopped at a limit" in shown and "$0.4500" in shown and "Kinds: explore, work, review" in shown
    report = await story.chat.run_command("/agents work-2")
    assert "Task: wait" in report and "Changed: a.py" in report and "Still open: " in report


async def test_one_that_goes_in_circles_is_stopped_by_its_own_pacemaker(tmp_path: Path) -> None:
    same = calls(act("shell.run", command="cat nothing.txt"))
    main = [calls(hand("look")), DONE]
    story, cast = on_stage(tmp_path, main, {"explore-1": [same] * 12})
    assert await story.tell("look") == "done"
    [asked] = story.questions
    assert asked.kind == "duck_call" and asked.job_name == "explore-1"
    assert "explore-1: stopped" in cast.asked()
    assert story.session.state.vitals.mood == 1.0, "the conversation itself is well"


async def test_one_ceiling_holds_for_a_turn_and_its_agents(tmp_path: Path) -> None:
    looks = [calls(act("shell.run", command=f"echo {number}")) for number in range(8)]
    settings = {"pacemaker": {"limits": {"highest": 3, "fallback": 3, "ceiling": 3}}}
    main = [calls(hand("look")), DONE]
    story, cast = on_stage(tmp_path, main, {"explore-1": looks}, settings=settings)
    assert await story.tell("look") == "pacemaker"
    assert len(cast.sizes("explore-1")) == 3 and [one.job for one in story.questions] == [""]
    assert story.session.state.agents["explore-1"].status == "capped"


async def test_escape_stops_them_with_the_turn_and_they_can_go_on(tmp_path: Path) -> None:
    slow = ScriptedReply("Never.", delay=30)
    agents = {
        "explore-1": [calls(reading("a.py")), slow, decide(respond("It says A."))],
        "work-2": [calls(written("b.py")), slow],
    }
    main = [
        calls(hand("look"), hand("write", "work")),
        calls(hand("and now?", "explore-1")),
        DONE,
    ]
    story, cast = on_stage(tmp_path, main, agents)
    (story.folder / "a.py").write_text("A = 1\n")
    turn = asyncio.create_task(story.tell("look and write"))
    await until(story, lambda: len(story.all(ActionFinished)) == 2)
    bars = job_bars(story.session.state, Words("en"), Glyphs(), 60)
    assert [bar.split(" ")[:2] for bar in bars] == [["⚙", "explore-1"], ["⚙", "work-2"]]
    assert bars[0].endswith(" file_ops.read_file a.py")
    story.chat.interrupt()
    assert await turn == "interrupted"
    assert {event.agent_id: event.status for event in story.all(AgentEnded)} == dict.fromkeys(agents, "stopped")
    assert {event.agent_id: event.report.changed for event in story.all(AgentEnded)}["work-2"] == ("b.py",)
    assert await story.tell("go on") == "done"
    assert "explore-1" in cast.asked(number=1) and "work-2" in cast.asked(number=1), "the model knows"
    told = cast.asked("explore-1")
    assert "A = 1" in told and "and now?" in told, "it goes on from where it was"
    assert "explore-1: done\nFound:\nIt says A." in cast.asked()
    assert len(story.session.state.agents) == 2


async def test_one_is_stopped_and_another_told_something_and_the_turn_goes_on(tmp_path: Path) -> None:
    slow = ScriptedReply("Never.", delay=30)
    agents = {
        "explore-1": [
            calls(reading("a.py")),
            replace(called(calls(reading("a.py", 1, 1))), delay=2.0),
            decide(respond("Tests.")),
        ],
        "work-2": [calls(written("b.py")), slow],
    }
    main = [calls(hand("look"), hand("write", "work")), DONE]
    story, cast = on_stage(tmp_path, main, agents)
    (story.folder / "a.py").write_text("A = 1\n")
    turn = asyncio.create_task(story.tell("look and write"))
    await until(story, lambda: len(story.all(ActionFinished)) == 2)
    assert await story.chat.run_command("/agents tell explore-1 only the tests") == ""
    assert await story.chat.run_command("/agents stop work-2") == ""
    assert await turn == "done"
    ended = {event.agent_id: event.status for event in story.all(AgentEnded)}
    assert ended == {"explore-1": "done", "work-2": "stopped"}
    assert "only the tests" in cast.asked("explore-1")
    assert "work-2: stopped\nChanged: b.py\nOpen: you stopped it" in cast.asked()
    assert await story.chat.run_command("/agents stop work-2") == "No agent called work-2 is working."


async def test_what_was_done_before_a_failure_comes_back(tmp_path: Path) -> None:
    fails = ScriptedReply(error=ProviderRefused("model.scripted_error", kind="refused"))
    main = [calls(hand("write", "work")), DONE]
    story, cast = on_stage(tmp_path, main, {"work-1": [calls(written("a.py")), fails]})
    assert await story.tell("write") == "done"
    assert "ERROR: work-1: failed\nChanged: a.py\nOpen: " in cast.asked()


async def test_a_killed_one_is_reported_as_cut_off(tmp_path: Path) -> None:
    slow = ScriptedReply("Never.", delay=30)
    main = [calls(hand("write", "work"))]
    story, _ = on_stage(tmp_path, main, {"work-1": [calls(written("a.py")), slow]})
    turn = asyncio.create_task(story.tell("write"))
    await until(story, lambda: bool(story.all(ActionFinished)))
    again = story.restart([])
    turn.cancel()
    [agent] = again.session.state.agents.values()
    assert agent.status == "interrupted" and agent.report and agent.report.changed == ("a.py",)
    assert "work-1" in again.session.state.messages[-1].text
    assert "interrupted" in await again.chat.run_command("/agents")
    await again.close()


async def test_two_that_want_the_same_file_and_one_that_leaves_its_own(tmp_path: Path) -> None:
    main = [
        calls(hand("one", "work", files=["src/*.py"]), hand("two", "work", files=["src/a.py"]), hand("three", "work")),
        DONE,
    ]
    agents = {
        "work-1": [calls(written("src/a.py")), calls(written("other.py")), decide(respond("other.py needs B."))],
        "work-2": [calls(written("src/b.py")), calls(written("mine.py")), DONE],
    }
    story, cast = on_stage(tmp_path, main, agents)
    (story.folder / "src").mkdir()
    assert await story.tell("write") == "done"
    told = cast.asked()
    assert "src/a.py belongs to work-1" in told, "refused before it begins"
    assert "other.py is not yours" in cast.asked("work-1") and "other.py needs B." in told
    assert "src/b.py belongs to work-1" in cast.asked("work-2", 1)
    assert sorted(path.name for path in story.folder.rglob("*.py")) == ["a.py", "mine.py"]


async def test_a_step_of_a_job_waits_until_the_agent_with_its_file_is_over(tmp_path: Path) -> None:
    step = replace(called(calls(written("a.py", "A = 2\n"))), when="Your step: first", delay=0.3)
    main = [
        PROPOSE,
        when("Make a plan for this goal", a_plan(("first", ""))),
        RUN_ALL,
        calls(hand("one", "work", files=["a.py"])),
        DONE,
        step,
        REPORT,
    ]
    agent = [calls(written("a.py")), replace(called(DONE), delay=1)]
    story, _ = on_stage(tmp_path, main, {"work-1": agent})
    await story.tell("do the work")
    await story.tell("yes")
    assert await story.tell("and one thing more") == "done"
    await job_ended(story)
    waits = next(event for event in story.all(Noticed) if event.what.key == "job.step_waits_file")
    assert dict(waits.what.values) == {"step": "first", "other": "work-1", "file": "a.py"}
    order = [event for event in story.events if isinstance(event, AgentEnded | TaskChanged)]
    assert isinstance(order[0], AgentEnded) and isinstance(order[1], TaskChanged)


async def test_no_spelling_of_a_path_leads_out_of_its_files(tmp_path: Path) -> None:
    ways = ("src/[x]/../../new.py", "src/link/new.py", "src/./../new.py", "~/new.py")
    agents = {"work-1": [calls(written("src/[x]/a.py")), *(calls(written(path)) for path in ways), DONE]}
    story, cast = on_stage(tmp_path, [calls(hand("one", "work", files=["src"])), DONE], agents)
    for name in ("src", "lib"):
        (story.folder / name).mkdir()
    (story.folder / "src/link").symlink_to("../lib")
    assert await story.tell("write") == "done"
    assert [path.name for path in story.folder.rglob("*.py")] == ["a.py"], cast.asked("work-1")


@pytest.mark.parametrize(
    ("mode", "made"), [("full-auto", True), ("auto", True), ("auto-edit", False), ("ask", False), ("plan", False)]
)
async def test_its_commands_are_held_by_the_mode_and_not_by_its_files(tmp_path: Path, mode: str, made: bool) -> None:
    """As docs/agents.md says."""
    agents = {"work-1": [calls(act("shell.run", command="touch new.py")), DONE]}
    story, _ = on_stage(tmp_path, [calls(hand("one", "work", files=["src"])), DONE], agents, mode=mode)
    await story.tell("write")
    assert (story.folder / "new.py").exists() is made
    assert [question.job for question in story.questions] == (["work-1"] if mode in ("ask", "auto-edit") else [])


async def test_a_review_reads_the_changes_and_what_was_run(tmp_path: Path) -> None:
    check = act("shell.run", command="python -B -c 'import a'")
    main = [calls(written("a.py", "RATE = 3\n"), check), calls(hand("is it right?", "review")), DONE]
    finding = decide(respond("a.py:1: RATE should be 4: the request says so."))
    review = [calls(reading("a.py"), written("a.py", "RATE = 4\n")), finding]
    story, cast = on_stage(tmp_path, main, {"review-1": review})
    assert await story.tell("set the rate to 4") == "done"
    asked = cast.asked("review-1", 0)
    assert "+RATE = 3" in asked and "exit code 0" in asked
    assert (story.folder / "a.py").read_text() == "RATE = 3\n", "it changes nothing"
    assert "a.py:1: RATE should be 4" in cast.asked()


async def test_all_that_they_changed_is_taken_back_with_the_turn(tmp_path: Path) -> None:
    """Files and commands of two at a time: commands run one after the other, and show what they did themselves."""
    log = "python -c 'import time; print(time.time()); time.sleep(0.2); print(time.time())' >> log.txt"
    agents = {
        f"work-{number}": [
            calls(written(f"{number}.py"), act("shell.run", command=f"{log} && touch made{number}")),
            DONE,
        ]
        for number in (1, 2)
    }
    main = [calls(hand("one", "work"), hand("two", "work")), DONE]
    story, cast = on_stage(tmp_path, main, agents)
    assert await story.tell("write") == "done"
    times = [float(line) for line in (story.folder / "log.txt").read_text().split()]
    assert times == sorted(times) and len(times) == 4, "never two at once"
    assert "exit code 0" in cast.asked() and {"1.py", "2.py"} <= set(story.session.state.files_changed)
    await story.chat.undo.restore(back=True)
    assert not list(story.folder.iterdir())


async def test_its_question_comes_with_its_name_and_the_answer_goes_to_it(tmp_path: Path) -> None:
    asks = decide(respond("Which database shall I use?"), next_step="pending_user")
    main = [calls(hand("write", "work")), DONE]
    story, cast = on_stage(tmp_path, main, {"work-1": [asks, calls(written("db.py")), DONE]})
    story.answers = [Answer(choice="free", text="PostgreSQL")]
    assert await story.tell("write") == "done"
    [question] = story.questions
    assert question.job_name == "work-1" and "PostgreSQL" in cast.asked("work-1")
    assert not any("PostgreSQL" in one.text for one in story.session.state.messages)


async def test_models_that_write_decisions_hand_tasks_on_too_and_small_ones_do_not(tmp_path: Path) -> None:
    main = [decide(hand("look"), next_step="continue", step="PLANNING"), DONE]
    tries = decide(hand("do it for me"), next_step="continue"), decide(written("a.py"), next_step="continue")
    story, cast = on_stage(tmp_path, main, {"explore-1": [*tries, DONE]}, native=False)
    assert await story.tell("look") == "done"
    assert [*story.session.state.agents] == ["explore-1"], "agents make no further ones"
    assert story.session.state.agents["explore-1"].status == "done"
    assert not (story.folder / "a.py").exists() and "agent.run(task, kind, files?)" in cast.asked(number=0)
    (tmp_path / "small").mkdir()
    small = Story(tmp_path / "small", [decide(hand("look")), DONE], settings={"prompts": {"profile": "compact"}})
    await small.tell("look")
    assert "agent.run" not in small.prompt(0) and not small.all(AgentStarted)


@pytest.mark.slow
def test_killed_for_real_it_is_told_of_by_the_next_process(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    hands = decide(hand("write", "work"), next_step="continue")
    slow = {"text": "Never.", "delay": 60}
    model = shell.script(hands, decide(written("a.py"), next_step="continue"), slow)
    command = [sys.executable, "-m", "duckflow", "-m", model, "--mode", "full-auto", "-p", "write"]
    with subprocess.Popen(command, cwd=shell.work, env=shell.environment, stdin=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not (shell.work / "a.py").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.kill()
    again = shell.run("-c", "-m", shell.script(DONE), "-p", "/agents")
    assert "work-1 (interrupted" in again.stdout, again
