"""Many tasks while workers are killed and the database is restarted: all end, none is lost, none runs twice at once."""

import pytest

from benchmarks.fleet_trial import Conditions
from tests.fleet.postgres import postgres_programs

MANY = Conditions(tasks=200, attempts=2, workers=3, at_once=4, limit=8, kills=20, seconds=0.5)
TWO_MACHINES = MANY._replace(tasks=40, kills=5, places=2, workers=4, postgres=True)
needs_postgres = pytest.mark.skipif(postgres_programs() is None, reason="There is no Postgres on this machine.")


@pytest.mark.slow
@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param(MANY, id="sqlite"),
        pytest.param(MANY._replace(postgres=True, restart=True), id="postgres", marks=needs_postgres),
        pytest.param(
            MANY._replace(tasks=40, kills=5, places=2, workers=4, postgres=True),
            id="two machines",
            marks=needs_postgres,
        ),
    ],
)
def test_all_end_none_is_lost_and_none_runs_twice_at_once(conditions: Conditions) -> None:
    from benchmarks.fleet import try_it

    figures = try_it(conditions)
    assert figures["tasks"] == {"done": conditions.tasks}
    assert figures["attempts"] == {"done": conditions.tasks * conditions.attempts}
    assert (figures["without a report"], figures["two at once"], figures["kills left"]) == (0, 0, 0)
