"""Questions for an editor: permission requests with the command or the diff, and the whole text of a question before
risky actions (a Gate), of a call for help (a Duck Call), or of a choice."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.editor.tool_calls import fenced, gate_kind, hunks, text_content
from duckflow.events.ports import Conversation
from duckflow.i18n.plain import folded, one_line, plain, readable
from duckflow.i18n.words import Words
from duckflow.rpc import RpcError
from duckflow.state.data import say
from duckflow.state.question import Choice, GateRequest, Question

LONGEST_WORDS = 300
MARKS = re.compile(r"[\\`*_\[\]<>&~|]")
KINDS = {"yes": "allow_once", "session": "allow_always", "always": "allow_always"}
NO = frozenset({"no", "stop", "rest", "leave", "stay"})
"""The keys of choices after which nothing is done."""


def permission_request(question: Question, words: Words, root: Path) -> dict[str, Any]:
    """Returns the request: the tool call that is asked about, and the options. A Gate (a question before a risky
    action) about one action uses the id of that action's call."""
    gate = question.gate
    is_one_action = gate is not None and len(gate.action_ids) == 1
    content = [text_content(question_text(question, words))]
    call: dict[str, Any] = {
        "toolCallId": gate.action_ids[0] if gate and is_one_action else question.question_id,
        "title": _title(question, words),
        "kind": gate_kind(gate) if gate and is_one_action else "other",
        "status": "pending",
        "content": [*content, *(hunks(gate.file_diff, root) if gate else ())],
    }
    if gate and gate.impacts:
        call["locations"] = [{"path": str(root / impact.path)} for impact in gate.impacts]
    # Choices that need words come last: an editor that answers by itself takes the first.
    choices = sorted(question.choices, key=lambda choice: choice.wants_text or choice.key == "edit")
    return {"toolCall": call, "options": [_option(choice, words) for choice in choices]}


def question_text(question: Question, words: Words) -> str:
    """Returns the text of a question without the diff and the choices."""
    gate = question.gate
    lines = [words("job.asks", job=question.job_name)] if question.job else []
    lines += [] if gate and gate.action_ids else [f"**{_title(question, words)}**"]
    lines += _gate_lines(gate, words) if gate else []
    lines += [_as_text(readable(words.phrase(detail), words)) for detail in question.details]
    return "\n\n".join(line for line in lines if line)


def _title(question: Question, words: Words) -> str:
    gate, title = question.gate, words.phrase(question.title)
    if question.kind == "duck_call":
        return words("duck.title", title=title)
    if not gate or not gate.action_ids:
        return plain(title)
    if gate.commands:
        return folded(plain(_command(gate.commands[0])), words)
    if gate.impacts:
        changes = [f"{words(f'gate.{impact.change}')} {readable(impact.path, words)}" for impact in gate.impacts]
        return ", ".join(changes)
    return plain(title)


def _command(shown: str) -> str:
    """Returns the first line of a shown command that would run, without the `$` before it."""
    lines = [line for line in shown.split("\n") if not line.startswith("# ")]
    return (lines or [shown])[0].removeprefix("$ ")


def _gate_lines(gate: GateRequest, words: Words) -> Iterator[str]:
    """Yields commands first and whole, then computed facts, then the model's words, marked as the model's."""

    def fold(line: str) -> str:
        return _as_text(readable(line, words))

    for command in gate.commands:
        yield fenced(readable(command, words))
    for impact in gate.impacts:
        tracked_note = words("gate.tracked" if impact.tracked else "gate.untracked")
        change = words(f"gate.{impact.change}")
        yield f"{change}: {fold(impact.path)}  (+{impact.added} −{impact.removed}, {tracked_note})"
    if gate.action_ids:
        yield words("gate.risk", level=words(f"gate.risk.{gate.risk}"))
    for reason in gate.reasons:
        yield f"⚠ {fold(words.phrase(reason))}"
    if gate.doubtful:
        yield words("gate.doubtful")
    if gate.reversible:
        yield words("gate.reversible_command" if gate.commands else "gate.reversible")
    for reason in gate.lasting:
        yield f"⚠ {fold(words.phrase(reason))}"
    for key, text in _model_words(gate):
        yield f"> {words(key)}: {words('quote', text=_as_text(one_line(plain(text), words, LONGEST_WORDS)))}"


def _as_text(text: str) -> str:
    """Escapes Markdown, which editors draw and which could hide a part of the text."""
    return MARKS.sub(r"\\\g<0>", text)


def _model_words(gate: GateRequest) -> Iterator[tuple[str, str]]:
    lines = [("gate.intent", intent) for intent in gate.intent]
    lines += [
        ("gate.rationale", gate.rationale),
        *(("gate.alternative", alternative) for alternative in gate.alternatives),
    ]
    return ((key, text) for key, text in lines if text.strip())


def _option(choice: Choice, words: Words) -> dict[str, str]:
    kind = KINDS.get(choice.key) or ("reject_once" if choice.key in NO else "allow_once")
    # An editor takes no words with a choice.
    label = say("gate.only_no") if choice.key == "no" and choice.label.key == "gate.no" else choice.label
    return {"optionId": choice.key, "name": readable(words.phrase(label), words), "kind": kind}


Request = Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]
"""A function that sends a permission request and waits for the answer."""


class Wanted(NamedTuple):
    """A question whose answer needs words of the user, and the text that asks for these words. Without a `choice`, the
    words are read like typed input."""

    question: Question
    choice: str
    told: str


class Asker:
    """Asks the open questions. While `words_wanted` is set, the next prompt answers the first question that needs
    words. Further such questions wait, and are shown when it is their turn."""

    def __init__(
        self,
        conversation: Conversation,
        words: Words,
        root: Path,
        say: Callable[[str], None],
        cancel: Callable[[], None],
    ) -> None:
        self._conversation = conversation
        self._words = words
        self._root = root
        self._say = say
        self._cancel = cancel
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._wanted: list[Wanted] = []
        self.words_wanted = asyncio.Event()

    def ask(self, question: Question, request: Request) -> None:
        if question.kind == "text":
            self._say(question_text(question, self._words))
            self._want(question, "", self._words("editor.secret" if question.secret else "duck.words"))
            return
        if question.kind == "edit":
            self._say(f"{question_text(question, self._words)}\n\n{fenced(question.text)}")
            self._want(question, "edit", self._words("editor.new_text"))
            return
        reply = request(permission_request(question, self._words, self._root))
        task = self._asked[question.question_id] = asyncio.create_task(self._take(question, reply))
        task.add_done_callback(lambda _: self._asked.pop(question.question_id, None))

    async def answered_by(self, text: str) -> bool:
        """Answers an open question by a prompt. Returns False if the prompt is no answer. After an unclear answer the
        user is asked again."""
        conversation = self._conversation
        open_ids = {question.question_id for question in conversation.questions}
        self._wanted = [
            wanted_answer for wanted_answer in self._wanted if wanted_answer.question.question_id in open_ids
        ]
        if self._wanted and not text.startswith("/"):
            wanted_answer = self._wanted.pop(0)
            answer_outcome = await conversation.answer(wanted_answer.question.question_id, text, wanted_answer.choice)
        elif open_ids and conversation.reads_as(text) == "answer":
            answer_outcome = await conversation.take(text)
        else:
            return False
        if answer_outcome.meaning in ("unclear", "edit"):
            request_text = "\n".join(map(self._words.phrase, answer_outcome.told)) or self._words("editor.new_text")
            open_questions = {open_question.question_id: open_question for open_question in conversation.questions}
            if question := open_questions.get(answer_outcome.question_id):
                self._wanted.insert(
                    0, Wanted(question, "edit" if answer_outcome.meaning == "edit" else "", request_text)
                )
            self._say(request_text)
        elif self._wanted:
            self._say_wanted()
        self._tell_whether_wanted()
        return answer_outcome.meaning != "closed"

    def closed(self, question_id: str) -> None:
        """Stops asking a question that was answered (here or elsewhere), or whose asker was interrupted."""
        if (asking_task := self._asked.get(question_id)) and asking_task is not asyncio.current_task():
            asking_task.cancel()
        self._drop(question_id)

    def close(self) -> None:
        for asking_task in list(self._asked.values()):
            asking_task.cancel()

    async def _take(self, question: Question, reply: Coroutine[Any, Any, Any]) -> None:
        try:
            outcome_fields = (await reply)["outcome"]
            choice = str(outcome_fields["optionId"]) if outcome_fields["outcome"] == "selected" else ""
        except RpcError:
            self._want(question, "", self._words("editor.answer"))
            return
        except (KeyError, TypeError):
            choice = ""
        if choice:
            await self._chosen(question, choice)
        elif question.job:
            # The question of a job keeps waiting.
            self._want(question, "", self._words("editor.answer"))
        else:
            # The request was closed without an answer, which does not count as a yes.
            self._cancel()

    async def _chosen(self, question: Question, choice: str) -> None:
        gate = question.gate
        if gate and choice == "edit":
            self._say(fenced(gate.editable))
            self._want(question, "edit", self._words("editor.new_text"))
        elif gate and gate.risk == "forbidden" and choice != "no":
            # An editor may answer by itself, so a very risky action needs a typed word.
            self._want(question, "", self._words("gate.word"))
        elif any(option.wants_text for option in question.choices if option.key == choice):
            self._want(question, choice, self._words("duck.words"))
        elif (await self._conversation.answer(question.question_id, choice=choice)).meaning == "unclear":
            self._want(question, "", self._words("editor.answer"))

    def _want(self, question: Question, choice: str, told: str) -> None:
        self._wanted.append(Wanted(question, choice, told))
        self._tell_whether_wanted()
        if len(self._wanted) == 1:
            self._say_wanted()

    def _drop(self, question_id: str) -> None:
        first_wanted = self._wanted[:1]
        self._wanted = [
            wanted_answer for wanted_answer in self._wanted if wanted_answer.question.question_id != question_id
        ]
        self._tell_whether_wanted()
        if self._wanted and self._wanted[:1] != first_wanted:
            self._say_wanted()

    def _tell_whether_wanted(self) -> None:
        if self._wanted:
            self.words_wanted.set()
        else:
            self.words_wanted.clear()

    def _say_wanted(self) -> None:
        """Asks the user for words in the editor. A Gate (the question before risky actions) is shown above the request,
        because the words may be a yes to something very risky."""
        question, _, request_text = self._wanted[0]
        self._say(f"{question_text(question, self._words)}\n\n{request_text}" if question.gate else request_text)
