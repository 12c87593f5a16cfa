"""Lets the model answer what the user asks about an open Gate (the question before risky actions)."""

import asyncio
import re
from pathlib import Path

from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.errors import DuckflowError
from duckflow.events.talking import AskedBack
from duckflow.events.types import Event, Noticed
from duckflow.i18n.template import note, quoted
from duckflow.i18n.words import Words
from duckflow.safety.secret_diffs import without_secret_lines
from duckflow.state.data import say
from duckflow.state.question import GateRequest
from duckflow.tools.plan.ports import Think

LONGEST_ACTION = LONGEST_WORK = 6000
LONGEST_PART = 2000
FILE_NAME = re.compile(r"[\w./-]*\w\.\w{1,5}\b")
WINDOW = 7
LEFT_OUT = "…"
NO_RISK = {"level": "", "reasons": "", "undo": ""}


def told_action(gate: GateRequest, folder: Path) -> str:
    """Returns what a model is told of the actions of a Gate: the diff, but no lines of secret files."""
    return without_secret_lines(gate.diff, folder) or ", ".join(gate.operations)


class QuestionsBack:
    """Lets the model answer a question that the user asks about an open Gate. The Gate stays open. The model is asked
    for a text only, so its reply cannot act."""

    def __init__(self, session: Session, questions: Questions, think: Think) -> None:
        self._session = session
        self._questions = questions
        self._think = think
        self._answers: set[asyncio.Task[None]] = set()
        session.subscribe(self._hear, AskedBack)

    def _hear(self, event: Event) -> None:
        if not isinstance(event, AskedBack):
            return
        task = asyncio.create_task(self._answer(event))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    def _work_before(self, asked: AskedBack) -> str:
        """Returns the model's latest messages, and of the results the pieces nearest to the files that the question is
        about; without such files the latest results. The model needs them to explain an action to the user."""
        state, gate, room_left, parts = self._session.state, asked.question.gate, LONGEST_WORK, dict[int, str]()
        messages = [
            (number, message)
            for number, message in enumerate(state.messages)
            if message.role in ("assistant", "tool") and not message.job and message.text.strip()
        ]
        names = {impact.path for impact in gate.impacts} if gate else set[str]()
        names |= set(FILE_NAME.findall(asked.text))
        near_numbers = {number for number, message in messages if any(name in message.text for name in names)}
        changed_lines = _lines_around(gate.file_diff) if gate else frozenset[str]()
        for number, message in sorted(messages, key=lambda pair: (pair[0] in near_numbers, pair[0]), reverse=True):
            if message.role == "tool" and near_numbers and number not in near_numbers:
                continue
            text = _piece(message.text.strip(), changed_lines, min(LONGEST_PART, room_left))
            if text:
                parts[number] = quoted(state.language, message.operation or message.role, text)
                room_left -= len(text)
        newest_first = [parts[number] for number in sorted(parts, reverse=True)]
        return "\n".join([note(state.language, "asked_back_work"), *newest_first]) if parts else ""

    def _risk(self, gate: GateRequest) -> dict[str, str]:
        """Returns the risk as Duckflow has computed it, with the reasons, and what an undo can do."""
        language = self._session.state.language
        words = Words(language)
        plain_reason = note(language, "asked_back_runs" if gate.commands else "asked_back_changes")
        undo = words("gate.reversible_command" if gate.commands else "gate.reversible") if gate.reversible else ""
        return {
            "level": words(f"gate.risk.{gate.risk}"),
            "reasons": "; ".join(map(words.phrase, gate.reasons)) or plain_reason,
            "undo": "; ".join(filter(None, (undo, *map(words.phrase, gate.lasting)))),
        }

    async def _answer(self, asked: AskedBack) -> None:
        from duckflow.forms.schema import strict_schema
        from duckflow.tools.plan.drafting import conversation, drafted
        from duckflow.tools.plan.drafts import ExplanationDraft, read_draft

        gate, phrase = asked.question.gate, Words(self._session.state.language).phrase
        details = "\n".join(map(phrase, (asked.question.title, *asked.question.details)))
        values = {
            "question": asked.text,
            "intent": "; ".join(gate.intent) if gate else "",
            "action": (told_action(gate, Path(self._session.state.folder)) if gate else details)[:LONGEST_ACTION],
            "conversation": conversation(self._session.state),
            "material": self._work_before(asked),
            **(self._risk(gate) if gate else NO_RISK),
        }
        schema = strict_schema(ExplanationDraft.model_json_schema())
        try:
            draft = await drafted(
                self._think, "asked_back", values, schema, lambda reply: read_draft(reply, ExplanationDraft)
            )
        except DuckflowError:
            self._session.emit(Noticed(what=say("gate.not_explained")))
        else:
            answer = draft.answer.strip()
            self._questions.keep_talk(asked.question.question_id, asked.text, answer)
            self._session.emit(Noticed(what=say("gate.explained", text=answer)))


def _lines_around(diff: str) -> frozenset[str]:
    """Returns the lines that a diff shows of the file as it is."""
    return frozenset(line[1:] for line in diff.splitlines() if line.startswith((" ", "-")) and line[1:].strip())


def _piece(text: str, wanted: frozenset[str], room: int) -> str:
    """Returns the whole text if there is room for it, else its first line, which names the file, and the whole lines
    around those that are wanted; without any, the first lines. A mark stands for lines that are left out."""
    lines = text.splitlines()
    if len(text) <= room:
        return text
    hits = [sum(line in wanted for line in lines[number : number + WINDOW]) for number in range(len(lines))]
    center = hits.index(max(hits)) + WINDOW // 2 if any(hits) else 0
    room -= len(lines[0]) + 2 * len(LEFT_OUT)
    numbers = list[int]()
    for number in sorted(range(1, len(lines)), key=lambda number: abs(number - center)):
        room -= len(lines[number]) + 1
        if room < 0:
            break
        numbers.append(number)
    if not numbers:
        return ""
    first, last = min(numbers), max(numbers)
    before, after = [LEFT_OUT] if first > 1 else [], [LEFT_OUT] if last + 1 < len(lines) else []
    return "\n".join([lines[0], *before, *lines[first : last + 1], *after])
