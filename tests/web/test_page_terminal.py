"""What a terminal can do: the page can do it too, or its documentation says why not."""

import re
from pathlib import Path

from duckflow.cli.arguments import SUBCOMMANDS, make_parser
from duckflow.i18n.words import Words
from duckflow.web.doing import OWN_WAYS
from tests.journeys.story import decide, respond
from tests.web.site import ID, Site, Talk

DOCS = (Path(__file__).parents[2] / "docs" / "page.md").read_text(encoding="utf-8")
LIST = DOCS.partition("What the terminal can do and the page cannot")[2].partition("\n## ")[0]
ENGLISH = Words("en")
OPTION = re.compile(r"^  (-[^\n]*)", re.MULTILINE)
KEY = re.compile(r"(?:Ctrl|Shift|Alt)\+\w+")


def test_every_option_subcommand_and_key_has_its_place_or_a_reason() -> None:
    options = [
        re.findall(r"(?<![\w-])--?[\w-]+", row) for row in OPTION.findall(make_parser("", ENGLISH).format_help())
    ]
    assert len(options) > 20
    missing = [names for names in options if not any(re.search(rf"`{name}[`\s]", LIST) for name in names)]
    assert missing == [["-h", "--help"]]
    assert [name for name in SUBCOMMANDS if not re.search(rf"`(?:duckflow )?{name}[` ]", LIST)] == []
    assert [key for key in KEY.findall(ENGLISH("help.keys")) if key not in LIST] == []


async def test_every_slash_command_is_carried_out_when_it_is_typed(tmp_path: Path) -> None:
    async with Talk(tmp_path, [decide(respond("Hello."))] * 3) as talk, Site(talk.paths) as site:
        conversation, browser = talk.built.conversation, await site.visit()
        await conversation.say("hello")
        names = [command.name for command in conversation.commands if command.name not in OWN_WAYS]
        async with browser.reading() as reader:
            for name in names:
                taken = await browser.post(f"sessions/{ID}/say", text=f"/{name}")
                assert taken["taken"] == "command", name
                await reader.until(lambda name=name: reader.of("command", line=f"/{name}") or conversation.questions)
                for question in conversation.questions:
                    conversation.answer(question.question_id, choice="no")
                conversation.interrupt()
        assert all(f"`/{name}`" in LIST for name in OWN_WAYS)
