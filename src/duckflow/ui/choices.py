"""What an answer at a Duck Call means: a number, the words of a choice, or words of the user's own."""

import re
import unicodedata

from duckflow.i18n.words import LANGUAGES, Words
from duckflow.state.question import Answer, Choice, Question

NUMBERED = re.compile(r"(\d+)\s*[.):、,]?\s*(.*)", re.DOTALL)
FREE = "free"


def read_choice(text: str, question: Question) -> Answer:
    """`2`, `２`, `2: use tabs`, `stop here`, 「ここで止める」; everything else is free text."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if (numbered := NUMBERED.fullmatch(plain)) and 1 <= int(numbered[1]) <= len(question.choices):
        return Answer(choice=question.choices[int(numbered[1]) - 1].key, text=numbered[2].strip())
    word = plain.casefold().rstrip("。.!！")
    for choice in question.choices:
        if word in _names(choice):
            return Answer(choice=choice.key)
    return Answer(choice=FREE, text=text.strip())


def wants_words(answer: Answer, question: Question) -> bool:
    """Whether the choice makes sense only with words that have not been given yet."""
    chosen = next((choice for choice in question.choices if choice.key == answer.choice), None)
    return chosen is not None and chosen.wants_text and not answer.text


def _names(choice: Choice) -> set[str]:
    labels = {unicodedata.normalize("NFKC", Words(language).phrase(choice.label)) for language in LANGUAGES}
    return {choice.key} | {label.casefold() for label in labels}
