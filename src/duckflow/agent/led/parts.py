"""Finds the parts of a request: files to write, commands to run, things to look at or to do, and answers to give. It
uses rules only, and asks no model."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.agent.led.errand import PATH, errand, is_file
from duckflow.i18n.words import has, in_language, languages_in

LONGEST = 500
"""The length of the longest request that is searched for orders. A longer one mentions many things that it does not
order."""
PROGRAMS = {
    ".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl", ".php": "php",
    ".lua": "lua", ".go": "go run",
}  # fmt: skip
QUOTED = r"(?s:```.*?(?:```|\Z))|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』"
FILE = "<file>"

ORDERED = ("run", "look", "deed", "answer")
"""The kinds of orders that count as parts of a request by themselves. Files are found separately; the model decides
about everything else."""
Kind = Literal["write", "run", "look", "deed", "answer"]


class OwedPart(NamedTuple):
    """A part of the request that must still be done, in the user's own words. A file to be written may have no name
    yet."""

    kind: Kind
    words: str
    files: tuple[str, ...] = ()
    command: str = ""
    """The command that the request itself gives for a run."""
    tests: bool = False
    """True if this part asks to run the project's tests."""
    unclear: bool = False
    """True if neither the request nor a rule says which command runs this part."""


class RequestParts(NamedTuple):
    """The parts that a request asks for, in the order in which it names them."""

    owed: tuple[OwedPart, ...] = ()
    whole: bool = False
    """True if the request seems to want nothing else, so that the turn is over when the parts are done."""


class RequestOrder(NamedTuple):
    """A verb that orders something, the text it is about, and the place of both in the request."""

    kind: str
    verb: str
    about: str
    start: int
    end: int


@lru_cache(64)
def parts(request: str, language: str = DEFAULT_LANGUAGE) -> RequestParts:
    """Returns the parts of a request. Anything that is not clearly ordered is left to the model. The files to be
    written are those that `errand` finds."""
    asked_errand = errand(request, language)
    if len(request) > LONGEST:
        return RequestParts(tuple(_writes(asked_errand.writes, request).values()), asked_errand.only_writes)
    for spoken_language in reversed(languages_in(request, language)):
        orders = list(_orders(request, spoken_language))
        if any(order.kind in ORDERED for order in orders):
            return _with_orders(request, spoken_language, orders, asked_errand.writes)
    return RequestParts(tuple(_writes(asked_errand.writes, request).values()), asked_errand.only_writes)


def files_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[1] for match in re.finditer(PATH, text) if is_file(match[1])))


def program_for(path: str) -> str:
    """Returns the program that can run a file; an empty text if no such program is known."""
    return PROGRAMS.get(path[path.rfind(".") :], "") if "." in path else ""


def _writes(files: tuple[str, ...], request: str) -> dict[int, OwedPart]:
    return {request.find(path): OwedPart("write", path, (path,)) for path in files}


def _orders(request: str, spoken: str) -> Iterator[RequestOrder]:
    """Yields the orders of the request in the language `spoken`. Verbs in quoted text are no orders."""
    masked_request = re.sub(QUOTED, lambda quoted: "x" * len(quoted[0]), request)
    orders = [match for match in in_language(spoken, "requests.part").finditer(masked_request) if match.lastgroup]
    orders = [match for match in orders if not _inside(masked_request, match, spoken)]
    sentence_end = in_language(spoken, "requests.sentence_end")
    verb_first = has(spoken, "requests.verb_before")
    for number, match in enumerate(orders):
        kind = next(name for name, text in match.groupdict().items() if text is not None)
        if verb_first:
            start, end = match.end(), orders[number + 1].start() if number + 1 < len(orders) else len(masked_request)
            stop = sentence_end.search(masked_request, start, end)
            end = stop.start() if stop else end
            yield RequestOrder(kind, match[kind], request[start:end], match.start(), end)
        else:
            start = orders[number - 1].end() if number else 0
            earlier_ends = [stop.end() for stop in sentence_end.finditer(masked_request, start, match.start())]
            start = earlier_ends[-1] if earlier_ends else start
            yield RequestOrder(kind, match[kind], request[start : match.start()], start, match.end())


def _inside(plain: str, match: re.Match[str], spoken: str) -> bool:
    """Says whether the verb is no order, but describes a program that the user wants, as in `a script to read a file
    and count its words`."""
    text_before, text_after = re.sub(PATH, FILE, plain[: match.start()]), re.sub(PATH, FILE, plain[match.end() :])
    if in_language(spoken, "requests.inside_after").search(text_after):
        return True
    joint_match = in_language(spoken, "requests.inside_joint").fullmatch(match[0])
    description_match = in_language(spoken, "requests.inside_before").search(text_before)
    return bool(joint_match and description_match) and not in_language(spoken, "requests.own_object").search(text_after)


def _with_orders(request: str, spoken: str, orders: list[RequestOrder], writes: tuple[str, ...]) -> RequestParts:
    owed_parts = _writes(writes, request)
    remaining_text, unnamed_pattern = request, in_language(spoken, "requests.unnamed_file")
    is_whole = all(order.kind != "rest" for order in orders)
    is_whole &= bool(writes) or all(order.kind != "write" or unnamed_pattern.search(order.about) for order in orders)
    for order in orders:
        if order.kind == "write" and not writes and unnamed_pattern.search(order.about):
            owed_parts[order.start] = OwedPart("write", _words(order, spoken))
        if order.kind in ORDERED:
            order_parts = list(_parts_of(order, request, spoken, tuple(owed_parts.values())))
            owed_parts |= {order.end + offset: part for offset, part in enumerate(order_parts)}
            remaining_text = _blanked(remaining_text, order.start, order.end) if order_parts else remaining_text
        elif has(spoken, "requests.verb_before"):
            remaining_text = _blanked(remaining_text, order.start, order.end - len(order.about))
    remaining_text = in_language(spoken, "requests.part_joint").sub(" ", remaining_text)
    is_whole = is_whole and not any(part.unclear for part in owed_parts.values())
    is_whole = is_whole and not in_language(spoken, "requests.more").search(remaining_text)
    return RequestParts(tuple(owed_parts[offset] for offset in sorted(owed_parts)), is_whole and bool(owed_parts))


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _parts_of(order: RequestOrder, request: str, spoken: str, before: tuple[OwedPart, ...]) -> Iterator[OwedPart]:
    words, files, last_program = _words(order, spoken), files_in(order.about), _last_program(request, before)
    run_match = in_language(spoken, "requests.of_run").search(order.about)
    match order.kind:
        case "run":
            yield _run(order, words, files, last_program, spoken)
        case "deed":
            file_pattern = in_language(spoken, "requests.deed_object")
            if files and (file_pattern.search(re.sub(PATH, FILE, order.about)) or file_pattern.search(order.verb)):
                yield OwedPart("deed", words, files_in(f"{order.about} {order.verb}"))
        case "look":
            if not files:
                yield OwedPart("look", words)
            yield OwedPart("answer", words)
        case _:
            if run_match and last_program and all(part.kind != "run" for part in before):
                yield OwedPart("run", words, (last_program,))
            elif not files and in_language(spoken, "requests.of_folder").search(order.about):
                yield OwedPart("look", words)
            yield OwedPart("answer", words, files)


def _words(order: RequestOrder, spoken: str) -> str:
    if has(spoken, "requests.verb_before"):
        return f"{order.verb} {order.about.strip()}".strip(" .,;:!?")
    subject = in_language(spoken, "requests.part_joint").sub("", order.about)
    return f"{subject.strip()}{order.verb}".strip(" 、,。")


def _run(order: RequestOrder, words: str, files: tuple[str, ...], last: str, spoken: str) -> OwedPart:
    from duckflow.tools.plan.criterion import ARGUMENT, COMMAND

    if command := re.search(rf"`([^`\n]*[^`\s.]\s[^`\n]*)`|({COMMAND}(?:{ARGUMENT})*)", order.about):
        return OwedPart("run", words, files, command[1] or command[2])
    programs = tuple(path for path in files if program_for(path))[:1]
    verb_tests = in_language(spoken, "requests.tests_verb").search(order.verb) is not None
    order_text = order.about if verb_tests else f"{order.verb} {order.about}"
    if not programs and in_language(spoken, "requests.of_tests").search(order_text):
        return OwedPart("run", words, tests=True)
    if not programs and not in_language(spoken, "requests.of_it").fullmatch(order.about):
        return OwedPart("run", words, unclear=True)
    return OwedPart("run", words, programs or ((last,) if last else ()), tests=verb_tests and not programs)


def _last_program(request: str, before: tuple[OwedPart, ...]) -> str:
    """Returns the file that the word `it` in a request means: the last program to be written, or else the last program
    that the request names."""
    written_programs = [path for part in before if part.kind == "write" for path in part.files if program_for(path)]
    named_programs = [path for path in files_in(request) if program_for(path)]
    return (written_programs or named_programs or [""])[-1]
