"""Sorts the words of an answer into kinds, as each language lists them (`patterns/answers.txt`).

A yes consists of words that agree and words that say nothing; a no may also have words that refuse. Any other word
makes a text a wish, a condition or a question; it is then neither yes nor no. A Gate is the question before a risky
action.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.asking import asks
from duckflow.i18n.words import NEVER, begins, entries, facts_of, fullmatch, languages, languages_in, rules, search
from duckflow.state.question import GATE_KEYS, NUMBERED_CHOICES

DEEDS = {"run", "write", "delete", "move", "install", "push", "commit", "deed", "pause", "thing"}
SAYS_NO_DEED = {"deed", "pause", "thing"}
REASONS = {*DEEDS, "reason"}
"""The kinds of words in a no that tell what the user wants instead, or why."""
KINDS = {*REASONS, "yes", "agree", "praise", "refuse", "glue", "unclear", "count"}
LONGEST = 80
"""The largest number of characters of a plain yes or no."""
GAP = r"[\s,、。.!~〜…♪☆;:\-\"'「」()*]+"
BEGINNING = 60
TELLS_GOAL = 12
"""The fewest characters of a message that may name a goal. A shorter message ("go on then") does not name one."""
ASKED_SHORTLY = r"\W*\w+(?: \w+)?\s*[?？]"
SIGNS = {"agree": "[👍👌🙆✅⭕🆗]", "refuse": "[❌🙅👎🛑🚫]", "glue": r"[🙏😊😀🎉✨🏻🏼🏽🏾🏿\ufe0f]"}


@cache
def _kinds(languages: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Returns the words of these languages as one pattern with a group for each word, and the kinds of the groups."""
    gaps = [rule.source for language in languages for kind, rule in entries(language, "answers") if kind == "gap"]
    words = [*_words(languages, "answers", KINDS), *SIGNS.items()]
    pattern = "|".join((GAP, *filter(None, gaps), *(f"({source})" for _, source in words)))
    return re.compile(pattern), tuple(kind for kind, _ in words)


def _words(languages: tuple[str, ...], topic: str, kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields the kind and the pattern of each word. The default language comes after other languages. Languages without
    spaces come last, since their words could match inside the words of other languages."""
    for language in sorted(languages, key=lambda code: (not facts_of(code).spaces, code == DEFAULT_LANGUAGE)):
        letters, spaces = facts_of(language).letters, facts_of(language).spaces
        for kind, rule in entries(language, topic):
            if kind in kinds:
                yield kind, rf"(?<![{letters}])(?:{rule.source})(?![{letters}])" if spaces else rule.source


def kinds_in(text: str, language: str) -> Iterator[str]:
    """Yields the kind of each word, up to the first unknown word, for which it yields an empty text."""
    plain_text = unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("’", "'")
    words, group_kinds = _kinds(languages_in(plain_text, language))
    offset = 0
    while offset < len(plain_text):
        word = words.match(plain_text, offset)
        if word is None or len(text) > LONGEST:
            yield ""
            return
        offset = word.end()
        if word.lastindex:
            yield group_kinds[word.lastindex - 1]


def yes_or_no(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Returns `yes` or `no` where a text says just that; empty where it says more, or both, or asks. Praise alone is
    neither yes nor no, because it does not say what is to be done."""
    word_kinds = {""} if asks(text, language) else set(kinds_in(text, language))
    # "Not both" leaves open which one.
    if word_kinds & {"unclear", ""} or ("refuse" in word_kinds and word_kinds & {"yes", "count"}):
        return ""
    if "refuse" in word_kinds:
        return "no"
    return "yes" if word_kinds & {"yes", "agree"} and not word_kinds & DEEDS else ""


def agrees_somewhere(text: str, language: str, agreeing: Collection[str] = ("yes", "agree")) -> bool:
    """Says whether the text contains a word of an agreeing kind, whatever else it says."""
    plain_text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words, group_kinds = _kinds(languages_in(plain_text, language))
    known_kinds = (group_kinds[word.lastindex - 1] for word in words.finditer(plain_text) if word.lastindex)
    return any(kind in agreeing for kind in known_kinds)


def surely_wishes(text: str, language: str) -> bool:
    """Says whether an answer that agrees surely wants something else done first, and says nothing about asking."""
    plain_text = unicodedata.normalize("NFKC", text)
    has_order = search("scopes.surely_wished", plain_text, language) is not None
    return has_order and search("scopes.may_reach", plain_text, language) is None


def without_politeness(text: str, language: str) -> str:
    """Replaces each word that only serves politeness or grammar, or only agrees, by a space."""
    words, kinds = _kinds(languages_in(text, language))
    polite = {"glue", "yes", "agree", "praise"}
    return words.sub(lambda word: " " if word.lastindex and kinds[word.lastindex - 1] in polite else word[0], text)


def means_either(text: str, language: str) -> bool:
    """Says whether a text consists of words that people say for a yes as well as for "no, thank you"."""
    plain_text = unicodedata.normalize("NFKC", text).strip().replace("’", "'")
    return fullmatch("answers.either", plain_text, language) is not None


VERB = "verb."


@cache
def asked_deeds() -> frozenset[str]:
    """Returns the actions that a question may be about and that people name in an answer."""
    kinds = {kind for code in languages() for kind, _ in entries(code, "answers")}
    return frozenset(kind.removeprefix(VERB) for kind in kinds if kind.startswith(VERB) or kind in DEEDS - SAYS_NO_DEED)


def with_plain_deeds(text: str, deeds: Collection[str], language: str) -> str:
    """Replaces each order for just the action that was asked about ("delete it") by "do it". `deeds` holds the actions,
    and the words of the command, which count only after a verb ("run npm install"): the model chooses them. A text that
    adds something ("that too") stays as it is."""
    if not deeds or search("answers.more", text, language):
        return text
    languages = languages_in(text, language)
    named = "|".join(re.escape(deed) for deed in deeds)
    kinds = {*deeds, *(f"{VERB}{deed}" for deed in deeds)} - SAYS_NO_DEED
    verbs = "|".join(rule.source for code in languages for kind, rule in entries(code, "answers") if kind in kinds)
    for code in languages:
        for rule, plain_deed in zip(rules(code, "answers.repeated"), rules(code, "answers.plain_deed"), strict=False):
            source = rule.source.replace("VERB", verbs or NEVER).replace("NAMED", f"(?:{named})(?: (?:{named}))*")
            text = re.sub(source, plain_deed.source, text, flags=re.IGNORECASE)
    return text


def in_full(text: str, language: str) -> str:
    """Writes words in full that people write shortly, and spoken endings as they are written: each language names the
    full form of each."""
    for code in languages_in(text, language):
        for name, rule in entries(code, "answers"):
            if name.startswith(FULL):
                text = rule.pattern.sub(name.removeprefix(FULL), text)
    return text


FULL = "full."
WORD = r"(?<![\w.'/-])[a-z]{3,}(?![\w.'/-])"
SLIP = 4
"""The fewest letters of a word in which a wrong letter is corrected."""


def corrected(text: str, language: str) -> str:
    """Corrects words with one wrong, missing, added or swapped letter, and words with repeated letters, if exactly one
    word of an answer could be meant; in languages without spaces, polite endings."""
    known_words = _spelled(languages_in(text, language))

    def meant(word_match: re.Match[str]) -> str:
        word = word_match[0]
        if word in known_words or word.removesuffix("s") in known_words:
            return word
        candidates = {known for known in known_words if _is_slip(word, known)}
        return candidates.pop() if len(candidates) == 1 else word

    text = re.sub(WORD, meant, text.casefold())
    for code in languages_in(text, language):
        for ending in (word for rule in rules(code, "answers.endings") for word in rule.listed):
            text = _with_ending(text, ending, facts_of(code).letters)
    return text


def _with_ending(text: str, ending: str, letters: str) -> str:
    """Corrects a polite ending of a clause in which one letter is wrong, missing or too many."""
    slips = (
        rf"{ending[:place]}(?:[{letters}a-z]?{letter}|[{letters}a-z])?{ending[place + 1 :]}"
        for place, letter in enumerate(ending)
        if place
    )
    return re.sub(rf"(?:{'|'.join(slips)})(?=[\s、。,.!！~〜ー]|$)", ending, text)


@cache
def _spelled(languages: tuple[str, ...]) -> frozenset[str]:
    """Returns the words of three letters or more that the patterns for answers, scopes and tails spell out."""
    topics = ("answers", "scopes", "tails")
    sources = (rule.source for code in languages for topic in topics for _, rule in entries(code, topic))
    return frozenset(word for source in sources for word in re.findall(r"(?<![\w\\\[<])[a-z]{3,}(?![\w?*+])", source))


def _is_slip(word: str, known: str) -> bool:
    if known[0] != word[0] and known[:2] != word[1::-1]:
        return False
    if re.sub(r"(.)\1+", r"\1", word) == re.sub(r"(.)\1+", r"\1", known):
        return True
    if min(len(word), len(known)) < SLIP or len(known) <= SLIP or abs(len(word) - len(known)) > 1:
        return False
    start = next(
        (place for place, (one, other) in enumerate(zip(word, known, strict=False)) if one != other),
        min(len(word), len(known)),
    )
    rest, known_rest = word[start:], known[start:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return known_rest in (rest[1:], swapped) or rest == known_rest[1:] or rest[1:] == known_rest[1:]


@cache
def words_of_choices(languages: tuple[str, ...]) -> dict[str, str]:
    """Returns the single words that stand for choices, each with its choice."""
    pairs = (pair for language in languages for pair in entries(language, "answers") if pair[0].startswith("choice."))
    return {word: name.removeprefix("choice.") for name, rule in pairs for word in rule.source.split("|") if word}


def gate_key(sign: str) -> str:
    """Returns the choice that a number or a letter stands for at a Gate (a question before a risky action); an empty
    text if there is none."""
    if sign.isdecimal():
        return GATE_KEYS[int(sign) - 1] if 1 <= int(sign) <= len(GATE_KEYS) else ""
    return next((key for key in GATE_KEYS[NUMBERED_CHOICES:] if key[0] == sign.casefold()), "")


def begins_as_answer(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a line begins like an answer to a Gate (a question before a risky action), whatever follows: with a
    plain yes or no, with the number or letter of a choice, or with a first part that is a complete answer."""
    plain_text = unicodedata.normalize("NFKC", text).strip()
    part = search("answers.part", plain_text, language)
    head = plain_text[: part.start()] if part else plain_text
    if gate_key(head) or head.casefold() in words_of_choices(languages_in(plain_text, language)):
        return True
    first = next(kinds_in(plain_text[:BEGINNING], language), "")
    return first == "yes" or begins("answers.no", plain_text, language) is not None or yes_or_no(head, language) != ""


def answers_only(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a line begins like an answer and is no order of its own. A verb that may agree ("run it") gives an
    order where it has an object that is named ("run all the tests once more")."""
    plain_text = unicodedata.normalize("NFKC", text).strip()
    order = begins("requests.part", plain_text, language)
    if order is None or order.lastgroup is None or begins("answers.object", plain_text[order.end() :], language):
        return begins_as_answer(text, language)
    orders = set(kinds_in(plain_text[: order.start(order.lastgroup)], language)) <= {"glue"}
    return begins_as_answer(text, language) and not (orders and {"", "run"} & set(kinds_in(plain_text, language)))


def replies_only(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a message begins as an answer ("no, only the docs") or asks something back ("really? and why")."""
    plain_text = unicodedata.normalize("NFKC", text).strip()
    question_match = begins("answers.asked", plain_text, language) or re.match(ASKED_SHORTLY, plain_text)
    return bool(question_match) or answers_only(plain_text, language)


def may_be_goal(text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a message may name a goal: it is long enough, and does more than reply."""
    return len(text.strip()) >= TELLS_GOAL and not replies_only(text, language)
