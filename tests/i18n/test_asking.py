"""What asks the user something, in any form."""

import json
from pathlib import Path

import pytest

from duckflow.i18n.asking import ends_asking

PHRASES = [
    json.loads(line)
    for line in Path(__file__).parents[1].joinpath("words/questions.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase["text"])
def test_a_question_is_recognized_without_its_mark(phrase: dict[str, str]) -> None:
    assert ends_asking(phrase["text"]) is phrase["asks"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Shall I go on? If so, I will run the tests.", True),
        ("Which one?\n1. fast\n2. safe", True),
        ("どちらにしますか。\n- A\n- B\nお待ちしています。", True),
        ("Why does it fail? Because the path is wrong.", False),
        ("```\nContinue?\n```", False),
        ("", False),
    ],
)
def test_text_behind_a_question_may_belong_to_it(text: str, asked: bool) -> None:
    assert ends_asking(text) is asked
