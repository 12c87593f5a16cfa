"""The history in a prompt fits the budget in real tokens, and has the user's first and latest message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.real_tokens import real_tokens
from duckflow.memory.bubble import Bubble
from duckflow.memory.digest import Digest
from duckflow.memory.entries import Scores
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import history_budget
from duckflow.state.action import Action, Decision, TaskProfile
from duckflow.state.agent import Context
from duckflow.state.message import PAST, Message, Role
from duckflow.state.phase import Phase

ROLES: list[Role] = ["user", "assistant", "tool", "system"]
WORDS = st.sampled_from(
    [
        "the file ",
        "def run(self):\n    return 1\n",
        "設定を変えて",
        "テスト",
        "Error: x failed\n",
        "snake_case_name ",
        "42, ",
    ]
)


def repeated(pieces: list[str], times: int) -> str:
    return "".join(pieces) * times


TEXTS = st.builds(repeated, st.lists(WORDS, max_size=12), st.integers(1, 60))
MESSAGES = st.lists(st.builds(Message, role=st.sampled_from(ROLES), text=TEXTS))


def size(messages: list[Message]) -> int:
    return sum(real_tokens(message.text) + 4 for message in messages)


def said(messages: list[Message]) -> list[str]:
    """Returns the texts without the notes on messages that are left out."""
    return [message.text for message in messages if not message.message_id.startswith(PAST)]


def shown_after(messages: list[Message], budget: int) -> list[Message]:
    """Builds a prompt after every message, as in a conversation, and returns the last one."""
    bubble = Bubble(MemorySettings())
    shown: list[Message] = []
    for number in range(len(messages)):
        bubble.follow(messages[: number + 1])
        bubble.fit(budget)
        shown = bubble.view(budget)
    return shown


@settings(max_examples=60)
@given(MESSAGES, st.integers(min_value=1000, max_value=6000))
def test_the_budget_holds_with_the_first_and_latest_message(messages: list[Message], budget: int) -> None:
    shown = shown_after(messages, budget)
    assert size(shown) <= budget * 1.05
    ids = [message.message_id for message in shown]
    assert len(set(ids)) == len(ids)
    users = [message.message_id for message in messages if message.role == "user"]
    assert not users or {users[0], users[-1]} <= set(ids)
    assert not messages or messages[-1].message_id in ids


def test_the_latest_result_stays_even_if_a_message_stands_between_it_and_its_call() -> None:
    messages = [
        Message(role="user", text="read it"),
        Message(role="assistant", text="the file " * 330),
        Message(role="system", text=""),
        Message(role="tool", text="the file " * 120),
    ]
    shown = shown_after([*(Message(role="user", text="") for _ in range(10)), *messages], 1000)
    assert messages[-1].message_id in [message.message_id for message in shown]


def test_history_is_not_changed_and_order_is_kept() -> None:
    messages = [Message(role="user", text=f"{number} " + "x y z " * 80) for number in range(100)]
    before = [message.text for message in messages]
    shown = shown_after(messages, 2000)
    assert [message.text for message in messages] == before
    numbers = [int(message.text.split()[0]) for message in shown if message.role == "user"]
    assert numbers == sorted(numbers) and numbers[0] == 0 and numbers[-1] == 99


def test_a_very_long_message_keeps_its_head_and_tail() -> None:
    shown = shown_after([Message(role="user", text="begin " + "word " * 50_000 + " end")], 4000)
    assert shown[0].text.startswith("begin") and shown[0].text.endswith("end") and "left out" in shown[0].text


def test_a_result_never_stands_without_its_call() -> None:
    messages = [Message(role="user", text="go")]
    for number in range(50):
        messages += [
            Message(role="assistant", text=f"call {number} " * 30),
            Message(role="tool", text=f"result {number} " * 100),
        ]
    shown = shown_after(messages, 3000)
    numbered = {message.message_id: number for number, message in enumerate(messages)}
    places = [numbered[message.message_id] for message in shown if message.message_id in numbered]
    for place in places:
        if messages[place].role == "tool":
            assert place - 1 in places


def test_a_digest_names_files_identifiers_errors_and_first_lines() -> None:
    messages = [Message(role="user", text="Fix the parser")]
    messages += [
        Message(role="assistant", text="I look at src/parser/tokens.py and read_number"),
        Message(role="tool", operation="shell.run", text="exit code 1\nValueError: bad digit\n" + "noise " * 400),
    ]
    digest = Digest()
    digest.take(messages)
    told = digest.text(300)
    assert "src/parser/tokens.py" in told and "read_number" in told
    assert "ValueError: bad digit" in told and "shell.run → 1" in told


def test_messages_set_aside_are_not_in_the_prompt() -> None:
    bubble = Bubble(MemorySettings())
    messages = [Message(role="user", text=text) for text in ("first", "attempt one", "attempt two", "now")]
    bubble.follow(messages)
    bubble.follow(messages, [(1, 3)])
    assert [message.text for message in bubble.view(8000)] == ["first", "now"]


def test_a_pruning_is_restored_as_it_was() -> None:
    messages = [Message(role="user", text=f"{number} " + f"topic{number % 7} words " * 40) for number in range(80)]
    bubble = Bubble(MemorySettings())
    bubble.follow(messages)
    pruned = bubble.fit(3000)
    assert pruned and pruned.tokens_after < pruned.tokens_before
    again = Bubble(MemorySettings())
    again.restore(messages, Context(kept=list(pruned.kept), cut=pruned.cut, upto=pruned.upto))
    assert said(again.view(3000)) == said(bubble.view(3000))


def test_messages_about_the_focus_are_kept() -> None:
    messages = [
        Message(
            role="user", text=f"note {number} about {'database' if number == 20 else 'colour'} " + "and so on " * 30
        )
        for number in range(60)
    ]
    bubble = Bubble(MemorySettings())
    bubble.follow(messages)
    assert bubble.prune(4000, 0.35, "database")
    assert any("database" in message.text for message in bubble.view(4000) if not message.message_id.startswith(PAST))


@pytest.mark.parametrize(
    ("window", "budget"), [(200_000, 100_000), (1_000_000, 500_000), (32_000, 16_000), (16_000, 8000), (8192, 4096)]
)
def test_the_budget_is_a_share_of_the_window(window: int, budget: int) -> None:
    assert history_budget(MemorySettings(), window) == budget
    assert history_budget(MemorySettings(window_share=0.001), window) == min(8000, budget), (
        "never below what the least is"
    )
    assert history_budget(MemorySettings(), window, most=8000) == min(8000, budget)
    assert history_budget(MemorySettings(budget_tokens=3000), window) == 3000
    assert history_budget(MemorySettings(budget_tokens=9_000_000), window) < window


def test_a_digest_has_no_noise() -> None:
    """The names of a Decision's fields are left out, and so is text in a file that only looks like an error."""
    args = {"path": "src/parse_all.py", "start_line": 1}
    call = Action(operation="file_ops.read_file", args=args, reasoning="r")
    decision = Decision.made_up("look", [call], TaskProfile.CODE_ANALYSIS, Phase.PLANNING)
    digest = Digest()
    digest.take(
        [
            Message(role="assistant", text="", decision=decision),
            Message(
                role="tool",
                operation="file_ops.read_file",
                text="src/parse_all.py (lines 1-1 of 1)\nraise ValueError(x)",
            ),
            Message(role="tool", operation="shell.run", text="exit code 0\nno errors, ErrorList is empty"),
            Message(role="tool", operation="file_ops.edit_file", text="ERROR: `old` does not occur in the file"),
        ]
    )
    told = digest.text(400)
    assert "goal_consistency" not in told and "start_line" not in told and "constraint_check" not in told
    assert "ValueError" not in told.partition("names:")[0] and "ErrorList" not in told.partition("names:")[0]
    assert "read_file" not in told.partition("said:")[0]
    assert "errors: ERROR: `old` does not occur" in told and "src/parse_all.py" in told


def reading(number: int, path: str, lines: range, size: int = 60) -> list[Message]:
    call = Message(role="assistant", text=f"look {number} at {path}")
    body = "\n".join(f"line{one}of{path[0]} = {number}" for one in range(size))
    head = f"{path} (lines {lines.start}-{lines.stop - 1} of 900)"
    return [call, Message(role="tool", operation="file_ops.read_file", text=f"{head}\n{body}")]


def test_older_versions_of_a_file_are_cut_first() -> None:
    messages = [Message(role="user", text="go"), *reading(0, "a.py", range(1, 61)), *reading(1, "b.py", range(1, 61))]
    messages += [*reading(2, "c.py", range(1, 61)), *reading(3, "a.py", range(1, 101))]
    messages += [Message(role="assistant", text="edit"), Message(role="tool", text="Changed c.py (+1 -1 lines).")]
    for number in range(4, 8):
        messages += reading(number, f"d{number}.py", range(1, 61))
    bubble = Bubble(MemorySettings())
    bubble.follow(messages)
    pruned = bubble.prune(bubble.tokens, 0.85)
    assert pruned and not pruned.dropped, "single results are enough"
    shown = said(bubble.view(20_000))
    assert [number for number, text in enumerate(shown) if text.startswith("[left out: ")] == [2, 6]
    assert shown[2].startswith("[left out: a.py (lines 1-60 of 900)") and shown[4] == messages[4].text


def test_a_decision_with_many_results_loses_single_ones_and_is_not_dropped() -> None:
    many = [reading(number, f"f{number}.py", range(1, 61))[1] for number in range(9)]
    messages = [Message(role="user", text="go"), Message(role="assistant", text="look at nine files"), *many]
    for number in range(10, 14):
        messages += reading(number, f"g{number}.py", range(1, 61))
    bubble = Bubble(MemorySettings())
    bubble.follow(messages)
    pruned = bubble.prune(bubble.tokens, 0.7)
    assert pruned and not pruned.dropped
    texts = said(bubble.view(20_000))
    assert len(texts) == len(messages) and any(text == one.text for text, one in zip(texts[2:11], many, strict=True))


def test_one_giant_result_is_cut_and_does_not_empty_the_context() -> None:
    messages = [Message(role="user", text="go")]
    for number in range(12):
        messages += reading(number, f"f{number}.py", range(1, 11), size=10)
    messages += [
        Message(role="assistant", text="look"),
        Message(role="tool", text="begin\n" + "word " * 12_000 + "\nend"),
    ]
    bubble = Bubble(MemorySettings())
    bubble.follow(messages)
    assert bubble.fit(8000)
    shown = said(bubble.view(8000))
    assert shown[:-1] == [message.text for message in messages[:-1]]
    assert shown[-1].startswith("begin") and shown[-1].endswith("end") and "characters left out" in shown[-1]


CALLS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=8), st.booleans()), min_size=1, max_size=25)


def conversation(calls: list[tuple[str, list[str], bool]]) -> list[Message]:
    messages = [Message(role="user", text="the first instruction")]
    for call, results, asked in calls:
        if asked:
            messages.append(Message(role="user", text=f"next: {call[:200]}"))
        messages.append(Message(role="assistant", text=call))
        messages += [Message(role="tool", operation="file_ops.read_file", text=text) for text in results]
    return messages


@settings(max_examples=30)
@given(CALLS, st.integers(min_value=2000, max_value=20_000))
def test_pruning_keeps_calls_with_results_pins_and_the_budget(
    calls: list[tuple[str, list[str], bool]], budget: int
) -> None:
    messages = conversation(calls)
    bubble = Bubble(MemorySettings())
    before: list[Message] = []
    for number, message in enumerate(messages):
        bubble.follow(messages[: number + 1])
        if message.role == "assistant":
            continue
        pruned = bubble.fit(budget)
        shown = bubble.view(budget)
        if pruned is None:
            assert shown[: len(before)] == before, "between prunings it only grows"
            before = shown
            continue
        assert size(shown) <= budget * 1.05
        ids = {one.message_id: one.text for one in shown}
        users = [one for one in messages[: number + 1] if one.role == "user"]
        assert ids[users[0].message_id] == users[0].text and ids[users[-1].message_id] == users[-1].text
        head = ""
        for one in messages[: number + 1]:
            head = one.message_id if one.role != "tool" else head
            assert (one.message_id in ids) == (head in ids), "a call and its results stay or go together"
        same = [one.message_id in ids and ids[one.message_id] == one.text for one in before]
        first = same.index(False) if False in same else len(same)
        assert shown[:first] == before[:first], "what stands before the first place that was pruned is the same"
        before = shown


@pytest.mark.parametrize(
    "text", ["exit code 0: all 14 tests of the game have passed", "終了コード 0: ゲームのテスト 14 件がすべて成功"]
)
def test_a_successful_result_is_worth_more_than_a_message_with_the_same_words(text: str) -> None:
    result = Scores().score(Message(role="tool", text=text), 20)[0]
    said = Scores().score(Message(role="assistant", text=text), 20)[0]
    failed = Scores().score(Message(role="tool", text=f"ERROR: {text}"), 20)[0]
    assert said < result < failed, "an error stays what is least forgotten"
