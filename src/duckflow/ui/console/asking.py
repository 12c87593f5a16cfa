"""Shows the open question at a terminal, and passes on the answer typed there or written in the user's editor. The
question may also be answered elsewhere. A line that was begun too early does not count as an answer."""

import time
import unicodedata
from collections.abc import Awaitable

from duckflow.errors import DuckflowError
from duckflow.events.ports import Conversation
from duckflow.events.views import Taken
from duckflow.i18n.answers import read_answer, read_whole
from duckflow.i18n.words import Words, fullmatch
from duckflow.state.question import HIDDEN, Question
from duckflow.ui.console.keys import edit_text
from duckflow.ui.console.line import Line
from duckflow.ui.console.screen import Screen
from duckflow.view.items import QuestionItem

READING_SECONDS = 0.3
"""The fewest seconds in which somebody can read a question. A line begun earlier was meant for something else."""


class Asking:
    """Shows the first open question; further questions wait behind it. Several terminals may show the same question."""

    def __init__(self, conversation: Conversation, screen: Screen, line: Line, words: Words) -> None:
        self._conversation = conversation
        self._screen = screen
        self._line = line
        self._words = words
        self._typed: list[str] = []
        self._typed_here = False
        self._shown = ""
        self._secret = False
        self._asked_at = 0.0
        self._taken_away_at = 0.0
        self._unsent = ""
        """An answer that was typed at a plain input line before the whole question was shown. It is kept here, because
        text cannot be put back into a plain line."""

    def hides(self) -> bool:
        """Says whether the open question asks for a secret."""
        return any(question.secret for question in self._conversation.questions[:1])

    def show(self) -> Question | None:
        """Shows the question that is open now. Returns the question if it asks for a text to be edited, and the user
        typed the last line at this terminal: then the editor opens here at once."""
        question = next(iter(self._conversation.questions), None)
        is_new = question is not None and question.question_id != self._shown
        self._shown = question.question_id if question else ""
        if question and is_new:
            self._secret, self._unsent = question.secret, ""
            self._screen.ask(question)
            self._asked_at = time.monotonic()
            return question if question.kind == "edit" and self._typed_here else None
        if question is None:
            self._screen.question.close()
            self._screen.catch_up()
        return None

    def hear_line(self, text: str) -> None:
        """Notes whether a line that is reported as typed came from this terminal."""
        self._typed_here = text in self._typed
        if self._typed_here:
            self._typed.remove(text)

    def hear_closed(self, item: QuestionItem) -> None:
        """Tells the person here if somebody else has answered the question. A half-typed secret is removed from the
        line: otherwise the secret would now be visible, and be sent as a message."""
        if self._secret and item.id == self._shown and not (item.answer and self._typed_here):
            self._line.put_back("")
        if item.answer and item.id == self._shown and not self._typed_here:
            self._taken_away_at = time.monotonic()
            self._screen.note(self._words("question.elsewhere"))

    def take(self, text: str) -> Awaitable[Taken]:
        """Hands the line to the conversation. An answer counts only for the question that is shown: another terminal
        may have answered that one, and where the conversation runs in another process the next one may be open."""
        meaning = self._conversation.reads_as(text)
        if meaning not in ("nothing", "message"):
            hides = meaning == "answer" and any(question.hides(text) for question in self._conversation.questions[:1])
            self._typed.append(HIDDEN if hides else text.strip())
        return self._conversation.take(text, (self._shown if meaning == "answer" else "") or None)

    async def heed(self, answered: Awaitable[Taken], text: str = "") -> None:
        """Waits for the outcome of a line or an answer, and shows the outcome to the person who typed it."""
        try:
            line_outcome = await answered
        except DuckflowError as problem:
            self._line.put_back(text)
            self._screen.warn(self._words.error(problem))
            return
        for phrase in line_outcome.told:
            (self._screen.say if line_outcome.meaning == "aside" else self._screen.warn)(self._words.phrase(phrase))
        if line_outcome.meaning == "closed":
            self._typed.clear()
        same_questions = (
            question for question in self._conversation.questions if question.question_id == line_outcome.question_id
        )
        if line_outcome.meaning == "edit" and (question := next(same_questions, None)):
            await self.edit(question)

    async def edit(self, question: Question) -> None:
        """Lets the user change the proposed text in their editor. An emptied text means no. An unchanged text does not
        mean yes: the editor may have been closed without a decision, or there may be no editor."""
        proposed_text = question.gate.editable if question.gate else question.text
        changed_text = await self._line.lend_terminal(lambda: edit_text(proposed_text))
        if question.gate and changed_text == proposed_text:
            self._screen.warn(self._words("gate.unedited"))
            return
        text, choice = (changed_text, "edit") if changed_text.strip() else ("", "no")
        await self.heed(self._conversation.answer(question.question_id, text, choice=choice))

    def held_back(self, text: str, begun: float) -> bool:
        """Says whether a line does not count as an answer yet. Such a line was begun before the question could be read,
        or sent before all of the question was shown. It is put back, and counts when it is sent again."""
        question, pages = next(iter(self._conversation.questions), None), self._screen.question
        if begun < self._taken_away_at and self._line.put_back(text):
            # The line may have been an answer to a question that is gone.
            self._taken_away_at = 0.0
            self._screen.warn(self._words("question.late"))
            return True
        if question is None:
            return False
        word = unicodedata.normalize("NFKC", text).strip().casefold()
        wants_all = fullmatch("answers.page.all", word, self._words.language) is not None
        if pages.left and (wants_all or not word or fullmatch("answers.page.more", word, self._words.language)):
            pages.more(wants_all)
            self._screen.catch_up()
            return True
        if self._conversation.reads_as(text) != "answer":
            return False
        if begun < self._asked_at + READING_SECONDS:
            is_put_back = self._line.put_back(text)
            # A second Enter right after the first must not count.
            self._asked_at = time.monotonic() if is_put_back else self._asked_at
            self._screen.warn(self._words("gate.early" if is_put_back else "gate.early_line"))
            return True
        answer = read_answer(text, tuple(choice.key for choice in question.choices), self._words.language)
        reply = read_whole(text, self._words.language)
        if pages.left and reply.asks:
            # The model's reply is shown below the question's box, so all of the box comes first.
            pages.more(whole=True)
            self._screen.catch_up()
        elif pages.left and not (answer and answer.choice == "no") and not reply.waits:
            pages.more()
            self._screen.catch_up()
            self._unsent = "" if self._line.put_back(text) else text
            self._asked_at = time.monotonic()
            self._screen.warn(self._words("gate.read_on" if pages.left else "gate.read", rows=pages.left))
            return True
        return False

    def with_unsent(self, text: str) -> str:
        """Returns the text. For an empty line, this is the answer that waited until the whole question was shown."""
        if text.strip() or self._screen.question.left or not self._unsent:
            return text
        unsent_text, self._unsent = self._unsent, ""
        return unsent_text
