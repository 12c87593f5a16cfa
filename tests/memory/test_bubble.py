"""What goes into a prompt fits, in real tokens, and holds the first and the latest word of the user."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.real_tokens import real_tokens
from duckflow.memory.bubble import Bubble
from duckflow.memory.digest import Digest
from duckflow.memory.settings import MemorySettings
from duckflow.state.context import Context
from duckflow.state.message import Message, Role

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


def shown_after(messages: list[Message], budget: int) -> list[Message]:
    """As in a conversation: a prompt is built after every message."""
    bubble = Bubble(MemorySettings())
    shown: list[Message] = []
    for number in range(len(messages)):
        bubble.follow(messages[: number + 1])
        bubble.fit(budget)
        shown = bubble.view(budget)
    return shown


@settings(max_examples=60)
@given(MESSAGES, st.integers(min_value=1000, max_value=6000))
def test_the_budget_holds_and_first_and_latest_are_there(messages: list[Message], budget: int) -> None:
    shown = shown_after(messages, budget)
    assert size(shown) <= budget * 1.05
    ids = [message.message_id for message in shown]
    assert len(set(ids)) == len(ids)
    users = [message.message_id for message in messages if message.role == "user"]
    assert not users or {users[0], users[-1]} <= set(ids)
    assert not messages or messages[-1].message_id in ids


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


def test_what_left_is_told_of_by_files_names_errors_and_first_lines() -> None:
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


def test_what_was_set_aside_is_gone_from_the_prompt() -> None:
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
    again.restore(messages, Context(kept=list(pruned.kept), upto=pruned.upto))
    assert [message.text for message in again.view(3000)][2:] == [message.text for message in bubble.view(3000)][2:]


def test_a_focus_keeps_what_has_to_do_with_it() -> None:
    messages = [
        Message(
            role="user", text=f"note {number} about {'database' if number == 20 else 'colour'} " + "and so on " * 30
        )
        for number in range(60)
    ]
    bubble = Bubble(MemorySettings())
    bubble.follow(messages)
    assert bubble.prune(4000, 0.35, "database")
    assert any("database" in message.text for message in bubble.view(4000) if message.message_id != "past")


@pytest.mark.parametrize(
    ("window", "budget"), [(200_000, 100_000), (1_000_000, 500_000), (32_000, 16_000), (16_000, 8000), (8192, 4096)]
)
def test_the_budget_is_a_share_of_the_window(window: int, budget: int) -> None:
    assert MemorySettings().budget(window) == budget
    assert MemorySettings(window_share=0.001).budget(window) == min(8000, budget), "never below what the least is"
    assert MemorySettings().budget(window, small=True) == min(8000, budget)
    assert MemorySettings(budget_tokens=3000).budget(window) == 3000
    assert MemorySettings(budget_tokens=9_000_000).budget(window) < window
