"""Reads an answer as a whole: a verdict, and what comes with it. Every other reader of answers uses this one.

How far a yes goes and how the work is to run are taken out of the sentence (`patterns/scopes.txt`). Everything else is
read word by word (`patterns/answers.txt`). An unclear answer is never taken for a yes or a no."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.answer_words import (
    BEGINNING,
    REASONS,
    agrees_somewhere,
    kinds_in,
    scope_words,
    words_of_choices,
    yes_or_no,
)
from duckflow.i18n.asking import asks, ends_asking
from duckflow.i18n.language import begins, fitting, fullmatch, languages_in, search
from duckflow.state.question import Answer, gate_key

Verdict = Literal["yes", "no", "other"]
Scope = Literal["", "once", "session", "always"]
PLACES = ("foreground", "background")
PARTS = (*PLACES, "session", "always", "aside", "once")
"""The parts that are taken out of a sentence, in this order."""
PERMANENT = "always"
"""The choice of a permanent rule. It is never made by a single key."""
LONGEST = 300
"""The most characters of an answer: a longer text is a message, and nothing is read into it."""
SHORT = 6
"""The most characters of a yes that is too short to say anything else."""
TELLING = 3
"""The least number of words that say more than a sigh of consent."""
PUNCTUATION = " 。、.,!！"
SIGNS = (":", ",", "、", "。", ".")
DASH = r"\s+[–—-]+\s+"
"""A dash between two parts of a sentence."""
SPLIT = r"(?<=[^\x00-\x7f👍]) (?=[^\x00-\x7f👍])| (?=[,.;])"
"""A space between words of a language that needs none, or before a punctuation mark."""
CLAUSE_END = r"[,.;:!、。]"
LAST_CLAUSE = r"^|[,.;:!]\s|[、。]"
SAYS_LITTLE = {"yes", "agree", "praise", "glue"}
AGREED = " 👍 "
"""A sign that stands in the sentence for words that said yes and how far at the same time."""


class WholeAnswer(NamedTuple):
    """The meaning of an answer."""

    verdict: Verdict = "other"
    reason: str = ""
    """The reason of a no: what is wanted instead, or why."""
    scope: Scope = ""
    """The reach of a yes."""
    about: str = ""
    """The thing that the scope is for, in the words that were said; nothing where it is what was asked about."""
    for_good: bool = False
    """The word was said that a permanent rule requires."""
    condition: bool = False
    """Something else is wanted first: nothing may be done yet."""
    background: bool = False
    bounded: bool = False
    """The yes is for what it names, and says nothing of the other things that were asked about."""
    asks: bool = False
    """The answer asks something back."""
    waits: bool = False
    """Nothing is decided yet."""
    wish: bool = False
    """The answer agrees, but says more than that or sets a condition."""
    reaches: bool = False
    """The answer may say how far a yes goes, in words that are not surely known."""
    against: bool = False
    """Something in the answer may speak against what was asked."""
    rest: str = ""
    """The part beside a yes that is not understood. The scope and the place of the yes are in `agreed`."""
    agreed: "WholeAnswer | None" = None
    """The yes in the answer, without the rest."""

    @property
    def may_be_yes(self) -> bool:
        """Says whether it is a yes, or at least nothing in it speaks against that."""
        doubts = self.verdict == "no" or self.asks or self.waits or self.condition or self.against
        return self.plain_yes or not doubts

    @property
    def plain_yes(self) -> bool:
        """Says whether it is a yes to all that was asked."""
        return self.verdict == "yes" and not self.bounded


class Parts(NamedTuple):
    """A sentence without the parts that were taken out of it, and what those parts mean."""

    rest: str
    scope: Scope = ""
    about: str = ""
    background: bool = False
    bounded: bool = False


@lru_cache(maxsize=64)
def read_whole(text: str, language: str = DEFAULT_LANGUAGE) -> WholeAnswer:
    plain = re.sub(DASH, ", ", unicodedata.normalize("NFKC", text).strip().replace("’", "'"))
    if len(plain) <= SHORT and yes_or_no(plain, language) == "yes":
        return WholeAnswer("yes")
    plain = _main_part(plain, language) if len(plain) <= LONGEST else plain
    if not plain or len(plain) > LONGEST:
        return WholeAnswer(against=search("scopes.against", plain, language) is not None)
    waits = search("scopes.wait", plain, language) is not None
    is_against = search("scopes.against", plain, language) is not None
    choice = words_of_choices(languages_in(plain, language)).get(plain.strip(PUNCTUATION).casefold())
    if choice == "session" or choice == "always":
        return WholeAnswer("yes", scope=choice, for_good=choice == PERMANENT)
    parts = _taken_apart(plain, language)
    if asks(parts.rest, language) or ends_asking(parts.rest, language) or begins("answers.asked", plain, language):
        order = _polite_order(plain, language)
        answer = read_whole(order, language) if order else WholeAnswer()
        return answer if answer.plain_yes else WholeAnswer(asks=True, waits=waits, against=is_against)
    word = (not parts.scope and yes_or_no(plain, language)) or yes_or_no(parts.rest, language)
    if parts.rest != plain:
        word = word or words_of_choices(languages_in(plain, language)).get(parts.rest.strip(PUNCTUATION), "")
    if word == "yes" and not waits:
        for_good = parts.scope == PERMANENT and _names_always(plain, language)
        answer = WholeAnswer("yes", "", parts.scope, parts.about, for_good, background=parts.background)
        return answer._replace(bounded=parts.bounded, against=is_against)
    reason = "" if word == "no" or waits else _refusal(parts.rest if parts.scope else plain, language)
    if word == "no" and (REASONS & set(kinds_in(plain, language)) or _orders_else(plain, language)):
        reason = plain
    if word == "no" or reason:
        last = re.split(LAST_CLAUSE, plain)[-1].strip(PUNCTUATION)
        # Where a text begins with a condition, its words belong to the condition: none of them refuses.
        has_condition = begins("scopes.condition", plain, language)
        is_doubtful = (
            has_condition or search("answers.twice", plain, language) or fullmatch("answers.orders", last, language)
        )
        return WholeAnswer("other" if is_doubtful else "no", "" if is_doubtful else reason, waits=waits, against=True)
    scoped = scope_words(plain, language)
    if scoped.allows and not waits and ("grant" in scoped.kinds or _begins_agreeing(plain, language)):
        scope: Scope = (
            "always" if "always" in scoped.kinds and not search("scopes.bounds", plain, language) else "session"
        )
        return WholeAnswer(
            "yes",
            "",
            scope,
            "".join(scoped.names),
            _names_always(plain, language),
            background=parts.background,
            against=is_against,
        )
    kinds = list(kinds_in(parts.rest, language))
    wish = kinds[:1] in (["yes"], ["agree"]) and kinds[-1:] == [""]
    condition = search("scopes.condition", parts.rest, language) is not None
    wish |= condition and agrees_somewhere(parts.rest, language)
    reaches = not condition and (bool(parts.scope) or scoped.speaks)
    answer = WholeAnswer(condition=condition, waits=waits, wish=wish, reaches=reaches, against=is_against)
    return answer if waits else _clause_by_clause(plain, answer, language)


def _polite_order(plain: str, language: str) -> str:
    """Returns the order in a yes that is put politely as a question ("yes, could you run it?"), if there is one."""
    polite = search("scopes.polite", plain, language)
    agrees = yes_or_no(re.split(CLAUSE_END, plain)[0], language) == "yes"
    return f"{plain[: polite.start()]}{plain[polite.end() :]}".rstrip("?") if polite and agrees else ""


def _clause_by_clause(plain: str, read: WholeAnswer, language: str) -> WholeAnswer:
    """Reads a yes with more beside it. Clauses that agree, praise, remark something or say how far the yes goes are
    understood; where nothing else is left, it is a yes. Where a clause refuses, the first reading stays."""
    agreed, says_yes, unclear_clauses = WholeAnswer("yes"), False, list[str]()
    for clause in _clauses(plain, language):
        kinds = set(kinds_in(clause, language))
        if "refuse" in kinds and not kinds & {"", "yes"}:
            return read
        parts = _taken_apart(clause, language)
        scoped = scope_words(clause, language)
        has_scope = parts.scope or parts.background or parts.rest != clause
        remaining_kinds = set(kinds_in(parts.rest, language)) if has_scope else {""}
        if kinds <= SAYS_LITTLE:
            says_yes |= bool(kinds & {"yes", "agree"})
        elif remaining_kinds <= SAYS_LITTLE and not (agreed.about and parts.about):
            says_yes |= bool(remaining_kinds & {"yes", "agree"})
            for_good = parts.scope == PERMANENT and _names_always(clause, language)
            agreed = _wider(agreed, parts.scope, parts.about, for_good, parts.background)
        elif scoped.allows and not (agreed.about and scoped.names):
            agreed = _wider(agreed, "session", "".join(scoped.names), False, False)
        elif not _only_remarks(clause, agreed, language):
            unclear_clauses.append(clause)
    if not says_yes:
        return read
    return read._replace(agreed=agreed, rest=", ".join(unclear_clauses)) if unclear_clauses else agreed


def _clauses(plain: str, language: str) -> list[str]:
    for code in languages_in(plain, language):
        for rule in fitting(code, "scopes.parts", plain):
            plain = rule.sub("\n", plain)
    return [clause for part in plain.split("\n") if (clause := part.strip(PUNCTUATION + ";:-"))]


def _wider(agreed: WholeAnswer, scope: Scope, about: str, for_good: bool, background: bool) -> WholeAnswer:
    """Adds what one more clause says. `once` takes every wider scope back."""
    only_once = "once" in (scope, agreed.scope)
    return agreed._replace(
        scope="once" if only_once else scope or agreed.scope,
        about="" if only_once else about or agreed.about,
        for_good=(for_good or agreed.for_good) and not only_once,
        background=background or agreed.background,
    )


def _only_remarks(clause: str, agreed: WholeAnswer, language: str) -> bool:
    """Says whether a clause only praises or gives a reason, so that it asks for nothing. A clause with a name, a
    negation, a wish or a comparison may ask for something; one about the past may say that nothing is needed."""
    if search("scopes.against", clause, language):
        return False
    if fullmatch("scopes.praises", clause, language):
        return not search("scopes.condition", clause, language)
    if search("scopes.asks_for", clause, language):
        return False
    busy_remark = agreed.background and fullmatch("scopes.busy", clause, language)
    return bool(busy_remark or fullmatch("scopes.remark", clause, language))


def read_answer(text: str, offered: tuple[str, ...] = ("yes", "no"), language: str = DEFAULT_LANGUAGE) -> Answer | None:
    """Reads a number of the offered list, a word for a choice, a yes or a no, or `no: because …`; else returns
    nothing."""
    plain_text = unicodedata.normalize("NFKC", text).strip()
    word = plain_text.strip(PUNCTUATION).casefold()
    choice = gate_key(word)
    if choice in offered or word.isdecimal():
        return Answer(choice=choice) if choice in offered and choice != PERMANENT else None
    if (choice := words_of_choices(languages_in(plain_text, language)).get(word)) in offered:
        return Answer(choice=choice)
    reply = read_whole(text, language)
    if reply.bounded:
        scope = PERMANENT if reply.for_good else "session"
        answer = Answer(choice=scope, text=plain_text, about=reply.about, bounded=True)
        return answer if scope in offered else None
    if reply.verdict in offered:
        return Answer(choice=reply.verdict, text=reply.reason)
    return _refused_by_choice(plain_text, offered, language)


def spelled_out(text: str) -> str:
    """Puts a yes in place of the number for yes, where an answer begins with that and says more."""
    head, separator, remainder = _split_reason(unicodedata.normalize("NFKC", text).strip())
    return f"{AGREED.strip()}, {remainder}" if separator and remainder and gate_key(head) == "yes" else text


def named_in(about: str, language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Returns the names of programs, files and folders in the words of a scope. `the test runs` names `test`."""
    remaining_text = about.casefold()
    for name, replacement in (("scopes.tests", " test "), ("scopes.pointing", " ")):
        remaining_text, _ = _without(name, remaining_text, replacement, language)
    return tuple(word for word in re.findall(r"[\w.+#/-]+", remaining_text) if word.strip("./"))


def about_plan(about: str, language: str = DEFAULT_LANGUAGE) -> Literal["", "files", "all"]:
    """Says whether a scope is the plan that is carried out: only its files, or all of it."""
    if not fullmatch("scopes.plan", about, language):
        return ""
    return "files" if search("scopes.files", about, language) else "all"


def means_always(text: str, offered: tuple[str, ...]) -> bool:
    """Says whether a text points at the permanent rule, but without the word that this requires."""
    word = unicodedata.normalize("NFKC", text).strip(PUNCTUATION).casefold()
    return PERMANENT in offered and (word == "a" or gate_key(word) == PERMANENT)


def _names_always(plain: str, language: str) -> bool:
    choices = words_of_choices(languages_in(plain, language)).items()
    return any(choice == PERMANENT and word in plain.casefold() for word, choice in choices)


def _main_part(plain: str, language: str) -> str:
    """Returns the text without what people say before they answer ("sorry for the wait"), or to say that they repeat
    themselves ("as I said")."""
    for name in ("scopes.preface", "scopes.afterword"):
        plain, _ = _without(name, plain, " ", language)
    return plain.strip()


def _taken_apart(plain: str, language: str) -> Parts:
    """Takes out how far a yes goes and how the work is to run. `once` takes every wider scope back, and words about the
    session limit `always`."""
    sentence, scope_parts, begins_with_scope = plain, dict[str, str](), False
    for part in PARTS:
        for name, replacement in (
            (f"scopes.allows.{part}", AGREED),
            (f"scopes.{part}", " " if part in PLACES else " , "),
        ):
            sentence, matches = _without(name, sentence, replacement, language)
            # Words about where the work is to run may stand in the middle of a sentence about something else.
            sentence = re.sub(SPLIT, "", " ".join(sentence.split())) if part in PLACES and matches else sentence
            for match in matches:
                about = (match.groupdict().get("about") or "").strip()
                begins_with_scope |= bool(about) and not match.string[: match.start()].strip(PUNCTUATION + AGREED)
                scope_parts[part] = scope_parts.get(part) or about
    if sentence != plain:
        sentence, _ = _without("scopes.joint", sentence, " ", language)
    scope: Scope = "once" if "once" in scope_parts else "always" if "always" in scope_parts else ""
    if "session" in scope_parts and (not scope or (scope == "always" and search("scopes.bounds", plain, language))):
        scope = "session"
    about = "" if scope == "once" else scope_parts.get("session") or scope_parts.get("always") or ""
    # A sentence that begins with what is allowed ("all rst files are fine") agrees to just that, unless a yes follows.
    follows = "".join(re.split(CLAUSE_END, sentence.strip(PUNCTUATION))[1:])
    agrees = agrees_somewhere(follows, language) or yes_or_no(re.split(LAST_CLAUSE, plain)[-1], language) == "yes"
    is_bounded = begins_with_scope and bool(named_in(about, language)) and not agrees
    return Parts(
        sentence.strip(), scope, about, "background" in scope_parts and "foreground" not in scope_parts, is_bounded
    )


def _without(name: str, text: str, replacement: str, language: str) -> tuple[str, list[re.Match[str]]]:
    """Returns the text with `replacement` in place of everything that the patterns find, and the matches."""
    matches: list[re.Match[str]] = []
    for code in languages_in(text, language):
        for pattern in fitting(code, name, text):
            offset = 0
            while (match := pattern.search(text, offset)) and match[0]:
                matches.append(match)
                text = text[: match.start()] + replacement + text[match.end() :]
                # The replacement may look the same, so the search goes on behind it.
                offset = match.start() + len(replacement)
    return text, matches


def _begins_agreeing(plain: str, language: str) -> bool:
    """Says whether the first word agrees, apart from politeness and praise."""
    kinds = (kind for kind in kinds_in(plain[:BEGINNING], language) if kind not in ("glue", "praise"))
    return next(kinds, "") in ("yes", "agree")


def _refusal(plain: str, language: str) -> str:
    """Returns the reason in `no, because …`, or nothing where the text does not begin with a no."""
    # The no may have several words: "rather not, …".
    splits = _split_reason(plain), _split_reason(plain, SIGNS)
    head, separator, reason = splits[yes_or_no(splits[0][0], language) != "no"]
    first = next(kinds_in(plain, language), "") if separator else ""
    if first not in ("refuse", "glue") or yes_or_no(head, language) != "no":
        return ""
    # Without a sign after it the first word may belong to what is wanted: "not the README".
    return plain if separator == " " and not fullmatch("answers.plain_no", head, language) else reason.strip()


def _orders_else(plain: str, language: str) -> bool:
    """Says whether a part of a no says what to do instead: `no, start the plan`."""
    parts = [list(kinds_in(part, language)) for part in re.split(CLAUSE_END, plain)]
    return any(len(kinds) >= TELLING and "agree" in kinds and "refuse" not in kinds for kinds in parts)


def _refused_by_choice(plain: str, offered: tuple[str, ...], language: str) -> Answer | None:
    """Reads a no that is chosen by its number or letter and has a reason: `2: use tabs`, `n: use tabs`."""
    head, separator, reason = _split_reason(plain)
    if "no" not in offered or not separator.strip() or not reason.strip():
        return None
    is_no = gate_key(head) == "no" or words_of_choices(languages_in(plain, language)).get(head.casefold()) == "no"
    return Answer(choice="no", text=reason.strip()) if is_no else None


def _split_reason(text: str, marks: Sequence[str] = (*SIGNS, " ")) -> tuple[str, str, str]:
    """Splits a text at the first of the marks."""
    mark_offsets = [(offset, mark) for mark in marks if (offset := text.find(mark)) > 0]
    offset, mark = min(mark_offsets, default=(len(text), ""))
    return text[:offset], mark, text[offset + len(mark) :].lstrip(PUNCTUATION + ":")
