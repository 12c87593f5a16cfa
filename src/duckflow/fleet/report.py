"""What became of a fleet's tasks, as Markdown or CSV. It can be told after the fleet was taken out, too."""

import csv
import io
from collections.abc import Iterable, Sequence

from duckflow.fleet.engine import TaskFigures
from duckflow.i18n.words import Words

COLUMNS = ("task", "repository", "state", "attempts", "cost_usd", "tokens", "seconds", "proof", "result")


def as_csv(rows: Sequence[TaskFigures]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(row, column) for column in COLUMNS] for row in rows)
    return text.getvalue().rstrip("\n")


def as_markdown(fleet: str, rows: Sequence[TaskFigures], words: Words) -> str:
    done = sum(row.state in ("done", "merged", "choose") for row in rows)
    cost, tokens = sum(row.cost_usd for row in rows), sum(row.tokens for row in rows)
    head = words("fleet.report.head", fleet=fleet, done=done, count=len(rows), cost=f"{cost:.2f}", tokens=tokens)
    titles = [words(f"fleet.report.{column}") for column in COLUMNS]
    table = [_row(titles), _row("---" for _ in COLUMNS)]
    for row in rows:
        state = words(f"fleet.state.{row.state}")
        cells = (row.task, row.repository, state, row.attempts, f"{row.cost_usd:.2f}", row.tokens, f"{row.seconds:.0f}")
        table.append(_row((*map(str, cells), row.proof, row.result)))
    return "\n".join([head, "", *table])


def _row(cells: Iterable[str]) -> str:
    shown = (cell.replace("|", r"\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(shown)} |"
