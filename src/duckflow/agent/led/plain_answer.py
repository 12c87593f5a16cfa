"""Asks a small model for an answer in plain text. In a reply with actions such a model says what it did, and not what
it saw."""

import re
from collections.abc import Iterator
from pathlib import Path

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.led.tryout import made_up
from duckflow.agent.policies.policy import Loop, TurnSoFar
from duckflow.agent.project import LANGUAGES
from duckflow.events.types import MessageAdded
from duckflow.forms.form import ParsedReply
from duckflow.i18n.template import render
from duckflow.i18n.words import facts_of
from duckflow.prompts.compact import MATERIAL_LENGTH, fenced, plain_request
from duckflow.state.action import LIST_FILES, READ_FILE, RESPOND, Action
from duckflow.state.message import Message

TOKENS = 400
NAMES = 20
ANSWER = "answer.txt"


class PlainAnswer:
    """Asks for an answer that is based on this turn's results and nothing else."""

    def __init__(self, dispatcher: Dispatcher, bodies: Bodies, actor: Actor) -> None:
        self._dispatcher = dispatcher
        self._bodies = bodies
        self._actor = actor

    async def give(self, turn: TurnSoFar, words: str) -> Loop | None:
        """Returns a separate loop that holds the answer; None without results to answer from, or without an answer."""
        state = turn.state
        if not (material := _material(turn)):
            return None
        prompt = render(
            state.language,
            "answer_plain",
            material="\n\n".join((material, *_counted(turn))),
            request=turn.request,
            words=words,
            language_name=facts_of(state.language).name,
        )
        reply = await self._bodies.call(plain_request(state.language, prompt), ANSWER, TOKENS)
        text = reply.text.strip()
        if reply.finish == "refusal" or not text or _repeats(text, words, turn.request):
            return None
        decision = made_up(Action(operation=RESPOND, args={"text": text}, reasoning=words))
        message = Message(role="assistant", text=text, turn=state.turn, decision=decision)
        self._actor.emit(MessageAdded(message=message))
        return Loop(decision, await self._dispatcher.run(ParsedReply(decision), self._actor))


def _repeats(text: str, *asked: str) -> bool:
    """Says whether the text only repeats the words of the request."""
    answer, *questions = (re.sub(r"\W+", "", words).casefold() for words in (text, *asked))
    return any(answer in question for question in questions)


def _material(turn: TurnSoFar) -> str:
    """Returns the newest results of this turn, as far as there is room. A file that was read again is shown as it is
    now."""
    room_left, sections, seen_names = MATERIAL_LENGTH, list[str](), set[str]()
    results = [message for message in turn.state.messages if message.turn == turn.state.turn and message.role == "tool"]
    for message in reversed(results):
        heading, _, text = message.text.partition("\n")
        if not re.fullmatch(r"\w+\.\w+", message.operation):
            # Text that was piped in or mentioned has no heading of ours.
            heading, text = "", message.text
        name = heading.partition(" (lines ")[0] if message.operation == READ_FILE else ""
        room_left -= len(message.text)
        if room_left < 0:
            break
        if not name or name not in seen_names:
            sections.insert(0, f"{heading}\n{fenced(text)}".strip() if text else heading)
        seen_names.add(name)
    return "\n\n".join(sections)


def _counted(turn: TurnSoFar) -> Iterator[str]:
    """Yields the number of files of each kind in every listed folder, because a small model cannot count them."""
    for loop in turn.loops:
        for action in loop.decision.actions if loop.done.ran(LIST_FILES) else ():
            path, kinds = str(action.args.get("path", ".")), dict[str, list[str]]()
            for file_path in sorted((Path(turn.state.folder) / path).glob("[!.]*")):
                if file_path.is_file():
                    kinds.setdefault(LANGUAGES.get(file_path.suffix, file_path.suffix), []).append(file_path.name)
            lines = [
                turn.note("counted_kind", kind=kind, count=str(len(names)), names=", ".join(names[:NAMES]))
                for kind, names in kinds.items()
            ]
            count = str(sum(map(len, kinds.values())))
            yield "\n".join([*lines, turn.note("counted_all", path=path, count=count)])
