"""One question at a time, in both languages, and never inside code or quotations."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from duckflow.i18n.asking import QuestionStream, ends_asking, last_question, one_question

CUT = {
    "Which name? Which folder? Tests too?": "Which name?",
    "Fine. Which name? (a.py is taken.) And which folder?": "Fine. Which name? (a.py is taken.)",
    "Some questions:\n1. Which DB?\n2. Which port?\n\n3. Auth?": "Some questions:\n1. Which DB?",
    "いいですね。どのフォルダーですか？それとも新しく作りますか？": "いいですね。どのフォルダーですか？",
    "タブにしますか。スペースにしますか。": "タブにしますか。",
    "了解です。どのファイルを直しましょうか。テストも書きませんか。": "了解です。どのファイルを直しましょうか。",
    "どれでしょうか。名前は？": "どれでしょうか。",
    "> Why? How?\n\nThat is yours. Which one? Or both?": "> Why? How?\n\nThat is yours. Which one?",
    "確認です:\n・名前は？\n・場所は？": "確認です:\n・名前は？",
}
WHOLE = [
    "Which name?",
    "Which one?\nA) Tabs?\nB) Spaces?",
    "Which one?\n\n1. Tabs\n2. Spaces",
    "どちらにしますか？\n1. タブ？\n2. スペース？",
    "Why does it fail? Because of the path. Shall I fix it?",
    "Did it work? Yes, it did.",
    'Use `a ? b : c?` or "why? how?" here, ok?',
    "```js\na ? b : c\nx?.y ? 1 : 2\n```\nShall I run it?",
    "See https://example.org/?a=1?b=2 first. Ok?",
    "> What? Why?\n\nThat is the question you quoted.",
    "Ok? Thanks",
    "何が原因でしょうか。パスでした。直しますか。",
    "動くかどうか。試します。",
    "no question at all",
    "",
]


@pytest.mark.parametrize(("said", "kept"), CUT.items())
def test_the_first_of_several_questions_at_the_end_is_kept(said: str, kept: str) -> None:
    assert one_question(said) == kept and ends_asking(kept)


@pytest.mark.parametrize("said", WHOLE)
def test_everything_else_stays_as_it_is(said: str) -> None:
    assert one_question(said) == said


def test_the_last_question_is_found() -> None:
    assert last_question("Fine. Version 2.0 is out.\nGood. Which folder?") == "Which folder?"
    assert last_question("了解です。どこですか？") == "どこですか？"
    assert last_question("Some:\n1. Which port? (8080)") == "Which port? (8080)"


@given(some.text(alphabet='ab か ?？.。す\n`"1-)「」', max_size=60))
def test_a_streamed_text_ends_as_the_whole_text_would(said: str) -> None:
    stream = QuestionStream()
    shown = "".join(map(stream.feed, said)) + stream.end()
    assert one_question(said) == one_question(one_question(said))
    assert shown.startswith(one_question(said)) or one_question(said).startswith(shown.rstrip())


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "text",
    ["a? " * 7000, "a? " * 7000 + "b.", "?(" * 10_000, "?" * 20_000 + "x", "- a?\n" * 4000, "Eh? " + "ab " * 7000],
)
def test_the_time_for_a_long_text_grows_in_proportion_even_in_small_pieces(text: str) -> None:
    begin = time.process_time()
    one_question(text)
    ends_asking(text)
    stream = QuestionStream()
    for start in range(0, len(text), 40):
        stream.feed(text[start : start + 40])
    stream.end()
    assert time.process_time() - begin < 5


def test_text_too_long_for_a_question_is_passed_on() -> None:
    stream, text = QuestionStream(), "Really? " + "and so on " * 3000
    passed = "".join(stream.feed(text[start : start + 40]) for start in range(0, len(text), 40))
    assert text.startswith(passed) and len(passed) > len(text) - 5000
