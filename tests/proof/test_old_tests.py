"""Tests that existed before a change, and are gone, left out or bent by it."""

import pytest

from duckflow.proof.old_tests import OldTests, old_tests
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.checks import CheckReport

BEFORE = """import calc

EXPECTED = 5


def test_add():
    assert calc.add(2, 3) == EXPECTED


class TestMore:
    def test_none(self):
        assert calc.add(0, 0) == 0
"""
ADD, NONE = "test_calc.py::test_add", "test_calc.py::TestMore::test_none"
ALL = ("test_calc::test_add", "test_calc.TestMore::test_none")


def changed(after: str | None, path: str = "test_calc.py", **others: str) -> OldTests:
    versions = [FileVersions(path, BEFORE.encode(), None if after is None else after.encode())]
    versions += [FileVersions(f"{name}.py", None, text.encode()) for name, text in others.items()]
    return old_tests(versions, dict)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def test_add", "def check_add"),
        ("def test_add", "@pytest.mark.xfail\ndef test_add"),
        ("def test_add", "@unittest.skip('later')\ndef test_add"),
        ("def test_add", "@pytest.mark.skipif(True, reason='')\ndef test_add"),
        (BEFORE[BEFORE.index("def test_add") : BEFORE.index("class")], ""),
    ],
)
def test_a_test_that_is_taken_out_of_a_file_is_gone(old: str, new: str) -> None:
    assert changed(BEFORE.replace(old, new)).gone == (ADD,)


def test_a_file_that_is_deleted_takes_its_tests_with_it() -> None:
    assert changed(None).gone == (ADD, NONE)
    assert changed(None, test_other=BEFORE).gone == (), "they have moved"
    assert changed(BEFORE.replace("test_add", "test_sum")).gone == (), "one has another name now"


@pytest.mark.parametrize(
    "more",
    ["test_add.__test__ = False\n", "pytestmark = pytest.mark.skip\n", "collect_ignore = 1\n", "del test_add\n"],
)
def test_code_beside_the_tests_may_leave_them_out(more: str) -> None:
    found = changed(BEFORE + more)
    assert found.missing(ALL[1:]) == (ADD,) and found.missing(ALL) == ()
    assert found.missing(["tests.test_calc::test_add[1]", "test_calc.TestMore::test_none"]) == ()


@pytest.mark.parametrize(
    ("old", "new", "altered", "touched"),
    [
        ("== EXPECTED", "== -1", (ADD,), ()),
        ("EXPECTED = 5", "EXPECTED = -1", (), (ADD, NONE)),
        ("    assert calc.add(2", "    return\n    assert calc.add(2", (ADD,), ()),
        ("import calc", "import calc  # the code\nimport os", (), ()),
        ("class TestMore", "def test_new():\n    assert calc.add(1, 1) == 2\n\n\nclass TestMore", (), ()),
    ],
)
def test_tests_whose_text_changed_are_found(
    old: str, new: str, altered: tuple[str, ...], touched: tuple[str, ...]
) -> None:
    found = changed(BEFORE.replace(old, new))
    assert (found.gone, found.altered, found.touched) == ((), altered, touched)


@pytest.mark.parametrize(
    ("path", "text"), [("tests/helper.py", "def wanted():\n    return 5\n"), ("tests/w.json", "5")]
)
def test_helpers_and_data_of_tests_belong_to_those_that_use_them(path: str, text: str) -> None:
    texts = {"tests/test_a.py": "def test_a(wanted, x='w.json'): ...\n", "tests/test_b.py": "def test_b(): ...\n"}
    changes = [FileVersions(path, text.encode(), text.replace("5", "-1").encode())]
    assert old_tests(changes, lambda: texts).touched == ("tests/test_a.py::test_a",)


def test_tests_of_other_languages_are_known_by_their_names() -> None:
    before = "test('adds', () => { expect(add(2, 3)).toBe(5) })\ntest('other', () => {})\n"
    change = FileVersions("sum.test.js", before.encode(), before.replace("5", "-1").replace("'other'", "'x'").encode())
    found = old_tests([change], dict)
    assert (found.gone, found.altered) == (("sum.test.js::other",), ("sum.test.js::adds",))


@pytest.mark.parametrize(
    ("check", "whole", "held"),
    [
        ("pytest", True, True),
        ("pytest tests", True, False),
        ("pytest test_calc.py::test_add", True, True),
        ("pytest -k ok", False, True),
        ("pytest --cov=src", True, True),
    ],
)
def test_a_run_says_which_files_it_holds(check: str, whole: bool, held: bool) -> None:
    report = CheckReport(check=check, kind="tests", ok=True)
    assert (report.runs_all, report.covers_file("test_calc.py")) == (whole, held)
