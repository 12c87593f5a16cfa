"""The questions of attempts. They wait in the database, so they outlive the worker whose attempt asked them."""

from collections.abc import Sequence

import sqlalchemy as sa

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.tables import ATTEMPTS, IS_LIVE, QUESTIONS
from duckflow.fleet.task import Answered, Asked, read_row

IS_OF_LIVE_ATTEMPT = sa.exists().where(
    IS_LIVE,
    ATTEMPTS.c.fleet == QUESTIONS.c.fleet,
    ATTEMPTS.c.task == QUESTIONS.c.task,
    ATTEMPTS.c.number == QUESTIONS.c.attempt,
)
ASKING = QUESTIONS.c.answered.is_(None) & ~QUESTIONS.c.closed & IS_OF_LIVE_ATTEMPT


class QuestionStore:
    """The questions that attempts ask and people answer."""

    def __init__(self, database: FleetDatabase) -> None:
        self._database = database

    def open(self, fleet: str = "") -> tuple[Asked, ...]:
        query = sa.select(QUESTIONS.c.asked).where(ASKING, *([QUESTIONS.c.fleet == fleet] if fleet else []))
        rows = self._database.read(query.order_by(QUESTIONS.c.number))
        return tuple(read_row(Asked, question_row.asked) for question_row in rows)

    def answer(self, answered: Answered) -> int:
        """Stores an answer and returns how many questions it answers. An answer for all equal Gates (questions before a
        risky action) also holds for Gates that come later."""

        def change(connection: sa.Connection) -> int:
            is_this_question = QUESTIONS.c.asked_id == answered.asked_id
            question_row = connection.execute(sa.select(QUESTIONS).where(is_this_question)).one_or_none()
            if question_row is None:
                return 0
            answer_update = sa.update(QUESTIONS).values(answered=answered.model_dump_json())
            count = connection.execute(answer_update.where(ASKING, is_this_question)).rowcount
            if count and answered.for_all_same and question_row.same:
                asks_the_same = (QUESTIONS.c.fleet == question_row.fleet) & (QUESTIONS.c.same == question_row.same)
                count += connection.execute(answer_update.where(ASKING, asks_the_same)).rowcount
            return count

        return self._database.do(change)

    def ask(self, asked: Asked, go: int) -> Answered | None:
        """Puts a question into the inbox. Returns the answer if there is one already: from an earlier try of the
        attempt, whose worker died, or from an answer for all equal questions."""

        def change(connection: sa.Connection) -> Answered | None:
            asks_the_same = (QUESTIONS.c.fleet == asked.fleet) & (QUESTIONS.c.same == asked.same) & (asked.same != "")
            is_own = asks_the_same & (QUESTIONS.c.task == asked.task) & (QUESTIONS.c.attempt == asked.attempt)
            earlier_questions = sa.select(QUESTIONS).where(is_own, QUESTIONS.c.go != go).order_by(QUESTIONS.c.number)
            if question_row := connection.execute(earlier_questions).first():
                # The old question keeps waiting under the new id, unless it has an answer.
                values = {"asked_id": asked.asked_id, "asked": asked.model_dump_json(), "closed": False, "go": go}
                connection.execute(sa.update(QUESTIONS).where(QUESTIONS.c.number == question_row.number).values(values))
                return read_row(Answered, question_row.answered) if question_row.answered else None
            if asked.question.kind == "gate":
                answers = sa.select(QUESTIONS.c.answered).where(asks_the_same, QUESTIONS.c.answered.is_not(None))
                for text in connection.execute(answers).scalars():
                    if (standing_answer := read_row(Answered, text or "")).for_all_same:
                        return standing_answer
            question_row = asked.model_dump(include={"asked_id", "fleet", "task", "attempt", "same"})
            same_question = sa.select(QUESTIONS.c.number).where(QUESTIONS.c.asked_id == asked.asked_id)
            if connection.execute(same_question).first() is None:
                connection.execute(sa.insert(QUESTIONS).values(**question_row, go=go, asked=asked.model_dump_json()))
            return None

        return self._database.do(change)

    def close(self, asked_id: str) -> None:
        """Closes a question because nobody waits for its answer any more."""
        close_update = sa.update(QUESTIONS).where(QUESTIONS.c.asked_id == asked_id)
        self._database.do(lambda connection: connection.execute(close_update.values(closed=True)))

    def hear(self, asked_ids: Sequence[str]) -> dict[str, Answered]:
        """Returns the answers that have come to these questions so far."""
        query = sa.select(QUESTIONS.c.asked_id, QUESTIONS.c.answered).where(
            QUESTIONS.c.asked_id.in_(asked_ids), QUESTIONS.c.answered.is_not(None)
        )
        return {row.asked_id: read_row(Answered, row.answered) for row in self._database.read(query)}
