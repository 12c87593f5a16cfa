"""A reply that repeats itself is noticed while the model is still writing."""

import pytest

from duckflow.pacemaker.detectors import RepeatedText
from duckflow.pacemaker.settings import DetectorSettings

SENTENCE = "Let me check the configuration once more. "
PARAGRAPH = "First I open the file.\nThen I read it.\nIt is empty, so I will open the file again to be sure.\n"


def heard(text: str, size: int = 7) -> bool:
    watch = RepeatedText(DetectorSettings())
    return any(watch.hear(text[start : start + size]) for start in range(0, len(text), size))


@pytest.mark.parametrize(
    "text",
    [
        "Well. " + SENTENCE * 12,
        PARAGRAPH * 8,
        "ok " * 100,
        "もう一度確認します。" * 30,
        "```\ncode\n``` and now " + SENTENCE * 12,
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_passage_repeated_many_times_is_noticed(text: str, size: int) -> None:
    assert heard(text, size)


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * 3,
        "".join(f"- services/eu-west/project/worker-{number}\n" for number in range(60)),
        "-" * 3000,
        "=" * 79 + "\n" + "| a | b |\n" + "|---|---|\n" * 3,
        "".join(f"{number} green bottles hanging on the wall, {number} green bottles. " for number in range(99)),
        "```python\n" + "x = x + 1  # again\n" * 60,
        "",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_ordinary_texts_are_not_taken_for_repetition(text: str, size: int) -> None:
    assert not heard(text, size)


def test_repetition_is_noticed_before_the_reply_ends() -> None:
    watch = RepeatedText(DetectorSettings())
    first = next(number for number in range(1000) if watch.hear(SENTENCE))
    assert first < 10


def test_a_very_long_reply_is_kept_only_in_part() -> None:
    watch = RepeatedText(DetectorSettings(stream_longest=20, stream_repeats=4))
    for number in range(5000):
        assert not watch.hear(f"word{number} ")
    assert any(watch.hear("and so on ") for _ in range(40))
