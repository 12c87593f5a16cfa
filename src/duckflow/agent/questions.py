"""Open questions, and the meaning of an answer: a number, a word for a choice, or the user's own words."""

import asyncio
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from duckflow.agent.deeds import deeds_asked
from duckflow.agent.narrow_yes import answer_for_some, may_be_met
from duckflow.agent.plain_answers import FREE, SAID_BY, names_of, read_access, read_choice, read_words
from duckflow.events.ports import Emit
from duckflow.events.talking import AskedBack, WordsPassedOn
from duckflow.events.types import QuestionAsked, QuestionClosed
from duckflow.events.views import Taken
from duckflow.i18n.answer_scope import AGREED, without
from duckflow.i18n.answer_words import agrees_somewhere, means_either, surely_wishes, without_politeness
from duckflow.i18n.answers import (
    WholeAnswer,
    means_always,
    read_answer,
    read_whole,
    spelled_out,
    without_reference,
)
from duckflow.i18n.typed import SplitAnswer, means_pause, split_answer
from duckflow.i18n.words import begins
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.question import NOBODY, Answer, Question, Talk

UNCLEAR = dict.fromkeys(("choice", "edit", "text"), "choice.unclear") | {"duck_call": "duck.words"}
UNREAD = WholeAnswer()
SHOWN = 60
BEGUN = 6
"""The number of first letters that are enough to name a choice."""
DECIDES = {*SAID_BY, "session", "always", "all"}
"""Choices that allow or refuse something. They must be named in full: some of their words are not enough."""
SAYS_SOMETHING = r"[a-z0-9_][\w./-]*|[゠-ヿ]+|[一-鿿]+|[^\W\d_a-z぀-ヿ一-鿿][\w-]*"
"""A pattern for a word; in a language without spaces, for a run of letters that carry meaning."""


@dataclass(slots=True)
class OpenQuestion:
    """A question that waits for its answer. `half` is an incomplete answer: a choice without its words, or words
    without a yes or no. `agreed` is the part of those words that already says yes, with its scope."""

    question: Question
    answer: asyncio.Future[Answer]
    half: Answer | None = None
    agreed: WholeAnswer | None = None
    lines: tuple[str, ...] = ()
    """The lines that were typed before and not surely understood."""
    split: SplitAnswer | None = None
    """A no with words that may be for the conversation. The user was asked for whom they are."""
    talk: tuple[Talk, ...] = ()


class Questions:
    """Keeps the open questions. Whoever asks waits for the answer; the first answer closes a question."""

    def __init__(
        self,
        emit: Emit,
        language: Callable[[], str],
        answers_itself: Callable[[Question], Answer | None] | None = None,
    ) -> None:
        """`answers_itself` returns the answer to a question that no person is to be asked."""
        self._answers_itself = answers_itself
        self._emit = emit
        self._language = language
        self._open: dict[str, OpenQuestion] = {}
        self._objected: set[str] = set()
        """The jobs whose last Gate the user answered with how they want it instead; the conversation has no id."""

    @property
    def open(self) -> tuple[Question, ...]:
        """Returns the open questions, the oldest first: those of the conversation itself, then those of jobs."""
        return tuple(
            sorted(
                (open_question.question for open_question in self._open.values()),
                key=lambda question: bool(question.job),
            )
        )

    async def ask(self, question: Question) -> Answer:
        if self._answers_itself and (answer := self._answers_itself(question)):
            # The question is journaled, and was never open to others.
            self._emit(QuestionAsked(question=question))
            self._emit(QuestionClosed(question_id=question.question_id, answer=answer, on_record=question.on_record))
            return answer
        open_question = OpenQuestion(question, asyncio.get_running_loop().create_future())
        self._open[question.question_id] = open_question
        self._emit(QuestionAsked(question=question))
        try:
            return await open_question.answer
        finally:
            self._close(open_question, None)

    def answer(self, question_id: str, text: str, choice: str) -> Taken:
        asked = self._open.get(question_id)
        if asked is None:
            return Taken("closed", (say("question.closed"),), question_id)
        question = asked.question
        refers = question.kind != "text" and (asked.talk or question.job in self._objected)
        text = without_reference(text, self._language()) if refers else text
        is_gate_without_word = question.kind == "gate" and not _needs_word(question)
        line = spelled_out(text) if is_gate_without_word and not choice else text
        whole = UNREAD if choice else read_whole(line, self._language(), deeds_asked(question))
        waits = whole.waits or (question.kind == "gate" and not choice and means_pause(text, self._language()))
        if not choice and (taken := self._passed_on(text, asked)):
            return taken
        can_explain = question.kind == "gate" or question.for_person
        if not choice and can_explain and whole.asks and question.kind != "text":
            self._emit(AskedBack(question=question, text=text.strip()))
            return Taken("unclear", (say("question.asked_back"),), question_id)
        if not choice and question.kind != "text" and waits:
            return Taken("unclear", (say("question.waits"),), question_id)
        answer = _chosen(choice, text, question) if choice else self._read(text, whole, asked)
        if answer is None:
            short_question = _unclear(text, asked, self._language())
            if asked.half:
                asked.lines = (*asked.lines, text.strip())
            return Taken("unclear", (short_question,), question_id)
        if answer.choice == "edit" and question.gate and not choice:
            return Taken("edit", question_id=question_id)
        answer = _with_whole_reason(answer, text)
        remark = "" if choice or question.secret or answer.text == text.strip() else _worth_keeping(text, whole, asked)
        if answer.limit and not answer.text:
            remark = text.strip()
        self._settle(asked, _with_lines(answer.model_copy(update={"said": remark, "talk": asked.talk}), asked))
        return Taken("answer", question_id=question_id)

    def _passed_on(self, text: str, asked: OpenQuestion) -> Taken | None:
        """Answers the Gate of a job (the question before a risky action) by a line of which a part is for the
        conversation, and passes that part on. If it is not certain for whom it is, the user is asked."""
        question, language = asked.question, self._language()
        if question.kind != "gate" or not question.job:
            return None
        doubtful, asked.split = asked.split, None
        reply = read_answer(text, language=language) if doubtful else None
        if doubtful and reply == Answer(choice="no"):
            self._settle(asked, Answer(choice="no", text=doubtful.rest))
            return Taken("answer", question_id=question.question_id)
        is_for_chat = doubtful and reply == Answer(choice="yes")
        split = doubtful if is_for_chat else split_answer(text, language)
        if split is None:
            return None
        if not (split.certain or split is doubtful):
            asked.split = split
            short_text = shorten(split.rest, SHOWN)
            told = say("gate.for_whom", text=short_text, job=question.job_name or question.job)
            return Taken("unclear", (told,), question.question_id)
        if split.verdict:
            self._settle(asked, Answer(choice="no"))
        told = say("gate.passed_on" if split.verdict else "gate.passed_on_open", text=shorten(split.rest, SHOWN))
        self._emit(WordsPassedOn(question=question, text=split.rest, answered=bool(split.verdict)))
        return Taken("answer" if split.verdict else "message", (told,), question.question_id)

    def _settle(self, asked: OpenQuestion, answer: Answer) -> None:
        if asked.question.kind == "gate":
            objects = answer.choice == "wish" or (answer.choice == "no" and answer.text)
            (self._objected.add if objects else self._objected.discard)(asked.question.job)
        self._close(asked, answer)
        asked.answer.set_result(answer)

    def keep_talk(self, question_id: str, asked: str, reply: str) -> None:
        """Keeps a question that the user asked before answering, and the reply to it."""
        if question := self._open.get(question_id):
            question.talk += (Talk(asked=asked, told=reply),)

    def _close(self, asked: OpenQuestion, answer: Answer | None) -> None:
        question = asked.question
        if self._open.pop(question.question_id, None):
            is_on_record = question.on_record and answer is not None
            if answer and question.hides(answer.text):
                answer = answer.model_copy(update={"text": ""})
            self._emit(QuestionClosed(question_id=question.question_id, answer=answer, on_record=is_on_record))

    def _read(self, text: str, whole: WholeAnswer, asked: OpenQuestion) -> Answer | None:
        """Returns the answer that the text gives; None if it is unclear or gives only half of an answer."""
        question = asked.question
        if question.kind == "gate":
            return _read_at_gate(text, whole, asked, self._language())
        if asked.half:
            return asked.half.model_copy(update={"text": text})
        if question.kind == "text":
            return read_words(text, question, self._language())
        answer = read_access(text, question) or read_choice(text, question, self._language())
        if question.kind in ("choice", "edit"):
            if answer.choice == FREE and (named_answer := _named(text, question, self._language())):
                return named_answer
            with_text = [choice.key for choice in question.choices if choice.takes_text]
            free_answer = Answer(choice=with_text[0], text=text.strip()) if with_text else None
            return free_answer if answer.choice == FREE else answer
        if wants_words(answer, question):
            asked.half = answer
            return None
        return answer


def _read_at_gate(text: str, whole: WholeAnswer, asked: OpenQuestion, language: str) -> Answer | None:
    """Reads an answer at a Gate (the question before risky actions). A yes with a further wish or a condition runs
    nothing: the model gets it as a wish. If it is not clear how far a yes goes, the user is asked. A very risky action
    needs a whole word as its yes, not just a key."""
    question = asked.question
    plain = text if _needs_word(question) else spelled_out(text)
    deeds = deeds_asked(question)
    answer = _begun(text, question, language) or read_answer(plain, _keys(question), language, deeds)
    if answer is None and (named_answer := _named(text, question, language)):
        return named_answer
    single = question.gate is not None and len(question.gate.impacts) == 1
    if answer is None and single:
        # Where a single thing is asked about, "only that" is all of it.
        answer = read_answer(without("scopes.just_this", plain, " ", language)[0], ("yes",), language, deeds)
    if answer is None and question.gate and (narrow_yes := answer_for_some(text, whole, question.gate, language)):
        return narrow_yes
    # A scope that is understood says nothing about the rest of the answer.
    unread = whole.rest if whole.agreed and whole.agreed.scope else text
    is_wish = whole.wish and not whole.reaches and surely_wishes(unread, language)
    if answer is None and is_wish and not may_be_met(whole, text, language):
        return _wish(text, whole)
    repeats_offer = asked.half is not None and not (whole.against or whole.asks or whole.waits)
    if answer is None and repeats_offer and begins("scopes.as_shown", text, language):
        # The short question before has offered just that.
        answer = Answer(choice="yes")
    if answer is None and asked.half and whole.reaches and not whole.against:
        # "For the session" alone chooses among the answers that the short question has named.
        answer, whole = read_answer(f"{AGREED}, {text}", _keys(question), language), read_whole(f"{AGREED}, {text}")
    if answer and answer.choice == "yes" and _needs_word(question) and whole.verdict != "yes":
        return None
    if answer and answer.choice == "no" and not answer.text and asked.half:
        return asked.half
    if answer and answer.choice == "yes":
        return _with_scope(answer, whole if whole.scope else asked.agreed or whole)
    return answer


def _with_whole_reason(answer: Answer, text: str) -> Answer:
    """Returns the answer with its reason as it was typed, to the last word: "no, do it the way I said"."""
    begun = text.rfind(answer.text) if answer.choice == "no" and answer.text else -1
    return answer.model_copy(update={"text": text[begun:].strip()}) if begun >= 0 else answer


def _with_lines(answer: Answer, asked: OpenQuestion) -> Answer:
    """Returns the answer with the lines that were typed before it and not surely understood, so that the model gets
    them, too: as the words of a no or a wish, or beside a yes."""
    if asked.question.kind != "gate" or asked.question.secret:
        return answer
    name, last_line = ("text", answer.text) if answer.choice in ("no", "wish") else ("said", answer.said)
    lines = (*(line for line in asked.lines if line not in last_line), last_line)
    return answer.model_copy(update={name: "\n".join(filter(None, lines))})


def _wish(text: str, whole: WholeAnswer) -> Answer:
    """Returns the text as a wish, which the model gets before anything runs. If the user has also allowed something for
    the session, that takes effect already, and is not asked about again."""
    about = whole.agreed.about if whole.agreed and whole.agreed.scope in ("session", "always") else ""
    return Answer(choice="wish", text=text.strip(), about=about, kept_scope=bool(about))


def _worth_keeping(text: str, whole: WholeAnswer, asked: OpenQuestion) -> str:
    """Returns the user's whole line if it says more than their choice; otherwise an empty text."""
    says_more = whole.scope or whole.about or whole.reason or whole.background or asked.talk
    return text.strip() if says_more and len(text.strip()) > 1 else ""


def _with_scope(answer: Answer, whole: WholeAnswer) -> Answer:
    """Returns the answer with the user's scope. A yes holds for good only if the user has said a word that means so."""
    if whole.scope not in ("session", "always"):
        return answer
    scope = "always" if whole.for_good else "session"
    return answer.model_copy(update={"choice": scope, "about": whole.about})


def _begun(text: str, question: Question, language: str) -> Answer | None:
    """Returns the choice whose own words begin with the text, if it is the only one. For `always` a beginning is not
    enough."""
    word = unicodedata.normalize("NFKC", text).strip().casefold()
    keys = [
        choice.key
        for choice in question.choices
        if any(name.startswith(word) for name in names_of(choice, word, language))
    ]
    return Answer(choice=keys[0]) if len(word) >= BEGUN and len(keys) == 1 and keys != ["always"] else None


def _named(text: str, question: Question, language: str) -> Answer | None:
    """Returns the only choice whose words contain all words of the answer, except for polite ones: `show me
    the diff`."""
    if read_whole(text, language).against:
        return None
    plain = unicodedata.normalize("NFKC", text).casefold()
    answer_words = _words(plain)
    key_words = _words(without_politeness(plain, language))
    if not key_words:
        return None
    named_words = {choice.key: [*map(_words, names_of(choice, plain, language))] for choice in question.choices}
    shared_counts = {
        key: max((len(answer_words & words) for words in all_words if key_words <= words), default=0)
        for key, all_words in named_words.items()
    }
    best_keys = [key for key, count in shared_counts.items() if count and count == max(shared_counts.values())]
    return Answer(choice=best_keys[0]) if len(best_keys) == 1 and best_keys[0] not in DECIDES else None


def _words(label: str) -> set[str]:
    return set(re.findall(SAYS_SOMETHING, label.casefold()))


def _needs_word(question: Question) -> bool:
    return question.gate is not None and question.gate.risk == "forbidden"


def _unclear(text: str, asked: OpenQuestion, language: str) -> Phrase:
    """Returns a short question that asks the user what they meant. At a Gate it may offer two numbered answers; the
    user's words are kept for the second one."""
    question = asked.question
    if question.kind != "gate":
        return say(UNCLEAR[question.kind])
    if means_always(text, _keys(question)):
        return say("gate.always_word")
    if read_answer(text, _keys(question), language):
        return say("gate.word")
    if means_either(text, language):
        return say("gate.either")
    whole, short_text = read_whole(spelled_out(text), language), shorten(text.strip(), SHOWN)
    has_session, was_asked = "session" in _keys(question), asked.half is not None
    asked.half, asked.agreed = Answer(choice="no", text=text.strip()), whole.agreed
    if not (whole.wish or whole.agreed or agrees_somewhere(text, language)):
        may_reach = has_session and (whole.reaches or was_asked)
        return say("gate.unclear_scope" if may_reach else "gate.unclear", text=short_text)
    asked.half = _wish(text, whole)
    agreed = whole.agreed
    if agreed and agreed.scope in ("session", "always"):
        key = "gate.rest_about" if agreed.about else "gate.rest_session"
        return say(key, about=agreed.about)
    is_open = has_session and not (agreed and agreed.scope)
    return say("gate.rest_or_session" if is_open else "gate.rest")


def wants_words(answer: Answer, question: Question) -> bool:
    """Says whether the choice makes sense only with words that have not been given yet."""
    chosen_choice = next((choice for choice in question.choices if choice.key == answer.choice), None)
    return chosen_choice is not None and chosen_choice.wants_text and not answer.text


def _chosen(choice: str, text: str, question: Question) -> Answer | None:
    """Returns the answer for the key of a choice; None if its words are missing, or it is not offered. A Duck Call (the
    question when work goes badly) also takes keys that it does not offer."""
    is_offered = question.kind == "duck_call" or choice in (option.key for option in question.choices)
    is_offered = is_offered or (choice == NOBODY and question.takes_nobody)
    answer = Answer(choice=choice, text=text)
    return answer if is_offered and not wants_words(answer, question) else None


def _keys(question: Question) -> tuple[str, ...]:
    return tuple(choice.key for choice in question.choices)
