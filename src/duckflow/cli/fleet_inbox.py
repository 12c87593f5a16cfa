"""The inbox of all fleets in a terminal: what attempts ask, one after the other, answered once for all if wished."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from duckflow.cli.fleet_table import tell
from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.fleet.engine import Engine
from duckflow.fleet.task import Answered, Asked
from duckflow.i18n.answers import read_answer
from duckflow.i18n.words import Words
from duckflow.ui.console.question_panel import print_question
from duckflow.ui.streams import print_out


def show_inbox(engine: Engine, fleet: str, options: Options, words: Words) -> int:
    """Answered here where there is a person; else only listed."""
    asked = engine.inbox(fleet)
    if options.json:
        print_out(json.dumps([_as_json(one, words) for one in asked], ensure_ascii=False))
    elif not asked:
        tell(words("fleet.inbox_empty"))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        go_through(engine, fleet, words)
    else:
        for one in asked:
            tell(f"{one.asked_id}  {_who(one, asked, words)}")
            print_question(one.question, words)
        tell(words("fleet.inbox_how"))
    return 0


def go_through(engine: Engine, fleet: str, words: Words) -> None:
    """One question after the other, also those that come meanwhile; an empty line leaves one for later."""
    later: set[str] = set()
    while asked := [one for one in engine.inbox(fleet) if one.asked_id not in later]:
        first = asked[0]
        tell(_who(first, asked, words))
        print_question(first.question, words)
        try:
            line = input("> ").strip()
        except EOFError:
            return
        later.add(first.asked_id)
        if line:
            others = len(_same(first, asked))
            everybody = bool(others) and _says_yes(input(words("fleet.for_all", count=others)), words)
            answered = Answered(asked_id=first.asked_id, text=line, for_all_same=everybody)
            tell(_told(engine.answer(answered), words))


def answer(engine: Engine, options: Options, words: Words) -> int:
    """`fleet answer ID WORDS…`, for scripts and for those who have seen the question elsewhere."""
    wanted, *rest = options.words or [""]
    fitting = [one for one in engine.inbox() if one.asked_id.startswith(wanted)] if wanted else []
    if not rest or len(fitting) != 1:
        raise UsageError("fleet.answer_which" if wanted else "fleet.answer_usage", asked=wanted)
    text, all_same = " ".join(rest), bool(options.all_same)
    count = engine.answer(Answered(asked_id=fitting[0].asked_id, text=text, for_all_same=all_same))
    tell(_told(count, words))
    return 0 if count else 1


def _as_json(asked: Asked, words: Words) -> dict[str, Any]:
    """With the texts beside the keys, as people read them."""
    question = asked.question
    texts = [words.phrase(phrase) for phrase in (question.title, *question.details)]
    choices = {choice.key: words.phrase(choice.label) for choice in question.choices}
    return asked.model_dump(mode="json") | {"text": "\n".join(texts), "choices": choices}


def _who(one: Asked, asked: Sequence[Asked], words: Words) -> str:
    others = len(_same(one, asked))
    told = words("fleet.who", task=one.task, attempt=one.attempt, fleet=one.fleet)
    return f"{told} {words('fleet.who_same', count=others)}" if others else told


def _same(one: Asked, asked: Sequence[Asked]) -> list[Asked]:
    """An answer for all reaches those of the same fleet."""
    alike = [other for other in asked if (other.fleet, other.same) == (one.fleet, one.same)]
    return [other for other in alike if other.asked_id != one.asked_id]


def _says_yes(line: str, words: Words) -> bool:
    read = read_answer(line, language=words.language)
    return read is not None and read.choice == "yes"


def _told(count: int, words: Words) -> str:
    return words("fleet.answered", count=count) if count else words("fleet.answered_before")
