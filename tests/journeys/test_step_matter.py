"""The request for a step holds what its plan is about: the wish, the words about it, and the lines of files that were
seen for it. Earlier matters of the conversation stay out."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.i18n.template import note
from tests.journeys.plans import Typing, job_ended
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import of_step
from tests.journeys.test_step_sight import read
from tests.journeys.test_step_steering import of_worker, report_of
from tests.journeys.test_steps import RUN_ALL

LANGUAGES = pytest.mark.parametrize("language", ["en", "ja"])
WISH = {
    "en": "I'd love a parse_first in parser.py that takes many formats",
    "ja": "parser.py に、複数の書式を試す parse_first がほしい",
}
EARLIER = {"en": "which field does number_7 stand for?", "ja": "number_7 はどの項目のことですか"}
CHANGE = {"en": "please put a note into notes.txt", "ja": "notes.txt にメモを書いてください"}
YES = {"en": "yes, without asking for the edits", "ja": "はい、編集は確認なしで"}
LABELS = {
    "wish": {"en": "The user's wish and corrections, in their words: ", "ja": "ユーザーの望みと訂正 (原文): "},
    "found": {"en": "What the conversation found: ", "ja": "会話で分かったこと: "},
    "files": {
        "en": "Files the step may change, by the plan: ",
        "ja": "計画でこのステップが変えてよいファイル: ",
    },
}
MADE = act("file_ops.write_file", path="made.py", content="A = 1\n")
STEP = {
    "name": "Code",
    "description": "parser.py: parse_first, after def parse_all; its name goes into `__all__`",
    "success": "made.py exists",
    "depends_on": [],
    "files": ["parser.py", "made.py"],
}
NUMBERS = [f"number_{number} = {number}  # {'x' * 20}" for number in range(1, 601)]


def long_file(top: Path) -> list[str]:
    lines = [
        *NUMBERS[:300],
        "def parse_all(text):",
        *[f"    part_{number}(text)" for number in range(60)],
        *NUMBERS[300:],
    ]
    lines[14] = "__all__ = ['parse_all']"
    (top / "parser.py").write_text("\n".join(lines) + "\n")
    return lines


def proposed(step: dict[str, Any], text: str) -> dict[str, Any]:
    return decide(act("plan_tool.propose", text=text, steps=[step]), step="PLANNING", next_step="pending_user")


async def first_request(story: Story, *words: str) -> str:
    for wish in words:
        await story.tell(wish)
    assert (await job_ended(story)).status == "completed"
    texts = map(story.prompt, range(len(story.model.requests)))
    return next(text for text in texts if LABELS["files"][story.session.state.language] in text)


def value(request: str, label: str, language: str) -> str:
    return request.partition(LABELS[label][language])[2].partition("\n")[0]


def matters(language: str, *looks: Any) -> list[Any]:
    """A question that is answered, a change, and then a plan of its own."""
    write = act("file_ops.write_file", path="notes.txt", content="a note\n")
    return [
        read("parser.py", start_line=100, end_line=150),
        decide(respond("It is the seventh field.")),
        decide(write, next_step="continue"),
        decide(respond("The note is written.")),
        *looks,
        proposed(STEP, "parse_first"),
        RUN_ALL,
        of_worker(True, language, "Code", MADE),
        report_of(language),
    ]


@LANGUAGES
async def test_the_wish_is_the_plans_own_and_the_yes_goes_with_it(tmp_path: Path, language: str) -> None:
    story = Story(tmp_path, matters(language), native=True, language=language)
    long_file(story.folder)
    request = await first_request(story, EARLIER[language], CHANGE[language], WISH[language], YES[language])
    assert value(request, "wish", language) == f"{WISH[language]} / {YES[language]}"
    assert "seventh field" not in request and "The note is written." not in request
    assert LABELS["found"][language] not in request
    assert value(request, "files", language) == "parser.py, made.py"


@LANGUAGES
async def test_the_pieces_are_those_that_were_seen_for_the_plan(tmp_path: Path, language: str) -> None:
    """A search with lines around its matches counts as seen. A piece that ends shortly before the end of the file goes
    on to the end, and a lone line is left out."""
    looks = [
        decide(act("file_ops.grep", pattern="__all__", context=6), next_step="continue"),
        read("parser.py", start_line=600, end_line=656),
        read("parser.py", start_line=400, end_line=400),
    ]
    story = Story(tmp_path, matters(language, *looks), native=True, language=language)
    lines = long_file(story.folder)
    request = await first_request(story, EARLIER[language], CHANGE[language], WISH[language], YES[language])

    def quoted(first: int, last: int) -> bool:
        heading = note(language, "piece_of_file", path="parser.py", first=str(first), last=str(last), total="661")
        return f"[{heading}: " in request and "\n".join(lines[first - 1 : last]) in request

    assert quoted(9, 21) and quoted(600, 661)
    assert lines[119] not in request, "read for the earlier matter"
    assert lines[399] not in request


async def test_of_an_earlier_look_the_lines_near_a_named_definition_are_kept(tmp_path: Path) -> None:
    looks = [read("parser.py", start_line=200, end_line=380), decide(respond("Seen."))]
    later = [*matters("en", read("parser.py", start_line=640, end_line=661))]
    story = Story(tmp_path, [*looks, *later], native=True)
    lines = long_file(story.folder)
    request = await first_request(story, "look at it", EARLIER["en"], CHANGE["en"], WISH["en"], YES["en"])
    assert "parser.py, lines 299-341 of 661" in request and "\n".join(lines[298:341]) in request
    assert lines[250] not in request and lines[370] not in request


async def test_what_the_step_names_as_code_stands_in_it_though_nobody_has_read_it(tmp_path: Path) -> None:
    """The whole file would be too long, and only other lines of it were seen."""
    step = STEP | {"description": "parser.py: parse_all() takes parse_first() into account; `number_500` goes"}
    replies = [read("parser.py", start_line=20, end_line=40), proposed(step, "parse_first"), RUN_ALL]
    story = Story(tmp_path, [*replies, of_step("Code", MADE), report_of("en")], native=True)
    lines = long_file(story.folder)
    request = await first_request(story, WISH["en"], "yes")
    assert "parser.py, lines 301-340 of 661" in request and "\n".join(lines[300:340]) in request
    assert lines[350] not in request and "parser.py, lines 20-40 of 661" in request


async def test_a_wish_that_points_back_brings_what_was_said_before(tmp_path: Path) -> None:
    replies = [
        decide(respond("The mistake is in parse_all.")),
        proposed(STEP, "the mistake"),
        RUN_ALL,
        of_step("Code", MADE),
        report_of("en"),
    ]
    story = Story(tmp_path, replies, native=True)
    long_file(story.folder)
    request = await first_request(story, "why does it fail?", "make a plan for it", "yes")
    assert value(request, "wish", "en") == "why does it fail? / make a plan for it / yes"
    assert value(request, "found", "en") == "The mistake is in parse_all."


async def test_what_is_said_to_the_chat_while_a_job_runs_is_not_said_to_its_steps(tmp_path: Path) -> None:
    """The first step's question at the Gate is open meanwhile."""
    second = STEP | {"name": "Tests", "depends_on": [1], "files": ["test_parser.py"], "success": "other.py exists"}
    plan = decide(act("plan_tool.propose", text="parse_first", steps=[STEP, second]), step="PLANNING")
    other = act("file_ops.write_file", path="other.py", content="A = 1\n")
    replies = [plan, RUN_ALL, of_step("Code", MADE), of_step("Tests", other)]
    replies += [decide(respond("A program that prints itself."), step="PLANNING"), report_of("en")]
    story = Typing(tmp_path, replies, mode="ask", native=True)
    await story.tell(WISH["en"])
    await story.tell("yes")
    first = await story.asked()
    await story.tell("by the way, what is a quine?")
    assert story.chat.answer(first.question_id, "yes").result().meaning == "answer"
    assert story.chat.answer((await story.asked(2)).question_id, "yes").result().meaning == "answer"
    assert (await job_ended(story)).status == "completed"
    texts = map(story.prompt, range(len(story.model.requests)))
    request = next(text for text in texts if "Your step: Tests" in text)
    assert "quine" not in request and value(request, "wish", "en") == f"{WISH['en']} / yes"
