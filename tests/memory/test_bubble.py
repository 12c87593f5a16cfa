"""What goes into a prompt fits, and holds the first and the latest word of the user."""

from hypothesis import given
from hypothesis import strategies as st

from duckflow.memory.bubble import view
from duckflow.memory.tokens import count
from duckflow.state.message import Message, Role

ROLES: list[Role] = ["user", "assistant", "tool", "system"]
MESSAGES = st.lists(st.builds(Message, role=st.sampled_from(ROLES), text=st.text(max_size=3000)), max_size=40)


@given(MESSAGES, st.integers(min_value=2000, max_value=20000))
def test_the_budget_holds_and_the_latest_message_is_there(messages: list[Message], budget: int) -> None:
    shown = view(messages, budget)
    assert sum(count(message.text) for message in shown) <= budget * 1.5
    ids = [message.message_id for message in shown]
    assert len(set(ids)) == len(ids)
    first = next((message.message_id for message in messages if message.role == "user"), None)
    assert first is None or first in ids


def test_history_is_not_changed_and_order_is_kept() -> None:
    messages = [Message(role="user", text=f"{number} " + "x" * 500) for number in range(100)]
    before = [message.text for message in messages]
    shown = view(messages, 2000)
    assert [message.text for message in messages] == before
    numbers = [int(message.text.split()[0]) for message in shown]
    assert numbers == sorted(numbers) and numbers[0] == 0 and numbers[-1] == 99


def test_a_very_long_message_keeps_its_head_and_tail() -> None:
    shown = view([Message(role="user", text="begin " + "x" * 100_000 + " end")], 4000)
    assert shown[0].text.startswith("begin") and shown[0].text.endswith("end") and "left out" in shown[0].text


def test_a_result_never_stands_without_its_call() -> None:
    messages = [Message(role="user", text="go")]
    for _ in range(50):
        messages += [Message(role="assistant", text="call " * 50), Message(role="tool", text="result " * 100)]
    shown = view(messages, 3000)
    assert shown[1].role == "assistant"
