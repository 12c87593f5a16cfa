"""Reads an answer as a whole: its verdict, scope and reason. All other readers of answers use this one.

Words about the scope of a yes (how far it goes) and about how the work is to run are taken out of the sentence first
(`patterns/scopes.txt`); all other words are read one by one (`patterns/answers.txt`). An unclear answer is never taken
for a yes or a no.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.answer_scope import AGREED, CLAUSE_END, LAST_CLAUSE, PUNCTUATION, Scope, taken_apart, without
from duckflow.i18n.answer_tail import Tail, clauses_of, joined_clauses, read_tail, speaks_of_reach
from duckflow.i18n.answer_words import (
    DEEDS,
    REASONS,
    agrees_somewhere,
    corrected,
    gate_key,
    in_full,
    kinds_in,
    means_either,
    with_plain_deeds,
    words_of_choices,
    yes_or_no,
)
from duckflow.i18n.asking import asks, ends_asking, has_question
from duckflow.i18n.words import begins, fullmatch, languages_in, search
from duckflow.state.question import Answer

Verdict = Literal["yes", "no", "other"]
PERMANENT: Literal["always"] = "always"
"""The choice of a permanent rule. A single key never makes this choice."""
LONGEST = 300
"""The most characters of an answer. A longer text is a message, and is not read as an answer."""
TELLING = 3
"""The fewest words of a clause that may give an order. A shorter clause with a word of agreement only agrees."""
SIGNS = (":", ",", "、", "。", ".")
DASH = r"\s+[–—-]+\s+"
"""Matches a dash between two parts of a sentence."""
SAYS_LITTLE = {"yes", "agree", "praise", "glue", "count"}


class WholeAnswer(NamedTuple):
    """The meaning of an answer to a question, read as a whole."""

    verdict: Verdict = "other"
    reason: str = ""
    """The reason given with a no: what the user wants instead, or why not."""
    scope: Scope = ""
    """The reach of a yes: this once, this session, or always."""
    about: str = ""
    """The thing that the scope is for, in the user's words; empty where it is the thing that was asked about."""
    for_good: bool = False
    """True if the answer contains the word that a permanent rule requires."""
    condition: bool = False
    """True if the user wants something else first, so that nothing may be done yet."""
    background: bool = False
    bounded: bool = False
    """True if the yes is only for the things it names, not for other things that were asked about."""
    asks: bool = False
    """True if the answer asks something back, so that it is neither yes nor no."""
    waits: bool = False
    """True if the user has not decided yet."""
    wish: bool = False
    """True if the answer agrees, but says more or sets a condition."""
    reaches: bool = False
    """True if the answer has words about the scope of a yes (how far it goes), but their meaning is not certain."""
    against: bool = False
    """True if some words of the answer may speak against the thing that was asked."""
    rest: str = ""
    """The part of an answer with a yes that is not understood. `agreed` holds the understood part."""
    agreed: "WholeAnswer | None" = None
    """The understood part of the answer: the yes, with its scope and how the work is to run."""

    @property
    def may_be_yes(self) -> bool:
        """Says whether the answer is a yes, or at least has nothing that speaks against a yes."""
        has_doubts = self.verdict == "no" or self.asks or self.waits or self.condition or self.against
        return self.plain_yes or not has_doubts

    @property
    def plain_yes(self) -> bool:
        """Says whether the answer is a yes to everything that was asked."""
        return self.verdict == "yes" and not self.bounded


@lru_cache(maxsize=64)
def read_whole(text: str, language: str = DEFAULT_LANGUAGE, deeds: frozenset[str] = frozenset()) -> WholeAnswer:
    """Reads an answer. `deeds` names what was asked about (`delete`, or a word of the command): an answer that repeats
    just that ("yes, delete it") says no more than "do it". If the text is not understood, slips of the pen are
    corrected, and the text is read once more."""
    plain = re.sub(DASH, ", ", unicodedata.normalize("NFKC", text).strip().replace("’", "'"))
    plain = without("scopes.unneeded", plain, "", language)[0] if "delete" in deeds else plain
    plain = with_plain_deeds(in_full(plain, language), deeds, language)
    answer = _for_now(_read(plain, language), plain, language)
    if answer.verdict != "other" or answer.asks or answer.waits or len(plain) > LONGEST:
        return answer
    corrected_text = corrected(plain, language)
    if corrected_text == plain:
        return answer
    corrected_answer = _for_now(_read(corrected_text, language), corrected_text, language)
    return corrected_answer if corrected_answer.verdict != "other" else answer


def _for_now(answer: WholeAnswer, plain: str, language: str) -> WholeAnswer:
    """Returns the answer, unless its yes is for another time ("yes, tonight"), or its words only speak of a yes."""
    is_later = search("scopes.another_time", plain, language) and not search("scopes.may_reach", plain, language)
    is_none = is_later or search("scopes.no_answer", plain, language)
    return WholeAnswer(against=True) if answer.verdict == "yes" and is_none else answer


def _read(plain: str, language: str) -> WholeAnswer:
    if means_either(plain, language) or search("scopes.complains", plain, language):
        return WholeAnswer()
    plain = _main_part(plain, language) if len(plain) <= LONGEST else plain
    if not plain or len(plain) > LONGEST:
        return WholeAnswer(against=search("scopes.against", plain, language) is not None)
    waits = search("scopes.wait", without_own_doing(plain, language), language) is not None
    is_against = search("scopes.against", plain, language) is not None
    choice = words_of_choices(languages_in(plain, language)).get(plain.strip(PUNCTUATION).casefold())
    if choice == "session" or choice == "always":
        return WholeAnswer("yes", scope=choice, for_good=choice == PERMANENT)
    agreed_answer = WholeAnswer() if waits or has_question(plain) else _clause_by_clause(plain, WholeAnswer(), language)
    if agreed_answer.verdict == "yes":
        return agreed_answer._replace(against=is_against)
    if _refuses_this(plain, language):
        return WholeAnswer("no", plain, against=True)
    parts = taken_apart(plain, language)
    asks_back = asks(parts.rest, language) or ends_asking(parts.rest, language)
    if asks_back or begins("answers.asked", plain, language):
        order = _polite_order(plain, language)
        answer = _read(order, language) if order else WholeAnswer()
        is_decided = answer.plain_yes or answer.verdict == "no"
        return answer if is_decided else WholeAnswer(asks=True, waits=waits, against=is_against)
    word = yes_or_no(parts.rest, language)
    if word == "yes" and not waits:
        for_good = parts.scope == PERMANENT and _names_always(plain, language)
        answer = WholeAnswer("yes", "", parts.scope, parts.about, for_good, background=parts.background)
        return answer._replace(bounded=parts.bounded, against=is_against)
    reason = "" if word == "no" or waits else _refusal(parts.rest if parts.scope else plain, language)
    if word == "no" and (REASONS & set(kinds_in(plain, language)) or _orders_else(plain, language)):
        reason = plain
    if word == "no" or reason:
        last_clause = re.split(LAST_CLAUSE, plain)[-1].strip(PUNCTUATION)
        # Where a text begins with a condition, its words belong to the condition, so none of them refuses.
        has_condition = begins("scopes.condition", plain, language)
        is_doubtful = (
            waits
            or has_condition
            or search("answers.twice", plain, language)
            or fullmatch("answers.orders", last_clause, language)
            or "yes" in kinds_in(last_clause, language)
        )
        if is_doubtful:
            condition = search("scopes.condition", plain, language) is not None
            return WholeAnswer(condition=condition, waits=waits, against=True)
        return WholeAnswer("no", reason, waits=waits, against=True)
    word_kinds = list(kinds_in(parts.rest, language))
    is_wish = word_kinds[:1] in (["yes"], ["agree"]) and word_kinds[-1:] == [""]
    condition = search("scopes.condition", parts.rest, language) is not None or (is_wish and is_against)
    is_wish |= condition and agrees_somewhere(parts.rest, language)
    speaks = speaks_of_reach(plain, language)
    reaches = speaks and not parts.scope if condition else speaks or bool(parts.scope)
    answer = WholeAnswer(condition=condition, waits=waits, wish=is_wish, reaches=reaches, against=is_against)
    return answer if waits else _clause_by_clause(plain, answer, language)


def without_own_doing(plain: str, language: str) -> str:
    """Returns the text without the clauses at its end that only say what the user does meanwhile: `wait, let me look at
    the tests first`."""
    clauses = clauses_of(plain, language)
    clause_count = len(clauses)
    while clause_count > 1 and fullmatch("scopes.own", clauses[clause_count - 1], language):
        clause_count -= 1
    return ", ".join(clauses[:clause_count]) if clause_count < len(clauses) else plain


def _polite_order(plain: str, language: str) -> str:
    """Returns the order in an answer that says yes and asks for something politely ("yes, could you run it?"). Returns
    an empty text if there is no such order."""
    polite = search("scopes.polite", plain, language)
    head, *further_parts = re.split(CLAUSE_END, plain)
    if not polite or (any(further_parts) and yes_or_no(head, language) != "yes"):
        return ""
    return f"{plain[: polite.start()]}{plain[polite.end() :]}".rstrip("?")


def _with_tail(agreed: WholeAnswer, tail: Tail, clause: str, language: str) -> WholeAnswer:
    for_good = tail.scope == PERMANENT and _names_always(clause, language)
    scope: Scope = PERMANENT if agreed.scope == PERMANENT and tail.scope and not tail.bounded else tail.scope
    return _wider(agreed, scope, tail.about, for_good, tail.place == "back")


def _clause_by_clause(plain: str, read: WholeAnswer, language: str) -> WholeAnswer:
    """Reads an answer that has a yes and further clauses. Clauses that agree, praise, remark something or set the scope
    are understood. If all clauses are, the answer is a yes. If a clause refuses, `read` is returned unchanged."""
    agreed_answer, says_yes, unclear_clauses = WholeAnswer("yes"), False, list[str]()
    for clause in joined_clauses(plain, language):
        word_kinds, tail = set(kinds_in(clause, language)), read_tail(clause, language)
        parts = taken_apart(clause, language)
        has_scope = parts.scope or parts.background or parts.rest != clause
        remaining_kinds = set(kinds_in(parts.rest, language)) if has_scope else word_kinds
        if tail and (tail.scope or tail.place) and not (agreed_answer.about and tail.about):
            agreed_answer, says_yes = _with_tail(agreed_answer, tail, clause, language), says_yes or tail.agrees
        elif "refuse" in word_kinds and not word_kinds & {"", "yes"} and not has_scope:
            return read
        elif remaining_kinds <= SAYS_LITTLE and not ((agreed_answer.about and parts.about) or asks(clause, language)):
            says_yes |= bool(remaining_kinds & {"yes", "agree"}) and not parts.bounded
            for_good = parts.scope == PERMANENT and _names_always(clause, language)
            agreed_answer = _wider(agreed_answer, parts.scope, parts.about, for_good, parts.background)
        elif parts.background and fullmatch("scopes.begins", parts.rest.strip(PUNCTUATION), language):
            says_yes, agreed_answer = True, agreed_answer._replace(background=True)
        elif not tail and not _only_remarks(clause, agreed_answer, language):
            unclear_clauses.append(clause)
    if agreed_answer.scope == PERMANENT and search("scopes.bounds", plain, language):
        agreed_answer = agreed_answer._replace(scope="session", for_good=False)
    if not says_yes:
        return read
    if not unclear_clauses:
        return agreed_answer
    rest = ", ".join(unclear_clauses)
    # A yes beside which something is left out, changed or forbidden sets a condition, whatever its words are.
    narrows = read.condition or search("scopes.against", rest, language) is not None
    return read._replace(agreed=agreed_answer, rest=rest, condition=narrows)


def _wider(agreed: WholeAnswer, scope: Scope, about: str, for_good: bool, background: bool) -> WholeAnswer:
    """Adds the meaning of one more clause. The word `once` cancels every wider scope."""
    only_once = "once" in (scope, agreed.scope)
    return agreed._replace(
        scope="once" if only_once else scope or agreed.scope,
        about="" if only_once else about or agreed.about,
        for_good=(for_good or agreed.for_good) and not only_once,
        background=background or agreed.background,
    )


def _only_remarks(clause: str, agreed: WholeAnswer, language: str) -> bool:
    """Says whether a clause only praises or gives a reason, so that it asks for nothing. A clause with a name, a
    negation, a wish or a comparison may ask for something; a clause about the past may say that nothing is needed."""
    if fullmatch("scopes.requested", clause, language):
        return True
    if search("scopes.against", clause, language):
        return False
    if fullmatch("scopes.praises", clause, language):
        return not search("scopes.condition", clause, language)
    if fullmatch("scopes.reasons", clause, language):
        return True
    # After "in the background" or "no more questions", the user says what they do meanwhile.
    is_alone = agreed.background or agreed.scope in ("session", "always")
    own_doing = fullmatch("scopes.own", clause, language) or fullmatch("scopes.busy", clause, language)
    if is_alone and own_doing and not search("scopes.condition", clause, language):
        return True
    return bool(fullmatch("scopes.remark", clause, language)) and not search("scopes.asks_for", clause, language)


def read_answer(
    text: str,
    offered: tuple[str, ...] = ("yes", "no"),
    language: str = DEFAULT_LANGUAGE,
    deeds: frozenset[str] = frozenset(),
) -> Answer | None:
    """Reads the number of an offered choice, a word for a choice, a yes or a no, or `no: because …`; returns None for
    any other text. `deeds` is as in `read_whole`."""
    plain_text = unicodedata.normalize("NFKC", text).strip()
    word = plain_text.strip(PUNCTUATION).casefold()
    choice = gate_key(word)
    if choice in offered or word.isdecimal():
        return Answer(choice=choice) if choice in offered and choice != PERMANENT else None
    if (choice := words_of_choices(languages_in(plain_text, language)).get(word)) in offered:
        return Answer(choice=choice)
    reply = read_whole(text, language, deeds)
    if reply.bounded:
        scope = PERMANENT if reply.for_good else "session"
        answer = Answer(choice=scope, text=plain_text, about=reply.about, bounded=True)
        return answer if scope in offered else None
    if reply.waits and yes_or_no(plain_text, language) in offered:
        return Answer(choice=yes_or_no(plain_text, language))
    if reply.verdict in offered:
        return Answer(choice=reply.verdict, text=reply.reason)
    return _refused_by_choice(plain_text, offered, language)


def spelled_out(text: str) -> str:
    """Replaces the number for yes at the beginning of an answer by a yes, if more text follows."""
    first_part, separator, further_text = _split_reason(unicodedata.normalize("NFKC", text).strip())
    return f"{AGREED.strip()}, {further_text}" if separator and further_text and gate_key(first_part) == "yes" else text


def about_plan(about: str, language: str = DEFAULT_LANGUAGE) -> Literal["", "files", "all"]:
    """Says whether a scope is the current plan: `files` for only its files, `all` for all of it; empty if neither."""
    if not fullmatch("scopes.plan", about, language):
        return ""
    return "files" if search("scopes.files", about, language) else "all"


def without_reference(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Returns the text without words such as "in that case", which set no condition after a question was answered."""
    return without("scopes.reference", text, "", language)[0].strip()


def means_always(text: str, offered: tuple[str, ...]) -> bool:
    """Says whether a text chooses the permanent rule by a key, without the word that the rule requires."""
    word = unicodedata.normalize("NFKC", text).strip(PUNCTUATION).casefold()
    return PERMANENT in offered and (word == "a" or gate_key(word) == PERMANENT)


def _names_always(plain: str, language: str) -> bool:
    choices = words_of_choices(languages_in(plain, language)).items()
    return any(choice == PERMANENT and word in plain.casefold() for word, choice in choices)


def _main_part(plain: str, language: str) -> str:
    """Returns the text without phrases that people say before they answer ("sorry for the wait"), or when they repeat
    themselves ("as I said")."""
    for name in ("scopes.preface", "scopes.afterword"):
        plain, _ = without(name, plain, " ", language)
    return plain.strip()


def _refusal(plain: str, language: str) -> str:
    """Returns the reason in `no, because …`; empty where the text does not begin with a no."""
    # The no may have several words: "rather not, …".
    splits = _split_reason(plain), _split_reason(plain, SIGNS)
    first_part, separator, reason = splits[yes_or_no(splits[0][0], language) != "no"]
    first_kind = next(kinds_in(plain, language), "") if separator else ""
    if first_kind not in ("refuse", "glue", "pause") or yes_or_no(first_part, language) != "no":
        # The no may stand in the first clause, or in the last one after a reason. What is denied in a reason ("we don't
        # use it, so delete it") refuses nothing.
        clauses = clauses_of(plain, language)
        words = [yes_or_no(clause, language) for clause in clauses]
        if len(words) < 2 or "yes" in words:
            return ""
        gives_reason = search("answers.reason", clauses[0], language) and agrees_somewhere(
            clauses[-1], language, ("yes", "agree", *DEEDS)
        )
        # "Do the first step, then stop" only says what comes after the action.
        refuses_last = words[-1] == "no" and not begins("scopes.afterwards", clauses[-1], language)
        refuses = refuses_last or (words[0] == "no" and not gives_reason)
        return plain if refuses else ""
    if separator != " ":
        return reason.strip()
    # Without a sign after the first word, that word may belong to a name: "no hurry", "cancel step 3".
    if not search("answers.forbids", plain, language) and list(kinds_in(plain, language))[1:2] == [""]:
        return ""
    return reason.strip() if fullmatch("answers.plain_no", first_part, language) else plain


def _refuses_this(plain: str, language: str) -> bool:
    """Says whether the last clause refuses, and the others only allow other things or other times, or are only polite:
    `tests are always fine, but not this`."""
    *clauses, last_clause = clauses_of(plain, language) or [""]
    tails = [read_tail(clause, language) for clause in clauses if set(kinds_in(clause, language)) != {"glue"}]
    last_clause, _ = without("scopes.joint", last_clause, "", language)
    return bool(clauses) and all(tail and tail.scope for tail in tails) and yes_or_no(last_clause, language) == "no"


def _orders_else(plain: str, language: str) -> bool:
    """Says whether a clause of a no says what to do instead: `no, start the plan`."""
    kinds_of_clauses = [list(kinds_in(clause, language)) for clause in re.split(CLAUSE_END, plain)]
    return any(len(kinds) >= TELLING and "agree" in kinds and "refuse" not in kinds for kinds in kinds_of_clauses)


def _refused_by_choice(plain: str, offered: tuple[str, ...], language: str) -> Answer | None:
    """Reads a no that is given by its number or letter and has a reason: `2: use tabs`, `n: use tabs`."""
    head, separator, reason = _split_reason(plain)
    if "no" not in offered or not separator.strip() or not reason.strip():
        return None
    is_no = gate_key(head) == "no" or words_of_choices(languages_in(plain, language)).get(head.casefold()) == "no"
    return Answer(choice="no", text=reason.strip()) if is_no else None


def _split_reason(text: str, marks: Sequence[str] = (*SIGNS, " ")) -> tuple[str, str, str]:
    """Splits a text at the first mark. Returns the text before the mark, the mark, and the text after it."""
    mark_offsets = [(offset, mark) for mark in marks if (offset := text.find(mark)) > 0]
    offset, mark = min(mark_offsets, default=(len(text), ""))
    return text[:offset], mark, text[offset + len(mark) :].lstrip(PUNCTUATION + ":")
