"""A yes is only a yes when it is nothing else."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from duckflow.i18n.answer_scope import named_in
from duckflow.i18n.answer_words import may_be_goal, yes_or_no
from duckflow.i18n.answers import about_plan, read_answer, read_whole, without_reference

PHRASES = [
    json.loads(line)
    for line in Path(__file__).parents[1].joinpath("words/answers.jsonl").read_text("utf-8").splitlines()
]
YES = ["y", "Yes", "OK", "1", "１", "ｙｅｓ", "はい", "はい。", "お願いします", "どうぞ！", " yes "]
NO = ["n", "no", "No.", "2", "２", "いいえ", "やめて", "だめ"]
UNCLEAR = [
    *("", "maybe", "はい、でも名前を変えて", "yes but rename it", "12", "yes no", "?", "okay then do something else"),
    *("try again", "you sure", "good question", "it works on my machine", "I'll do it myself", "go back", "start over"),
    *(
        "もう一度お願いします",
        "変更をお願いします",
        "英語でお願いします",
        "進め方を変えて",
        "やり直して",
        "消さないで進めて",
    ),
    *(
        "テストなしで進めて",
        "大丈夫なら進めて",
        "問題があります",
        "いいの",
        "なるほど",
        "ありがとう",
        "やめないで",
        "わかりません",
    ),
]
EITHER = ["いいです", "大丈夫です。", "あ、いいです", "I'm good", "I’m fine, thanks."]
"""Alone, these may be a yes or a polite no."""
AGREES = [one["text"] for one in PHRASES if one["kind"] == "yes"]
WISHES = [
    *(
        "but use tabs",
        "if the tests pass",
        "only step 1",
        "except the docs",
        "after lunch",
        "in Rust",
        "what is step 2",
    ),
    *(
        "でもステップ3は外して",
        "ただしタブで",
        "テストが通ったら",
        "二番目だけ",
        "READMEは除いて",
        "明日から",
        "名前はappで",
    ),
]


@pytest.mark.parametrize("text", YES)
def test_a_plain_yes_is_a_yes(text: str) -> None:
    answer = read_answer(text)
    assert answer is not None and answer.choice == "yes"


@pytest.mark.parametrize("text", NO)
def test_a_plain_no_is_a_no(text: str) -> None:
    answer = read_answer(text)
    assert answer is not None and (answer.choice, answer.text) == ("no", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no, use tabs", "use tabs"),
        ("no: because it is wrong", "because it is wrong"),
        ("いいえ、名前が違います", "名前が違います"),
        ("no use tabs", "use tabs"),
        ("don't delete the files", "don't delete the files"),
    ],
)
def test_a_no_may_say_why(text: str, reason: str) -> None:
    answer = read_answer(text)
    assert answer is not None and (answer.choice, answer.text) == ("no", reason)


@pytest.mark.parametrize("text", UNCLEAR)
def test_anything_else_is_unclear(text: str) -> None:
    assert read_answer(text) is None


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase["text"])
def test_people_say_yes_and_no_in_many_ways(phrase: dict[str, str]) -> None:
    found = yes_or_no(phrase["text"]) or "other"
    assert found == phrase["kind"] or (found, phrase["text"]) == ("other", "ちょっと待って、考える")


@given(some.sampled_from(AGREES), some.sampled_from(["", " ", ", ", "、", ". ", "。"]), some.sampled_from(WISHES))
def test_a_yes_with_a_wish_or_a_condition_is_no_yes(yes: str, gap: str, wish: str) -> None:
    assert yes_or_no(f"{yes}{gap or ' '}{wish}") != "yes" and yes_or_no(f"{wish}{gap or ' '}{yes}") != "yes"


@given(some.text(max_size=60))
def test_a_text_with_unknown_words_is_never_a_yes(text: str) -> None:
    assert read_answer(f"{text}\u2603 not this") is None or read_answer(f"{text}\u2603 not this") != "yes"


def test_a_long_answer_is_read_at_once() -> None:
    begin = time.process_time()
    for text in ("はい" * 20_000, "ok " * 20_000, "それで" * 20_000, "no, " + "a" * 50_000):
        read_answer(text)
    assert time.process_time() - begin < 3


@pytest.mark.parametrize(
    ("text", "verdict", "scope"),
    [
        ("yes, delete it", "other", ""),
        ("yes delte", "other", ""),
        ("ok, proced with it pls", "yes", ""),
        ("absolutly", "yes", ""),
        ("y & put it in the bg", "yes", ""),
        ("いいっすよ", "yes", ""),
        ("やっちゃってください", "yes", ""),
        ("かまわんよ", "yes", ""),
        ("yes, we have backups", "yes", ""),
        ("問題なさそうなのでお願いします", "yes", ""),
        ("yes, that has a bug", "other", ""),
        ("うん、それは本番だし", "other", ""),
        ("sure, and the earth is flat", "other", ""),
        ("yeah because that always works", "other", ""),
        ("yeah right", "other", ""),
        ("great, just great", "other", ""),
        ("はいはい、わかったわかった", "other", ""),
        ("ちょっと自信ないな", "other", ""),
        ("I wouldn't say no, but I wouldn't say yes", "other", ""),
        ("ちょっと待って", "other", ""),
        ("thanks but no thanks", "no", ""),
        ("やらなくていいので、まずログを読んでください", "no", ""),
        ("それはやりすぎなのでやめて", "no", ""),
        ("go for it, but it's not a free pass", "yes", "once"),
        ("今回は許すけど、毎回OKってわけじゃないからね", "yes", "once"),
        ("yes for this single run, keep asking for the rest", "yes", "once"),
        ("approve everything of this sort till I log off", "yes", "session"),
        ("yes, I don't need to confirm curl again", "yes", "session"),
        ("sure, same goes for all .ts files", "yes", "session"),
        ("yes、このターミナル閉じるまで全部許可", "yes", "session"),
        ("yes, in a new folder forever", "other", ""),
    ],
)
def test_an_answer_is_read_by_its_clauses_and_endings(text: str, verdict: str, scope: str) -> None:
    answer = read_whole(text)
    assert (answer.verdict, answer.scope) == (verdict, scope)


@pytest.mark.parametrize(
    ("text", "deeds", "verdict"),
    [
        ("yes, delete it", ["delete"], "yes"),
        ("yes, delete it, and don't ask again", ["delete"], "yes"),
        ("yes, delete it", ["write"], "other"),
        ("don't delete it", ["delete"], "no"),
        ("yes, delete the other one", ["delete"], "other"),
        ("yes, delete that too", ["delete"], "other"),
        ("start over", ["run"], "other"),
        ("はい、削除で問題ないです", ["delete"], "yes"),
        ("取り消して", ["delete"], "no"),
        ("消してから進めて", ["delete"], "other"),
        ("pls run `npm install`", ["run", "npm", "install"], "yes"),
        ("not now", ["run", "echo", "not", "now"], "no"),
    ],
)
def test_what_was_asked_about_may_be_said_once_more(text: str, deeds: list[str], verdict: str) -> None:
    assert read_whole(text, "en", frozenset(deeds)).verdict == verdict


@pytest.mark.parametrize(
    "text",
    [
        "Sure, that file isn't needed anymore",
        "yes, I no longer use these scripts",
        "はい、もう使っていないファイルです",
        "うん、もう要らないから消していいよ",
    ],
)
def test_who_needs_a_thing_no_longer_agrees_only_that_it_is_deleted(text: str) -> None:
    assert read_whole(text, "en", frozenset({"delete"})).verdict == "yes"
    assert read_whole(text, "en", frozenset({"write"})).verdict == "other"


@pytest.mark.parametrize(
    "text",
    [
        "fine, it is no longer needed",
        "thanks, I don't need it anymore",
        "OK, I don't need help anymore",
        "うん、もう使わないので結構です",
        "いいです、もういらないので",
        "もういらないからいいよ",
    ],
)
def test_who_may_need_the_action_no_longer_does_not_agree(text: str) -> None:
    assert read_whole(text, "en", frozenset({"delete"})).verdict != "yes"


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("hold on, let me look at the other tests first", True),
        ("hang on a moment please, I want to check something in the spec first", True),
        ("hold on. We have to look at what the other team did there", True),
        ("just a second, I'm still reading the second half of that diff", True),
        ("待って、隣のテストをもう一度確認したいので", True),
        ("ちょっと待って、先にテストを見るから", True),
        ("warte, ich lese noch den Rest der anderen Datei", True),
        ("hold on, use tabs instead", False),
        ("hold on, I want you to use tabs", False),
        ("wait, I don't want that", False),
        ("no, let me look first", False),
        ("待って、タブにしてください", False),
        ("待って、それは違います", False),
    ],
)
def test_who_says_wait_and_what_they_do_meanwhile_has_not_decided(text: str, waits: bool) -> None:
    answer = read_whole(text, "de" if text.startswith("warte") else "en")
    assert answer.waits == waits and (not waits or answer.verdict == "other")


SCOPES = [
    json.loads(line)
    for line in Path(__file__).parents[1].joinpath("words/scopes.jsonl").read_text("utf-8").splitlines()
]


def test_a_whole_answer_says_how_far_it_goes() -> None:
    for row in SCOPES:
        answer = read_whole(row["text"])
        read = (answer.verdict, answer.scope, answer.condition and answer.verdict == "other", answer.background)
        expected = (row["kind"], row["scope"], row["condition"], row["background"])
        assert read == expected or (read[2] and read[0] == row["kind"]), row["text"]
        assert row["about"].lower() in answer.about.lower(), row["text"]


@pytest.mark.parametrize(
    ("text", "verdict", "scope", "about", "background"),
    [
        ("ja, und frag nicht mehr nach", "yes", "session", "", False),
        ("ja, frag mich bei pytest nicht mehr", "yes", "session", "pytest", False),
        ("ja, für alle Tests", "yes", "session", "Tests", False),
        ("ja, aber nur dieses Mal", "yes", "once", "", False),
        ("ja, immer", "yes", "always", "", False),
        ("ja, im Hintergrund", "yes", "", "", True),
        ("Entschuldigung, ja, mach weiter", "yes", "", "", False),
        ("nein, und frag nicht mehr", "no", "", "", False),
        ("ja, wenn die Tests laufen", "other", "", "", False),
        ("ja, für alle Dateien außer setup.py", "other", "", "", False),
        ("du brauchst mich nicht zu fragen", "other", "", "", False),
    ],
)
def test_a_third_language_says_how_far_a_yes_goes(
    text: str, verdict: str, scope: str, about: str, background: bool
) -> None:
    answer = read_whole(text, "de")
    assert (answer.verdict, answer.scope, answer.about, answer.background) == (verdict, scope, about, background)


@pytest.mark.parametrize("begin", ["", "yes, and don't ask again for ", "はい、今後は", "ok for all "])
@pytest.mark.parametrize("piece", ["pytest ", "a", "don't ", "is fine ", "テストは", "確認", "all the "])
def test_an_answer_made_to_be_slow_is_read_at_once(begin: str, piece: str) -> None:
    started = time.process_time()
    read_whole(begin + (piece * 300)[: 295 - len(begin)])
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("language", "about", "names"),
    [("en", "the tests", ("test",)), ("en", "test and testing", ("test", "and", "test")), ("ja", "テスト", ("test",))],
)
def test_the_names_in_a_scope_are_found(language: str, about: str, names: tuple[str, ...]) -> None:
    assert named_in(about, language) == names


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("what happens to people who already call it by the old name", True),
        ("hm, which files change", True),
        ("does it touch the lock file", True),
        ("what the heck, go ahead", False),
        ("whatever", False),
    ],
)
def test_a_question_without_a_question_mark_is_recognized(said: str, asks: bool) -> None:
    assert read_whole(said).asks is asks


@pytest.mark.parametrize("named", ["eslint", "every pytest run", "the prettier runs", "mypy and ruff"])
@pytest.mark.parametrize("stretch", ["today", "this session", "this week"])
def test_a_name_before_a_stretch_of_time_is_never_dropped(named: str, stretch: str) -> None:
    """Without the name the yes would hold for everything that was asked about."""
    read = read_whole(f"yes, and for {named} {stretch}")
    assert read.verdict != "yes" or not read.scope or read.about


@pytest.mark.parametrize(
    "stretch", ["for the rest of the day", "until the end of this session", "while we are in this chat"]
)
def test_a_stretch_of_time_alone_is_a_scope(stretch: str) -> None:
    read = read_whole(f"yes, {stretch}")
    assert (read.verdict, read.scope, read.about) == ("yes", "session", "")


@pytest.mark.parametrize(
    ("about", "names"), [("docs の方", ("docs",)), ("テストのほう", ("test",)), ("the docs ones", ("docs",))]
)
def test_words_that_only_point_are_no_names(about: str, names: tuple[str, ...]) -> None:
    assert named_in(about) == names


@pytest.mark.parametrize("text", EITHER)
def test_a_polite_word_that_may_mean_no_thanks_is_neither(text: str) -> None:
    assert read_answer(text, language="ja") is None
    assert read_whole(f"はい、{text}" if text[0] != "I" else f"Yes, {text}", "ja").verdict == "yes"


@pytest.mark.parametrize("text", ["別に構いません", "別に問題ありません"])
def test_not_minding_is_a_yes(text: str) -> None:
    assert read_whole(text, "ja").plain_yes


@pytest.mark.parametrize("text", ["not yet", "Not yet.", "not quite yet", "wait", "まだ", "まだです。"])
def test_not_yet_leaves_the_question_open_as_wait_does(text: str) -> None:
    assert read_whole(text, "ja").waits


@pytest.mark.parametrize(
    ("text", "scope", "about"),
    [
        ("yes, but don't background it", "", ""),
        ("go ahead, and please do not send it to the background", "", ""),
        ("ok, so never push this into the background", "", ""),
        ("はい、ただしバックグラウンドにはしないで", "", ""),
        ("OK、裏では走らせないでください", "", ""),
        ("はい、でも裏で動かさずにお願いします", "", ""),
        ("うん、この一回に限って", "once", ""),
        ("いいよ、今回に限る", "once", ""),
        ("ok until we end the chat", "session", ""),
        ("yes until I close this session", "session", ""),
        ("yes, always for make lint", "always", "make lint"),
        ("sure, always for the formatter", "always", "formatter"),
    ],
)
def test_the_place_and_the_scope_of_a_yes_are_no_conditions(text: str, scope: str, about: str) -> None:
    answer = read_whole(text)
    assert (answer.verdict, answer.scope, answer.about) == ("yes", scope, about)
    assert not answer.background and not answer.condition


@pytest.mark.parametrize("text", ["少し待っていてください", "ちょっと待っていて", "待っていてほしいです"])
def test_to_be_kept_waiting_is_to_wait(text: str) -> None:
    assert read_whole(text).waits and read_whole(text).verdict != "yes"


@pytest.mark.parametrize(
    "text", ["yes, always with a backup", "ok, always with the network off", "yes, always with sudo?"]
)
def test_what_always_comes_with_is_no_scope(text: str) -> None:
    assert read_whole(text).verdict == "other"


@pytest.mark.parametrize(
    ("text", "language", "agrees"),
    [
        ("それならOK", "ja", True),
        ("そういうことならいいですよ", "ja", True),
        ("ならお願いします", "ja", True),
        ("なるほど、それなら進めてください", "ja", True),
        ("だったら大丈夫です、やってください", "ja", True),
        ("if that's the case, go ahead", "en", True),
        ("in that case sure", "en", True),
        ("ok, if so yes", "en", True),
        ("ah I see, in that case please do", "en", True),
        ("fine, in that case", "en", True),
        ("それならやめておきます", "ja", False),
        ("テストが通るならOK", "ja", False),
        ("それなら先にバックアップを取って", "ja", False),
        ("READMEだけならいいよ", "ja", False),
        ("それならどうして消すの?", "ja", False),
        ("in that case no", "en", False),
        ("if the tests pass, yes", "en", False),
        ("in that case use tabs", "en", False),
        ("if so, yes, but only the README", "en", False),
        ("if nobody objects, go ahead", "en", False),
        ("それならいいよ", "ja", True),
        ("ならいいよ", "ja", True),
        ("わかった、それならお願い", "ja", True),
        ("そういうことならOK", "ja", True),
        ("if so, yes", "en", True),
        ("in that case yes", "en", True),
        ("I see, in that case go ahead", "en", True),
        ("yes, but only in that case", "en", False),
        ("yes, just in that case", "en", False),
        ("if that's the case in all files, yes", "en", False),
        ("そうならいいね", "ja", False),
        ("ならないようにして", "ja", False),
    ],
)
def test_a_condition_that_only_points_back_is_none_after_an_answer(text: str, language: str, agrees: bool) -> None:
    answer = read_answer(without_reference(text, language), language=language)
    assert (answer is not None and answer.choice == "yes") is agrees


@pytest.mark.parametrize(
    ("text", "language", "all_edits"),
    [
        ("いいですね。編集のたびに聞かなくていいので進めてください", "ja", True),
        ("OK、個々の編集の確認は不要です。始めて", "ja", True),
        ("はい、変更ごとの確認はいりません", "ja", True),
        ("お願いします。一つ一つのファイルは聞かなくていいです", "ja", True),
        ("進めて。どの編集も確認なしでいいよ", "ja", True),
        ("yes, and don't ask about every single edit", "en", True),
        ("go ahead, no need to ask for each file", "en", True),
        ("looks good, you don't have to ask before each change", "en", True),
        ("sure, don't ask me for individual edits", "en", True),
        ("perfect, do it without asking about each of the edits", "en", True),
        ("はい、編集のたびに聞いてください", "ja", False),
        ("いいよ、ただしファイルごとに確認して", "ja", False),
        ("OK、テストの実行は聞かなくていいです", "ja", False),
        ("はい、README.mdは聞かなくていい", "ja", False),
        ("このプランはまだ聞きたいことがある", "ja", False),
        ("yes, but ask me for each edit", "en", False),
        ("yes, and don't ask for the docs", "en", False),
        ("go ahead, don't ask about the network", "en", False),
        ("ok, no need to ask for .md files", "en", False),
        ("don't you want to ask for each edit?", "en", False),
        ("はい。このプランの編集はもう全部聞かずにやって。", "ja", True),
        ("いいね、ファイルごとにいちいち聞かなくていいから、裏で進めて", "ja", True),
        ("yes, go ahead, and don't ask about the other edits either", "en", True),
    ],
)
def test_a_plan_approved_in_own_words_keeps_its_scope(text: str, language: str, all_edits: bool) -> None:
    answer = read_whole(text, language)
    allows = answer.plain_yes and answer.scope in ("session", "always")
    means_plan = not named_in(answer.about, language) or bool(about_plan(answer.about, language))
    assert (allows and means_plan) is all_edits


@pytest.mark.parametrize(
    ("text", "language", "goal"),
    [
        ("Run all the tests once more", "en", True),
        ("please run all the tests again", "en", True),
        ("Start the server on port 8080", "en", True),
        ("Build all the docs pages", "en", True),
        ("Finish this module with tests", "en", True),
        ("Implement that parser in Rust", "en", True),
        ("Run only the slow tests", "en", True),
        ("全部のテストをもう一度実行してください", "ja", True),
        ("Try the other branch and tell me", "en", True),
        ("run it please, thanks", "en", False),
        ("go ahead and run the tests", "en", False),
        ("yes, run all the tests", "en", False),
        ("ok for all of it, thanks", "en", False),
        ("go ahead with the plan", "en", False),
        ("fine for me, go ahead", "en", False),
        ("no, only the docs", "en", False),
        ("proceed with the second one", "en", False),
        ("do it as you proposed", "en", False),
        ("はい、全部お願いします", "ja", False),
        ("run it in the background", "en", False),
        ("Execute the plan now please", "en", False),
    ],
)
def test_an_order_with_an_object_of_its_own_is_no_reply(text: str, language: str, goal: bool) -> None:
    assert may_be_goal(text, language) is goal


@pytest.mark.parametrize(
    ("text", "verdict", "scope"),
    [
        # What is always allowed says nothing against a no to this one thing.
        ("cargo may always run, but this one: no", "no", ""),
        ("npm is fine any time, but do not do this", "no", ""),
        ("make はいつでもいいけど、これはだめ", "no", ""),
        # A stop after the action refuses nothing.
        ("write the first file, then stop", "other", ""),
        ("一つ目を書いて、そこで止まって", "other", ""),
        # A first word that refuses may belong to a name.
        ("no hurry", "other", ""),
        ("cancel step 3", "other", ""),
        ("can't we use a copy", "other", ""),
        ("no, wait, yes", "other", ""),
        # A sigh agrees to the scope that it is said with, and alone says too little.
        ("仕方ないな、今回だけだよ", "yes", "once"),
        ("まあいいか、進めて", "yes", ""),
        ("仕方ない", "other", ""),
        ("仕方ない、自分でやるよ", "other", ""),
        # A polite request is an order.
        ("裏で静かに進めてもらえると助かります", "yes", ""),
        ("実行してもらえますか", "yes", ""),
        ("教えてもらえますか", "other", ""),
        # What runs forever is not what is allowed forever.
        ("yes, run forever", "other", ""),
        ("yes, black is always allowed here", "yes", "always"),
        ("you can always say no", "other", ""),
        ("ok, you can always undo it", "other", ""),
        ("今日はいいです", "other", ""),
        ("聞かずに進めてたよね", "other", ""),
    ],
)
def test_classes_of_answers_that_are_easily_misread(text: str, verdict: str, scope: str) -> None:
    reading = read_whole(text)
    assert (reading.verdict, reading.scope) == (verdict, scope)
