"""A run that passes clears an earlier failure only where it ran all of what failed."""

import pytest

from duckflow.state.checks import CheckReport

WIDER = [
    ("pytest tests/test_stats.py tests/test_docs.py", "pytest tests/test_stats.py"),
    ("pytest tests", "pytest tests/a.py"),
    ("pytest .", "pytest tests/a.py"),
    ("pytest ./tests/a.py", "pytest tests/a.py"),
    ("pytest a.py", "pytest a.py::t"),
    ("pytest", "pytest a.py"),
    ("pytest", "pytest -k other"),
    ("pytest tests -k x", "pytest tests/a.py -k x"),
    ("mypy a b", "mypy a"),
    ("ruff check", "ruff check src"),
    ("go test ./...", "go test ./pkg"),
    ("unittest tests", "unittest tests.test_a"),
    ("npm test", "npm test"),
]
NARROWER = [
    ("pytest tests/test_docs.py", "pytest tests/test_docs.py tests/test_stats.py"),
    ("pytest a.py::t", "pytest a.py"),
    ("pytest a.py", "pytest"),
    ("pytest -k other", "pytest"),
    ("pytest tests/ab.py", "pytest tests/a.py"),
    ("mypy a", "mypy a b"),
    ("ruff check src", "ruff check src tests"),
    ("ruff check src", "ruff check"),
    ("go test ./pkg", "go test ./..."),
    ("make test", "make lint"),
    ("unittest tests.test_a", "unittest tests"),
    ("python -m unittest test_a", "python -m unittest test_a test_b"),
    ("pytest", "mypy"),
]


@pytest.mark.parametrize(
    ("later", "earlier", "wider"), [(*pair, True) for pair in WIDER] + [(*p, False) for p in NARROWER]
)
def test_a_later_run_covers_an_earlier_one_by_its_places(later: str, earlier: str, wider: bool) -> None:
    passed = CheckReport(check=later, kind="tests", ok=True)
    assert passed.covers(CheckReport(check=earlier, kind="tests", ok=False)) is wider
