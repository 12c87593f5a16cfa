"""What the model is told when the user asks something back at a Gate, and in which language the user spoke last."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.data import say
from tests.journeys.plans import Typing, until, when
from tests.journeys.story import Story, act, decide, respond

OK = decide(respond("ok"))
WISH = {"en": "document big.py", "ja": "big.py に説明を入れて"}


def goes_on(*calls: dict[str, Any]) -> dict[str, Any]:
    return decide(*calls, next_step="continue")


def notices(story: Story) -> list[str]:
    return [event.what.key for event in story.all(Noticed)]


@pytest.mark.parametrize(
    ("language", "said", "risk"),
    [
        ("en", "what makes this one medium? it's only a docstring", ("medium", "every change in the work folder")),
        ("ja", "なぜ危険度が中なのですか？", ("中", "作業フォルダー内の変更")),
    ],
)
async def test_a_question_back_is_answered_with_the_risk_and_the_lines_around_the_change(
    tmp_path: Path, language: str, said: str, risk: tuple[str, str]
) -> None:
    read = [act("file_ops.read_file", path=name) for name in ("other.py", "big.py")]
    edit = act("file_ops.edit_file", path="big.py", old="line 900\n", new='line 900\n"""Doc."""\n')
    explained = when(said, {"answer": "Because it writes."})
    story = Typing(tmp_path, [goes_on(*read), goes_on(edit), explained, OK], mode="ask", language=language)
    for name in ("other.py", "big.py"):
        text = "".join(f"line {number}\n" for number in range(1000))
        (story.folder / name).write_text(text if name == "big.py" else text.replace("line", "other"))
    turn = asyncio.create_task(story.tell(WISH[language]))
    await story.asked()
    await story.chat.take(said)
    await until(story, lambda: "gate.explained" in notices(story))
    request = "\n".join(message.text for message in story.model.requests[2].messages)
    words = Words(language)
    assert all(part in request for part in (*risk, words("gate.reversible"), "line 880\n", "line 920\n"))
    assert "line 100\n" not in request and "other 900" not in request
    assert WISH[language] in request, "what the user wants stays"
    await story.chat.take("1")
    await turn


@pytest.mark.parametrize(
    ("language", "answer", "key"),
    [
        ("en", "yes, and don't ask again for a.py in this session", "allowed_session"),
        ("ja", "はい、このセッションの間は a.py についてもう聞かなくていいです", "allowed_session"),
        ("en", "3", "allowed_session"),
        ("en", "yes", ""),
    ],
)
async def test_the_model_is_told_once_what_a_yes_allows_from_now_on(
    tmp_path: Path, language: str, answer: str, key: str
) -> None:
    write = act("file_ops.write_file", path="a.py", content="x = 1\n")
    story = Typing(tmp_path, [goes_on(write), OK, OK], mode="ask", language=language)
    turn = asyncio.create_task(story.tell("write a.py"))
    await story.asked()
    await story.chat.take(answer)
    await turn
    await story.tell("hello")
    rule = "a.py" if answer != "3" else "*.py"
    told = [Words(language).phrase(say("permission.edits", pattern=pattern)) for pattern in ("a.py", "*.py")]
    texts = [message.text for message in story.session.state.messages]
    assert sum(any(line in text for line in told) for text in texts) == bool(key)
    line = note(language, key or "allowed_session", rule=Words(language).phrase(say("permission.edits", pattern=rule)))
    assert any(line in text for text in texts) == bool(key)


@pytest.mark.parametrize(
    ("wish", "no", "in_other"),
    [
        ("big.py に説明を入れて", "no, use an f-string instead", True),
        ("document big.py", "いいえ、短くしてください", True),
        ("document big.py", "no, use an f-string instead", False),
    ],
)
async def test_words_at_a_gate_in_another_language_are_the_latest_words(
    tmp_path: Path, wish: str, no: str, in_other: bool
) -> None:
    edit = act("file_ops.write_file", path="big.py", content="x\n")
    story = Typing(tmp_path, [goes_on(edit), OK, OK], mode="ask")
    turn = asyncio.create_task(story.tell(wish))
    await story.asked()
    await story.chat.take(no)
    await turn
    line = "The user's latest words, in whose language you go on: "
    assert (line in story.prompt()) is in_other
    await story.tell("and now?")
    assert line not in story.prompt()
