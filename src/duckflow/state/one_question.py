"""One question at a time: of questions that follow each other at the end of what is said, the first is kept.

The rules are loaded when there is a question at all: most of what is said has none."""


def asks(text: str) -> bool:
    return "?" in text or "？" in text


def ends_asking(text: str) -> bool:
    """Whether the last thing said is a question, perhaps with a remark in brackets behind it."""
    if not asks(text):
        return False
    from duckflow.state import question_rules

    return question_rules.ends_asking(text)


def one_question(text: str) -> str:
    """What is said, without the questions after the first one of those at its end."""
    return text[: settled(text, whole=True)].rstrip() if asks(text) else text


def settled(text: str, whole: bool = False) -> int:
    """How much of a text is sure to stay; `whole`: nothing more comes."""
    if not asks(text):
        return len(text)
    from duckflow.state import question_rules

    return question_rules.settled(text, whole)


class QuestionStream:
    """Passes on what is said as it comes, and holds back what may be one question too many."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, delta: str) -> str:
        self._text += delta
        return self._up_to(settled(self._text))

    def end(self) -> str:
        return self._up_to(len(one_question(self._text)))

    def _up_to(self, place: int) -> str:
        passed, self._shown = self._text[self._shown : max(place, self._shown)], max(place, self._shown)
        return passed
