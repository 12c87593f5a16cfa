"""Answers to questions that allow nothing: the number or the name of a choice, or any words."""

import re
import unicodedata

from duckflow.i18n.answers import read_answer, read_whole
from duckflow.i18n.typed import means_stop
from duckflow.i18n.words import Words, languages_in
from duckflow.state.question import Answer, Choice, Question
from duckflow.whole_text import key_in

NUMBERED = r"(?s)(\d+)\s*[.):、,]?\s*(.*)"
FREE = "free"
SAID_BY = {"yes": "yes", "trust": "yes", "go_on": "yes", "no": "no", "stop": "no"}
"""The choices that a plain yes or a plain no selects."""
ADDRESS = r"(?i)https?://\S+"
STOP_KEYS = ("q", "quit", "exit")
"""Words that leave most programs. In place of a key or an address they mean the same in every language."""


def read_access(text: str, question: Question) -> Answer | None:
    """Returns a key or an address that was typed in place of a choice, where the question takes one."""
    is_access = question.takes_access and bool(key_in(text) or re.fullmatch(ADDRESS, text.strip()))
    return Answer(choice="text", text=text.strip()) if is_access else None


def read_words(text: str, question: Question, language: str) -> Answer:
    """Reads an answer to a question that may be answered by any text, even by a number. Only the name of a choice, a
    no, or a word for stopping selects a choice."""
    plain = unicodedata.normalize("NFKC", text).strip()
    word = plain.casefold().rstrip("。.!！")
    for choice in question.choices:
        is_refusal = choice.key == "no" and read_whole(plain, language).verdict == "no"
        is_leaving = choice.key == "leave" and (word in STOP_KEYS or means_stop(plain, language))
        is_named = word in names_of(choice, plain, language) or (is_refusal and not read_whole(plain, language).reason)
        is_named = is_named or is_leaving
        if is_named and not choice.wants_text:
            return Answer(choice=choice.key)
    return Answer(choice="text", text=text.strip())


def read_choice(text: str, question: Question, language: str) -> Answer:
    """Reads `2`, `２`, `2: use tabs` or `stop here` as a choice; if only a person is asked, also the first letter of a
    key. Everything else is free text."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if (number_match := re.fullmatch(NUMBERED, plain)) and (chosen := question.numbered.get(int(number_match[1]))):
        return Answer(choice=chosen.key, text=number_match[2].strip())
    word = plain.casefold().rstrip("。.!！")
    for choice in question.choices:
        if word in names_of(choice, plain, language):
            return Answer(choice=choice.key)
    begun_keys = [choice.key for choice in question.choices if question.for_person and choice.key[:1] == word]
    if len(begun_keys) == 1:
        return Answer(choice=begun_keys[0])
    answer = None if plain.isdecimal() else read_answer(plain, language=language)
    meaning = answer.choice if answer and not answer.text else ""
    keys = [choice.key for choice in question.choices if meaning and SAID_BY.get(choice.key) == meaning]
    return Answer(choice=keys[0]) if keys else Answer(choice=FREE, text=text.strip())


def names_of(choice: Choice, text: str, language: str) -> set[str]:
    """Returns the names of a choice, in the languages that the text may be in."""
    languages = languages_in(text, language)
    labels = {unicodedata.normalize("NFKC", Words(code).phrase(choice.label)) for code in languages}
    return {choice.key} | {label.casefold() for label in labels}
