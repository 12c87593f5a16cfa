"""The state of a fleet as lines: tasks, attempts and open questions, redrawn while workers work on it."""

import asyncio
import csv
import io
import platform
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from duckflow.fleet.engine import AttemptState, FleetState, TaskFigures, TaskState
from duckflow.i18n.answers import read_answer
from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, padded
from duckflow.i18n.words import Words, money
from duckflow.ui.console.live_table import EnterKey, LiveLines
from duckflow.ui.streams import print_out

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine

LOOK_SECONDS = 0.5
WIDEST_NAME = 64
FIRST = ("running", "queued", "failed", "budget", "cancelled", "done")
"""The order in which a table that has no room for all attempts shows them, by their state."""
REPORTED = ("task", "repository", "state", "attempts", "cost_usd", "tokens", "seconds", "proof", "result")
UNKNOWN = "–"
"""Stands for a cost or a time that is not known."""
DOING = frozenset(("setup", "working", "waiting", "limited", "checks", "review"))


def tell(text: str) -> None:
    """Prints a text for people, made harmless: parts of it come from files, models and other machines."""
    print_out(plain(text))


def fleet_line(fleet: FleetState, words: Words) -> str:
    count_text = ", ".join(f"{count} {words(f'fleet.state.{state}')}" for state, count in fleet.tasks.items() if count)
    line = f"{fleet.fleet}  {count_text}  {money(fleet.cost_usd) or UNKNOWN}"
    if not fleet.forsaken:
        return line
    key = "fleet.nobody" if platform.node() in fleet.places else "fleet.nobody_at"
    waiting_count, place_names = fleet.tasks.get("waiting", 0), ", ".join(fleet.places)
    return f"{line}\n⚠ {words(key, fleet=fleet.fleet, count=waiting_count, places=place_names)}"


def table_lines(
    tasks: Sequence[TaskState], attempts: Sequence[AttemptState], words: Words, room: int, columns: int = 5
) -> list[str]:
    """Returns a line for each attempt, and for each task that has no attempt yet. Where not all lines fit, running
    attempts come first."""
    state_of = {task.task.name: task for task in tasks}
    begun_names = {attempt.task for attempt in attempts}
    rows = [_attempt_row(attempt, state_of.get(attempt.task), words) for attempt in _ordered(attempts, room)]
    rows += [
        [name, "", words(f"fleet.state.{task.state}"), "", ""]
        for name, task in state_of.items()
        if name not in begun_names
    ]
    header = [words(f"fleet.column.{name}") for name in ("task", "attempt", "state", "cost", "time")]
    shown_rows = rows[: max(1, room - 1)]
    lines = aligned([row[:columns] for row in (header, *shown_rows)])
    return lines if len(shown_rows) == len(rows) else [*lines, words("fleet.more", count=len(rows) - len(shown_rows))]


def agreed(question: str, words: Words, **values: int) -> bool:
    """Asks the person at the terminal. Says whether the answer was yes."""
    answer = read_answer(input(words(question, **values)), language=words.language)
    return answer is not None and answer.choice == "yes"


def aligned(rows: Sequence[Sequence[str]], widest: int = WIDEST_NAME) -> list[str]:
    rows = [[plain(cell).replace("\n", " ").replace("\t", " ") for cell in row] for row in rows]
    widths = [min(max(map(cells, column)), widest) for column in zip(*rows, strict=True)]
    return ["  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _ordered(attempts: Sequence[AttemptState], room: int) -> list[AttemptState]:
    if len(attempts) < room:
        return list(attempts)
    return sorted(attempts, key=lambda attempt: (not attempt.open_questions, FIRST.index(attempt.state)))


def _attempt_row(attempt: AttemptState, task: TaskState | None, words: Words) -> list[str]:
    state = words(f"fleet.state.{attempt.state}")
    if attempt.open_questions:
        state = words("fleet.asks", count=attempt.open_questions)
    elif attempt.state == "running" and attempt.doing in DOING:
        state = words(f"fleet.doing.{attempt.doing}")
    if task and task.state in ("merged", "done") and task.picked == attempt.number:
        state = words("fleet.state.merged" if task.state == "merged" else "fleet.picked")
    return [attempt.task, f"#{attempt.number}", state, money(attempt.cost_usd) or UNKNOWN, _time_of(attempt)]


def _time_of(attempt: AttemptState) -> str:
    """Returns how long the attempt has worked, without the time in which it waited for a person or a worker."""
    if attempt.report and not attempt.live:
        return clock(attempt.report.seconds)
    return clock(time.time() - attempt.taken) if attempt.state == "running" and not attempt.open_questions else UNKNOWN


def clock(seconds: float) -> str:
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{remainder:02}" if minutes >= 60 else f"{minutes}:{remainder:02}"


def as_csv(rows: Sequence[TaskFigures]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(REPORTED)
    for row in rows:
        # A cost that is not known is left out, because it is not 0.
        figures = {"cost_usd": row.cost_usd or "", "seconds": round(row.seconds, 1)}
        writer.writerow([plain(str(figures.get(column, getattr(row, column)))) for column in REPORTED])
    return text.getvalue().rstrip("\n")


def as_markdown(fleet: str, rows: Sequence[TaskFigures], words: Words) -> str:
    done_count = sum(row.state in ("done", "merged") for row in rows)
    cost, tokens = sum(row.cost_usd for row in rows), sum(row.tokens for row in rows)
    head_line = words(
        "fleet.report.head", fleet=fleet, done=done_count, count=len(rows), cost=money(cost) or UNKNOWN, tokens=tokens
    )
    titles = [words(f"fleet.report.{column}") for column in REPORTED]
    table = [_markdown_row(titles), _markdown_row("---" for _ in REPORTED)]
    for row in rows:
        state = words(f"fleet.state.{row.state}")
        spent_cells = (money(row.cost_usd) or UNKNOWN, row.tokens, f"{row.seconds:.0f}")
        row_cells = (row.task, row.repository, state, row.attempts, *spent_cells)
        proof = words(f"fleet.proof.{row.proof}") if row.proof else ""
        table.append(_markdown_row((*map(str, row_cells), proof, row.result)))
    return "\n".join([head_line, "", *table])


def _markdown_row(cells: Iterable[str]) -> str:
    shown_cells = (plain(cell).replace("|", r"\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(shown_cells)} |"


class FleetWatch:
    """Redraws a fleet's table while workers work on it. After Enter the user answers the open questions."""

    def __init__(self, engine: "Engine", fleet: str, words: Words, answer: Callable[[], Awaitable[None]]) -> None:
        self._engine = engine
        self._fleet = fleet
        self._words = words
        self._answer = answer
        self._lines = LiveLines()
        self._wanted = asyncio.Event()
        self._key = EnterKey(self._wanted.set)

    async def watch(self, work: Awaitable[None]) -> None:
        """Draws until the work is done."""
        work_task = asyncio.ensure_future(work)
        try:
            while not work_task.done():
                question_count = await self._draw()
                if self._lines.styled and question_count:
                    self._key.watch()
                key_task = asyncio.ensure_future(self._wanted.wait())
                await asyncio.wait({work_task, key_task}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                key_task.cancel()
                if self._wanted.is_set():
                    await self._answer_now()
            await self._draw()
            await work_task
        finally:
            self._key.rest()
            work_task.cancel()
            await asyncio.wait({work_task})

    async def _answer_now(self) -> None:
        self._wanted.clear()
        self._key.rest()
        self._lines.leave()
        await self._answer()

    async def _draw(self) -> int:
        question_count, lines = await asyncio.to_thread(self._look)
        self._lines.draw(lines)
        return question_count

    def _look(self) -> tuple[int, list[str]]:
        engine, words = self._engine, self._words
        question_count = len(engine.inbox(self._fleet))
        (state,) = [fleet for fleet in engine.fleets() if fleet.fleet == self._fleet]
        free_rows = self._lines.rows - 3 if self._lines.styled else 1_000_000
        # Where lines cannot be redrawn, cost and time are left out, so that only a new state makes a new line.
        columns = 5 if self._lines.styled else 3
        lines = table_lines(engine.tasks(self._fleet), engine.attempts(self._fleet), words, free_rows, columns)
        hint = (
            [words("fleet.inbox_hint" if self._lines.styled else "fleet.inbox_line", count=question_count)]
            if question_count
            else []
        )
        if state.tasks.get("choose") and not state.ended:
            hint.append(words("fleet.choice_hint", fleet=self._fleet, count=state.tasks["choose"]))
        return question_count, [*([fleet_line(state, words)] if self._lines.styled else []), *lines, *hint]
