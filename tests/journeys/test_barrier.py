"""A question is a barrier: who asks does not act in the same breath, in whatever form it asks. A check that says no is
one, too."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import ActionFinished, Noticed, ReplyRejected
from duckflow.i18n.asking import ends_asking, only_wonders
from duckflow.i18n.template import note
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.data import say
from duckflow.state.message import ToolCall
from duckflow.state.question import NOBODY, Answer
from tests.journeys.story import Story, act, decide, respond

WRITE = act("file_ops.write_file", path="a.txt", content="x\n")
RUN = act("shell.run", command="touch b.txt")
ASKED = [
    ("en", "May I write a.txt? If so, I will."),
    ("en", "Please confirm that I may write a.txt."),
    ("en", "I can use tabs or spaces. Your call."),
    ("ja", "a.txt を書き換えてもよろしいでしょうか。"),
    ("ja", "どちらにするか決めてください。"),
    ("ja", "承認をお待ちしています"),
]
TOLD = {"en": "I will write a.txt now.", "ja": "これから a.txt を書きます。"}
NATIVE = pytest.mark.parametrize("native", [False, True], ids=["json", "native"])


@NATIVE
@pytest.mark.parametrize(("language", "question"), ASKED)
async def test_who_asks_does_not_act(tmp_path: Path, native: bool, language: str, question: str) -> None:
    both = decide(respond(question), WRITE, next_step="continue", rationale="it is asked for")
    story = Story(tmp_path, [both, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [question] and not (story.folder / "a.txt").exists()
    assert len(story.model.requests) == 1


@NATIVE
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_who_waits_for_the_user_does_not_act_either(tmp_path: Path, language: str, native: bool) -> None:
    both = decide(respond(TOLD[language]), WRITE, next_step="pending_user")
    story = Story(tmp_path, [both], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [TOLD[language]] and not (story.folder / "a.txt").exists()


IN_PASSING = [
    ("en", "Is the old table still needed, or may I drop it? For now I write a.txt."),
    ("en", "Would you rather have YAML? I begin with a.txt.\nIt is short."),
    ("en", "Should I use tabs or spaces? I will start with tabs."),
    ("en", "May I overwrite the old one? I'm going ahead with a backup."),
    ("en", "Python 3.10 or 3.12? For now we target 3.12."),
    ("ja", "先にバックアップを取りましょうか？それでは a.txt を書きます。"),
    ("ja", "名前は a.txt でよろしいですか。では書きます。"),
    ("ja", "タブとスペースのどちらにしましょうか。まずタブで進めます。"),
    ("ja", "上書きしてもよろしいですか？先にバックアップを取っておきます。"),
    ("ja", "ファイル名はどうしましょうか。仮に a.txt とします。"),
    ("ja", "型注釈も付けますか？ひとまず付けずに書きます。"),
]


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize("says_last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(("language", "text"), IN_PASSING)
async def test_who_asks_and_announces_to_go_on_waits_for_the_answer(
    tmp_path: Path, native: bool, says_last: bool, language: str, text: str
) -> None:
    """The model does not answer itself: the calls stay held until the user has answered, and then run."""
    actions = [WRITE, RUN, respond(text)] if says_last else [respond(text), WRITE, RUN]
    both = decide(*actions, next_step="continue", rationale="it is asked for")
    again = decide(WRITE, RUN, next_step="continue", rationale="it was asked for")
    story = Story(tmp_path, [both, again, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [text] and not list(story.folder.glob("*.txt")) and len(story.model.requests) == 1
    assert story.ending().why == say("turn.held", count=2) and story.ending().waits
    assert story.session.state.asked and story.session.state.asked in text.replace("。", "?").replace("？", "?")
    assert await story.tell("2") == "done"
    assert (story.folder / "a.txt").exists() and (story.folder / "b.txt").exists()


MAY_BE_THINKING_ALOUD = [
    ("en", "What's next? The text. I write a.txt."),
    ("en", "Is the old name used anywhere? I write a.txt to see."),
    ("ja", "本当にこの順番がいいのかな？ a.txt を書いて確かめます。"),
    ("en", "Should I worry about the cache? No, nothing reads it. I write a.txt."),
    ("en", "Should the old name stay? Nothing uses it. I write a.txt."),
    ("ja", "キャッシュを消した方がいいですか？いいえ、誰も読みません。a.txt を書きます。"),
]


@NATIVE
@pytest.mark.parametrize(("language", "text"), MAY_BE_THINKING_ALOUD)
async def test_a_question_that_may_be_thinking_aloud_holds_the_calls_once(
    tmp_path: Path, native: bool, language: str, text: str
) -> None:
    both = decide(respond(text), WRITE, next_step="continue", rationale="it is asked for")
    alone = decide(WRITE, next_step="continue", rationale="it was asked for")
    story = Story(tmp_path, [both, alone, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("go") == "done"
    written = [event for event in story.all(ActionFinished) if event.result.operation == WRITE["operation"]]
    assert len(written) == 1, "it runs only when it is called again without a question"
    assert note(language, "not_run_held") in "".join(message.text for message in story.model.requests[1].messages)
    assert len(story.model.requests) == 3


async def test_a_question_that_the_text_answers_itself_ends_as_an_answer(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Should I worry about it? No: nothing uses it."))], native=True)
    assert await story.tell("is it dangerous?") == "done"


@pytest.mark.parametrize(
    "text",
    [
        "Handing your wish on to the running job, for the code and the tests.",
        "Following your preference for tabs.",
        "Based on your feedback on the names, one line changes.",
        "As per your instructions for the tests.",
        "Taking over your wish for the changelog first.",
    ],
)
async def test_a_text_that_speaks_of_what_the_user_said_asks_nothing(tmp_path: Path, text: str) -> None:
    both = decide(respond(text), WRITE, next_step="continue", rationale="it is asked for")
    story = Story(tmp_path, [both, decide(respond("ok"))], native=True)
    assert await story.tell("write a.txt") == "done"
    assert (story.folder / "a.txt").exists() and len(story.model.requests) == 2


WONDERS = [
    ("en", "What does f return now?"),
    ("en", "Let me look at the tests. Why does the second one fail?"),
    ("en", "Where is the parser called from?"),
    ("en", "The import is gone. Does it still compile?"),
    ("en", "So what happens when the list is empty?"),
    ("ja", "f は今、何を返すのでしょうか。"),
    ("ja", "なぜ二つ目のテストが失敗するのか？"),
    ("ja", "この関数はどこから呼ばれているのか。"),
    ("ja", "これで本当に動くのだろうか？"),
    ("ja", "リストが空のとき何が起きるのか？"),
    ("ja", "なぜ None が来ているのでしょうか？"),
    ("ja", "テストを見てみます。この値はどこから来た？"),
    ("ja", "どうしてキャッシュが効かないのでしょう？"),
    ("ja", "この設定は何のためにあるのでしょうか？"),
    ("ja", "何が原因なのでしょうか。"),
]
NOW = {"en": "I write it now.", "ja": "では書きます。"}


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize(("language", "question"), WONDERS)
async def test_a_question_in_passing_costs_one_request_and_never_the_work(
    tmp_path: Path, native: bool, language: str, question: str
) -> None:
    """The reads beside it run at once, the calls that change something with the next reply."""
    look = act("file_ops.list_files", path=".")
    both = decide(respond(question), look, WRITE, RUN, next_step="continue", rationale="it is asked for")
    again = decide(respond(NOW[language]), WRITE, RUN, next_step="continue")
    story = Story(tmp_path, [both, again, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("write a.txt and b.txt") == "done"
    assert (story.folder / "a.txt").exists() and (story.folder / "b.txt").exists()
    assert len(story.model.requests) == 3
    results = [message.text for message in story.session.state.messages if message.role == "tool"]
    assert results[1:3] == [note(language, "not_run_held")] * 2 and note(language, "not_run_held") not in results[0]
    assert [event.what.values["count"] for event in story.all(Noticed) if event.what.key == "turn.held_once"] == [2]
    assert not story.session.state.asked and not story.session.state.five.open_questions


ANSWERED_BY_THE_WORK = [
    ("en", "Why does the test fail? I will look at it."),
    ("ja", "なぜ失敗するのでしょうか？ログを見てみます。"),
    ("ja", "タブを使います。次にテストを書きます。"),
]


@pytest.mark.parametrize(("language", "text"), ANSWERED_BY_THE_WORK)
async def test_a_question_that_the_work_answers_holds_nothing(tmp_path: Path, language: str, text: str) -> None:
    both = decide(respond(text), WRITE, next_step="continue", rationale="it is asked for")
    story = Story(tmp_path, [both, decide(respond("ok"))], language=language, native=True)
    assert await story.tell("write a.txt") == "done"
    assert (story.folder / "a.txt").exists() and len(story.model.requests) == 2


@pytest.mark.parametrize("again", ["", "I write it now."], ids=["silent", "spoken"])
async def test_a_held_call_that_is_made_again_keeps_its_reason(tmp_path: Path, again: str) -> None:
    """The note asks for the calls without the question, so nothing need stand before them."""
    made = (ToolCall(call_id="1", name="file_ops_write_file", arguments=json.dumps(WRITE["args"])),)
    replies = [
        ScriptedReply("What stands in a.txt now?", calls=made),
        ScriptedReply(again, calls=made),
        "It is written.",
    ]
    story = Story(tmp_path, replies, native=True)
    assert await story.tell("write a.txt") == "done"
    assert (story.folder / "a.txt").exists() and len(story.model.requests) == 3


async def test_another_call_without_a_word_has_no_reason(tmp_path: Path) -> None:
    others = [{"path": name, "content": "x\n"} for name in ("a.txt", "b.txt")]
    first, second = (
        (ToolCall(call_id=args["path"], name="file_ops_write_file", arguments=json.dumps(args)),) for args in others
    )
    replies = [ScriptedReply("What stands in a.txt now?", calls=first), ScriptedReply("", calls=second), "ok"]
    story = Story(tmp_path, replies, native=True)
    await story.tell("write a.txt")
    assert not list(story.folder.glob("*.txt")) and note("en", "unexplained") in story.prompt(2)


THINKING_ALOUD = """
なぜこのテストだけが落ちるのでしょうか？
なぜ None が来ているのでしょうか？
この値はどこから来た？
どこから来たのだろう？
なぜこうなっているのか？
どうしてキャッシュが効かないのでしょう？
誰がこの関数を呼んでいるのか？
いつこのファイルは作られたのだろうか？
この設定は何のためにあるのでしょうか？
どこでエラーが投げられている？
何が原因なのでしょうか。
本当にこれで十分なのだろうか？
このループはいつ終わるのか？
引数はいくつ渡されているのか？
なんで二回呼ばれてる？
この分岐に来ることはあるのかな？
どのタイミングで閉じられるのでしょうか？
なぜ import が失敗するのでしょうか？
何を返していたっけ？
このクラスは今も使われているのでしょうか？
さて、型はどう推論されるのか？
空文字だとどうなるのか？
どこに定義があるのでしょうか？
前はどうやって動いていた？
これ、なぜ必要だったのか？
この警告はどこから出ているのでしょう？
何がこの行を書き換えているのか…？
この型はいったい何を表しているのか？
どうやってここに到達するのでしょうか？
誰がロックを持ったままなのか？
あの関数はどう使われていたのでしょうか？
いつから壊れていた？
何回呼ばれているのだろうか？
この条件は成り立つのだろうか？
改行コードはどうなっている？
ほかにも同じ箇所があるのでしょうか？
"""
FOR_THE_USER = """
どこに置きますか？
どこに置く？
どう直しますか？
どうする？
何から始めますか？
何という名前にしますか？
なぜこの変更が必要なのか教えてください。
どちらにするのでしょうか？
削除してよいのでしょうか？
このまま進めていいのかな？
どうするのがいいのでしょうか？
いつまでに必要ですか？
誰が使いますか？
タブとスペース、どちらがいい？
上書きしてしまって大丈夫だろうか？
どの方法にするべきだろうか？
テストも書くべきでしょうか？
本当に消してよかったのでしょうか？
どこまでやりますか？
どんな形式で出力しますか？
いくつ作りますか？
何を入れたいのでしょうか？
どれを残すのがよいのだろうか？
これで進めるのでよいのか？
続けますか？
もう消していいのか？
何色にする？
ファイルはどこに保存すればよいのでしょうか？
なぜそれが欲しいのでしょうか？
どうしたいのでしょうか？
ブランチはどうしますか？
どのファイルを直せばよろしいでしょうか？
README も更新するのでしょうか？
どこまで直せば十分でしょうか？
古い方は残しておくのがいいですか？
英語と日本語、どちらで書けばよいですか？
何色がお好みですか？
このまま適用しても構わないのでしょうか？
いつ公開する予定ですか？
どのバージョンを使っているのでしょうか？
テストを先に書く？
名前は何にする？
"""


def test_a_question_for_the_user_is_never_taken_for_thinking_aloud() -> None:
    for questions, expected in ((THINKING_ALOUD, True), (FOR_THE_USER, False)):
        for question in questions.strip().splitlines():
            assert ends_asking(question, "ja") and only_wonders(question, "ja") is expected, question


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize(("language", "question"), WONDERS[3:7])
async def test_a_reply_that_asks_again_ends_with_its_question(
    tmp_path: Path, native: bool, language: str, question: str
) -> None:
    both = decide(respond(question), WRITE, RUN, next_step="continue")
    story = Story(tmp_path, [both, both], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert not (story.folder / "a.txt").exists() and story.session.state.asked
    assert story.ending().why == say("turn.held", count=2) and story.ending().waits


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize(("language", "question"), ASKED)
async def test_a_choice_says_how_many_steps_wait_for_it(
    tmp_path: Path, native: bool, language: str, question: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "seen.txt").write_text("seen\n")
    look = act("file_ops.read_file", path="seen.txt")
    both = decide(respond(question), WRITE, look, RUN, next_step="continue")
    story = Story(tmp_path, [both], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert story.ending().why == say("turn.held", count=2)
    assert [event.result.operation for event in story.all(ActionFinished)] == ["response", "file_ops.read_file"]


@NATIVE
@pytest.mark.parametrize(
    "action",
    [
        act("agent.run", task="write a.txt", kind="work"),
        act("shell.run", command="ls", background=True),
        act("plan_tool.propose", goal="write a.txt"),
    ],
    ids=lambda action: action["operation"],
)
async def test_what_sets_work_going_waits_too(tmp_path: Path, native: bool, action: dict[str, Any]) -> None:
    story = Story(tmp_path, [decide(respond("Shall I begin?"), action, next_step="continue")], native=native)
    assert await story.tell("go") == "pending_user"
    assert story.ending().why == say("turn.held", count=1) and len(story.model.requests) == 1


LEAVE = [
    ("en", "Shall I write a.txt?"),
    ("en", "May I go ahead with this?"),
    ("en", "Which one do you like better?"),
    ("ja", "a.txt に書いてもよろしいでしょうか。"),
    ("ja", "この内容で書き込みましょうか"),
]


@pytest.mark.one_in(4)
@NATIVE
@pytest.mark.parametrize("next_step", ["pending_user", "continue", "done"])
@pytest.mark.parametrize(("language", "question"), LEAVE)
async def test_who_asks_for_leave_has_not_acted_yet(
    tmp_path: Path, language: str, question: str, next_step: str, native: bool
) -> None:
    """Wherever in the list the question stands."""
    both = decide(WRITE, RUN, respond(question), next_step=next_step)
    story = Story(tmp_path, [both], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [question] and not list(story.folder.glob("*.txt"))
    assert story.ending().why == say("turn.held", count=2) and story.ending().waits


@pytest.mark.parametrize(("language", "question"), LEAVE)
async def test_who_asks_in_its_reasons_has_not_acted_either(tmp_path: Path, language: str, question: str) -> None:
    both = decide(WRITE, next_step="pending_user", rationale=question)
    story = Story(tmp_path, [both], language=language)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [question] and not (story.folder / "a.txt").exists()


REPORTED = [
    ("en", "I have written a.txt. Shall I run it?"),
    ("en", "Shall I also write b.txt?"),
    ("en", "Is there anything else?"),
    ("ja", "a.txt を書きました。実行してもよろしいですか。"),
    ("ja", "次に b.txt も書きましょうか。"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("next_step", ["pending_user", "done"])
@pytest.mark.parametrize(("language", "question"), REPORTED)
async def test_who_tells_of_a_held_step_as_done_hears_that_it_is_not(
    tmp_path: Path, language: str, question: str, next_step: str
) -> None:
    both = decide(WRITE, respond(question), next_step=next_step)
    again = decide(WRITE, next_step="continue")
    story = Story(tmp_path, [both, again, decide(respond("ok"))], language=language)
    assert await story.tell("write a.txt") == "done"
    assert note(language, "not_run_held") in story.prompt(1) and (story.folder / "a.txt").exists()


LEAVE_FOR_MORE = [
    ("en", "Shall I delete the old tables too?"),
    ("en", "May I continue with the clean-up?"),
    ("en", "The file was made by hand. May I overwrite it?"),
    ("ja", "続けて消してもよいですか？"),
    ("ja", "この設定は手で変更されました。上書きしてもよいですか？"),
]


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize(("language", "question"), LEAVE_FOR_MORE)
async def test_who_asks_for_leave_before_its_deeds_has_told_of_none(
    tmp_path: Path, language: str, question: str, native: bool
) -> None:
    """Whatever else the question speaks of: the model does not answer it itself."""
    both = decide(respond(question), WRITE, RUN, next_step="continue")
    again = decide(respond(TOLD[language]), WRITE, RUN, next_step="continue")
    story = Story(tmp_path, [both, again], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert len(story.model.requests) == 1 and not list(story.folder.glob("*.txt"))
    assert story.ending().why == say("turn.held", count=2)


@NATIVE
@pytest.mark.parametrize(("language", "end"), [("en", "Anything else?"), ("ja", "他にもありますか？")])
async def test_a_polite_end_before_the_work_does_not_lose_it(
    tmp_path: Path, language: str, end: str, native: bool
) -> None:
    both = decide(respond(end), WRITE, next_step="continue")
    again = decide(respond(NOW[language]), WRITE, next_step="continue")
    story = Story(tmp_path, [both, again, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("write a.txt") == "done"
    assert (story.folder / "a.txt").exists()


@NATIVE
async def test_who_waits_without_a_word_hears_what_was_held(tmp_path: Path, native: bool) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "seen.txt").write_text("what stands in it\n")
    look = act("file_ops.read_file", path="seen.txt")
    calls = [(one["operation"], one["args"] | {"reasoning": "it is asked for"}) for one in (WRITE, look, RUN)]
    made = [
        ToolCall(call_id=str(number), name=name.replace(".", "_"), arguments=json.dumps(args))
        for number, (name, args) in enumerate((*calls, ("decision", {"next_step": "pending_user"})))
    ]
    said = decide(WRITE, look, RUN, next_step="pending_user", rationale="it is asked for")
    waits = ScriptedReply("", calls=tuple(made)) if native else said
    story = Story(tmp_path, [waits, decide(respond("May I?"), next_step="pending_user")], native=native)
    assert await story.tell("go") == "pending_user"
    assert not (story.folder / "a.txt").exists() and not (story.folder / "b.txt").exists()
    prompt = story.prompt(1)
    assert note("en", "not_run_held") in prompt and "what stands in it" in prompt


@NATIVE
async def test_a_call_for_help_after_the_deeds_holds_them(tmp_path: Path, native: bool) -> None:
    asks = act("duck_call", text="May I write a.txt?")
    story = Story(tmp_path, [decide(WRITE, RUN, asks, next_step="continue")], native=native)
    assert await story.tell("go") == "pending_user"
    assert not (story.folder / "a.txt").exists() and not (story.folder / "b.txt").exists()
    assert story.ending().waits


async def test_who_takes_leave_has_asked_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(WRITE, act("exit", text="Bye."), next_step="done")])
    assert await story.tell("write a.txt and go") == "exit"
    assert (story.folder / "a.txt").exists()


@pytest.mark.parametrize(("language", "question"), [("en", "May I run it?"), ("ja", "実行してもよろしいでしょうか。")])
async def test_a_command_is_not_run_before_leave_is_given(tmp_path: Path, language: str, question: str) -> None:
    both = decide(act("shell.run", command="touch a.txt"), respond(question), next_step="pending_user")
    story = Story(tmp_path, [both], language=language)
    assert await story.tell("go") == "pending_user"
    assert story.said() == [question] and not (story.folder / "a.txt").exists()


@pytest.mark.parametrize("first", ["decision", "write"])
async def test_who_says_that_it_waits_does_not_act(tmp_path: Path, first: str) -> None:
    """With tools, too, wherever it is said."""
    waits = ToolCall(call_id="1", name="decision", arguments='{"next_step": "pending_user"}')
    write = ToolCall(call_id="2", name="file_ops_write_file", arguments=json.dumps(WRITE["args"]))
    calls = (waits, write) if first == "decision" else (write, waits)
    story = Story(tmp_path, [ScriptedReply("I will write a.txt.", calls=calls)], native=True)
    assert await story.tell("go") == "pending_user"
    assert not (story.folder / "a.txt").exists()


@NATIVE
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_who_says_what_it_does_goes_on(tmp_path: Path, native: bool, language: str) -> None:
    both = decide(respond(TOLD[language]), WRITE, next_step="continue")
    story = Story(tmp_path, [both, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("write a.txt") == "done"
    assert (story.folder / "a.txt").exists()


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize(("language", "text"), [("en", "I am stuck."), ("ja", "行き詰まりました。")])
async def test_a_call_for_help_is_a_barrier(tmp_path: Path, language: str, text: str, native: bool) -> None:
    both = decide(act("duck_call", text=text), WRITE, next_step="continue")
    story = Story(tmp_path, [both], language=language, native=native)
    assert await story.tell("go") == "pending_user"
    assert not (story.folder / "a.txt").exists()


async def test_who_wonders_and_only_looks_around_goes_on(tmp_path: Path) -> None:
    look = decide(act("file_ops.list_files", path="."), next_step="continue", rationale="Where is it defined?")
    story = Story(tmp_path, [look, decide(respond("Here."))], native=True)
    assert await story.tell("where is it?") == "done"


NO: list[tuple[str, dict[str, Any]]] = [
    ("en", {"constraint_check": "no: it may not be written"}),
    ("en", {"goal_consistency": "false"}),
    ("en", {"constraint_check": "violated", "confidence": "rather high"}),
    ("ja", {"constraint_check": "いいえ、書かない約束です"}),
    ("ja", {"goal_consistency": "いいえ"}),
    ("ja", {"constraint_check": "制約に違反します"}),
]
NEITHER = [
    ("en", "Noted", "not violated"),
    ("en", "I looked at it", "No constraints are violated."),
    ("ja", "了解", "違反なし"),
    ("ja", "確認しました", "はい"),
]


@NATIVE
@pytest.mark.parametrize(("language", "checks"), NO)
async def test_nothing_is_changed_against_its_own_check(
    tmp_path: Path, language: str, checks: dict[str, Any], native: bool
) -> None:
    if not native:
        checks = {name: check for name, check in checks.items() if name != "confidence"}
    against = decide(WRITE, next_step="continue", **checks)
    story = Story(tmp_path, [against, decide(respond("ok"), step="PLANNING")], language=language, native=native)
    assert await story.tell("go") == "done"
    assert not (story.folder / "a.txt").exists() and "tool.objection" in [
        event.result.for_user.key for event in story.all(ActionFinished)
    ]


@pytest.mark.one_in(2)
@NATIVE
@pytest.mark.parametrize(("language", "said", "sure"), NEITHER)
async def test_a_check_that_says_neither_is_asked_for_again(
    tmp_path: Path, language: str, said: str, sure: str, native: bool
) -> None:
    unsaid = decide(WRITE, next_step="continue", constraint_check=said)
    for_sure = decide(WRITE, next_step="continue", constraint_check=sure)
    story = Story(tmp_path, [unsaid, for_sure, decide(respond("ok"))], language=language, native=native)
    assert await story.tell("write a.txt") == "done"
    assert '"no: reason"' in story.prompt(1) and (story.folder / "a.txt").exists()
    assert len(story.model.requests) == 3 and len(story.all(ReplyRejected)) == 1


async def test_the_schema_says_what_a_check_may_be(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("ok"), step="PLANNING")])
    await story.tell("hello")
    fields = story.model.requests[0].schema
    assert fields
    for name in ("goal_consistency", "constraint_check"):
        allowed = re.compile(fields["properties"][name]["pattern"])
        assert allowed.search("yes") and allowed.search("no: 約束に反する") and not allowed.search("Noted")


@NATIVE
async def test_who_asks_hands_no_work_to_an_agent(tmp_path: Path, native: bool) -> None:
    hand = act("agent.run", kind="work", task="indent app.py with tabs")
    both = decide(respond("Tabs or spaces?"), hand, next_step="continue", rationale="it is asked for")
    story = Story(tmp_path, [both, decide(respond("ok"))], native=native)
    assert await story.tell("indent it") == "pending_user"
    assert story.said() == ["Tabs or spaces?"] and len(story.model.requests) == 1


@NATIVE
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_where_nobody_can_be_asked_the_model_hears_so_and_goes_on(
    tmp_path: Path, native: bool, language: str
) -> None:
    ends = decide(respond({"en": "The rest is done.", "ja": "残りは終わりました。"}[language]))
    asks = decide(act("file_ops.delete_file", path="old.txt"), next_step="continue")
    story = Story(tmp_path, [asks, decide(WRITE, next_step="continue"), ends], "ask", language, native=native)
    (story.folder / "old.txt").write_text("x\n")
    story.answers = [Answer(choice=NOBODY), Answer(choice="yes")]
    assert await story.tell("write a.txt, and delete old.txt") == "done"
    assert (story.folder / "a.txt").exists() and (story.folder / "old.txt").exists()
    prompt = story.prompt(1)
    assert note(language, "nobody") in prompt
    assert all(note(language, key) not in prompt for key in ("refused", "moved_no"))
    refused = say("vitals.cause.refused")
    assert not any(change.cause == refused for change in story.session.state.vitals_causes)
