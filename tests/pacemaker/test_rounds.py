"""Streamed text whose lines repeat."""

from duckflow.pacemaker.detectors import RepeatedLines


def heard(text: str, piece: int = 7) -> bool:
    rounds = RepeatedLines()
    return any(rounds.hear(text[at : at + piece]) for at in range(0, len(text), piece))


def test_repeated_lines_are_noticed() -> None:
    assert heard("def f():\n" + "    x = next(x)\n" * 50)
    assert heard("def f():\n" + "    if x:\n        return 1\n\n" * 50)


def test_counting_up_is_a_repetition() -> None:
    assert heard("".join(f"    if number == {n}:\n        return {n * 7}\n" for n in range(50)))


def test_ordinary_code_is_not_a_repetition() -> None:
    assert not heard("".join(f"def f{n}():\n    return '{chr(97 + n)}'\n" for n in range(26)) * 3)
    assert not heard("x = 1\n" * 39)
    assert not heard("\n" * 500)
