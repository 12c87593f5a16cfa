"""Finds out whether a text asks the user something: by a question mark, by the form of its last sentence, or by asking
for a decision. The grammar of each language is in the language's folder (`patterns/asking.txt`)."""

import re
import unicodedata
from collections import deque

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.words import begins, fitting, languages_in, search

HIDDEN = (
    r"(?ms)```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^>[^\n]*$"
    r"|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
)
"""Code, addresses and quotations. A question mark in them is no question to the user."""
ASKED = r"[?？]+[)）*_\"”]*(?:\s*[(（][^()（）\n]{0,200}[)）])?"
ITEM = r"\s*(?:[-*•・]|\(?(?:\d{1,2}|[A-Da-dＡ-Ｄ])(?:[.](?![A-Za-z0-9])|[):）：、．]))\s*"
"""The mark of a list item. `a.txt` and `3.12` do not begin with such a mark."""
SENTENCE_END = r"[?？!！。]|[.](?=\s|$)|\n"
STATEMENT = r"(?<=[。！])|(?<=[.!])\s+"
QUESTION_MARKS = "?？"
SPOKEN = r"(?<=[すうん]か)(?<!どうか)。"
"""The full stop after a polite Japanese question, which needs no question mark."""
LAST_QUESTIONS = 50
"""The largest number of questions that are examined: a whole text may consist of questions."""
LONGEST_HELD, REMEMBERED = 4000, 2000
"""The most characters that are held back, and the number of characters already passed on that are remembered."""


def has_question(text: str) -> bool:
    return "?" in text or "？" in text


def last_question(text: str) -> str:
    """Returns the question at the end of a text, without the sentences before it."""
    line = text.rstrip().rpartition("\n")[2]
    sentences = re.split(STATEMENT, re.sub(ITEM, "", line, count=1) if re.match(ITEM, line) else line)
    return next((sentence.strip() for sentence in reversed(sentences) if sentence.strip()), "")


def one_question(text: str) -> str:
    """Returns the text, and of the questions at its end only the first one."""
    settled_length = settled(text, whole=True)
    return text[:settled_length].rstrip() if settled_length < len(text) else text


def settled(text: str, whole: bool = False) -> int:
    """Returns the length of the text to keep: the text up to the first question after which only questions follow.
    `whole` means that the text is complete, so that its last sentence may lack an end."""
    marked_text = re.sub(SPOKEN, QUESTION_MARKS[-1], text)
    if not has_question(marked_text):
        return len(text)
    masked_text = re.sub(HIDDEN, lambda match: "x" * len(match[0]), marked_text)
    for question in deque(re.finditer(ASKED, masked_text), LAST_QUESTIONS):
        in_list, line_before = _place(masked_text, question.start())
        if in_list and line_before.endswith(tuple(QUESTION_MARKS)):
            continue
        if _only_questions(masked_text, question.end(), whole, in_list):
            return question.end()
    return len(text)


class QuestionStream:
    """Passes on a text as it comes, and holds back text that may be one question too many."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, delta: str) -> str:
        self._text += delta
        end = settled(self._text)
        passed_text = self._up_to(end if len(self._text) - end <= LONGEST_HELD else len(self._text))
        self._forget()
        return passed_text

    def end(self) -> str:
        return self._up_to(len(one_question(self._text)))

    def _up_to(self, place: int) -> str:
        passed_text, self._shown = self._text[self._shown : max(place, self._shown)], max(place, self._shown)
        return passed_text

    def _forget(self) -> None:
        """Forgets text that was passed on, up to a line's beginning near its end. If that is inside a code block, a
        fence is added, so that code stays code."""
        offset = self._shown - REMEMBERED
        if offset < REMEMBERED:
            return
        offset = self._text.rfind("\n", 0, offset) + 1 or offset
        fence = "```\n" if self._text.count("```", 0, offset) % 2 else ""
        self._text, self._shown = fence + self._text[offset:], self._shown - offset + len(fence)


def _place(text: str, place: int) -> tuple[bool, str]:
    """Says whether a place is in a list item, and returns the line before the list. If that line is a question, the
    items are its choices."""
    *lines_before, line = text[:place].split("\n")
    if not re.match(ITEM, line):
        return False, ""
    return True, next(
        (
            earlier_line.rstrip()
            for earlier_line in reversed(lines_before)
            if earlier_line.strip() and not re.match(ITEM, earlier_line)
        ),
        "",
    )


def _only_questions(text: str, place: int, whole: bool, in_list: bool) -> bool:
    """Says whether only questions follow after this place of the text. A list after a question does not count, because
    it holds the question's choices."""
    word_start = _word_from(text, place)
    if word_start == len(text):
        return not whole
    if not in_list and "\n" in text[place:word_start] and re.compile(ITEM).match(text, _line_from(text, place)):
        return False
    while (place := _word_from(text, place)) < len(text):
        if item_match := re.compile(ITEM).match(text, place):
            place = item_match.end()
        end_match = re.compile(SENTENCE_END).search(text, place)
        if end_match is None:
            return not whole
        if end_match[0] not in QUESTION_MARKS:
            return False
        place = (re.compile(ASKED).match(text, end_match.start()) or end_match).end()
    return True


def _word_from(text: str, place: int) -> int:
    """Returns the place where the next word begins."""
    match = re.compile(r"\S").search(text, place)
    return match.start() if match else len(text)


def _line_from(text: str, place: int) -> int:
    """Returns the place of the first character that is neither a line break nor a space."""
    match = re.compile(r"[^\n ]").search(text, place)
    return match.start() if match else len(text)


LONGEST_END = 600
"""The number of characters at the end of a text that are examined: an earlier question is not at the end."""
MARKED = r"[?？]+[)）*_\"”’']*\Z"
SENTENCES = r"(?<=[。！？])|(?<=[!?])(?=\s|[^\x00-\x7f」』])|(?<=[^\d]\.)(?=\s)|(?<=[?？][)）])|\n+"
ENDING = r"[\s。．.!！…~〜ー:：;；*_)）]+\Z"
BESIDE = rf"{ITEM}|[(（\[].*[)）\]]$|x*$"
"""Text that may stand after a question without taking the question back: a choice, a remark in brackets, or code."""


def tells_of_done(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a text reports the work as done, or asks how to go on."""
    question = last_question(text)
    goes_on_match = search("asking.goes_on", question, language) or search("asking.offers_more", question, language)
    return bool(goes_on_match or search("asking.reported", text, language))


def offers_more(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a text ends by asking what else there is to do. Such a polite end leaves nothing open."""
    return ends_asking(text, language) and search("asking.offers_more", last_question(text), language) is not None


def only_wonders(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a text ends with a question about the matter itself, which the work may answer, or with a polite
    question that leaves nothing open. A question for permission or with a choice is for the user to answer."""
    question = last_question(text)
    if not ends_asking(text, language) or search("asking.leave", question, language):
        return False
    wonder_match = search("asking.wonders", question, language) and not _is_for_user(question, language)
    return bool(wonder_match or search("asking.offers_more", question, language))


def ends_asking(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a text ends by asking for an answer, perhaps with choices or a remark after the question."""
    tail_text = unicodedata.normalize("NFKC", re.sub(HIDDEN, lambda match: "x", text.rstrip()[-LONGEST_END:]))
    sentences = [part.strip() for part in re.split(SENTENCES, tail_text) if part and part.strip()]
    while sentences:
        sentence = sentences.pop()
        if asks(sentence.strip(" -*_#>"), language):
            return True
        if not sentences or not (re.match(BESIDE, sentence) or begins("asking.beside", sentence, language)):
            return False
    return False


def question_in_passing(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Returns the sentence that asks for permission or offers a choice although the text goes on without waiting for
    the user's answer; empty if there is none."""
    marked_text = re.sub(SPOKEN, "？", re.sub(HIDDEN, "x", text.strip()[-LONGEST_HELD:]))
    sentences = [
        unicodedata.normalize("NFKC", part.strip()) for part in re.split(SENTENCES, marked_text) if part.strip()
    ]
    questions = (part for part in sentences[:-1] if re.search(MARKED, part) and _is_for_user(part, language))
    return next(questions, "")


def leaves_open(text: str, question: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether only the user can answer the question of a text: the question asks for permission or offers a
    choice, and the text does not go on with the answer ("Should I worry? No, nothing uses it.")."""
    text_after = unicodedata.normalize("NFKC", text).rpartition(question.rstrip(QUESTION_MARKS))[2].lstrip("?。 \n")
    return _is_choice(question, language) and not begins("asking.answered", text_after, language)


def _is_choice(question: str, language: str) -> bool:
    return bool(search("asking.leave", question, language) or search("asking.chooses", question, language))


def _is_for_user(question: str, language: str) -> bool:
    return _is_choice(question, language) or bool(search("asking.may_choose", question, language))


def asks(sentence: str, language: str = DEFAULT_LANGUAGE) -> bool:
    if re.search(MARKED, sentence):
        return True
    bare_sentence = re.sub(ENDING, "", sentence)

    def has(name: str, spoken: str) -> bool:
        return any(pattern.search(bare_sentence) for pattern in fitting(spoken, f"asking.{name}", bare_sentence))

    for spoken_language in languages_in(bare_sentence, language):
        if has("asked", spoken_language):
            only_looks = has("only_looks", spoken_language) and not has("decides", spoken_language)
            return not only_looks and not has("closing", spoken_language)
    return False
