"""Tests of a change are tried on the code before it, in a copy that takes the place of the folder."""

import sys
from pathlib import Path

import pytest

from duckflow.programs.launch import Launch
from duckflow.proof import python_tests
from duckflow.proof.mutants import breaks_of, chosen
from duckflow.proof.reach import new_names
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial import FileVersions, RedGreenTrial, questions_of
from duckflow.safety.environment import environment
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.state.checks import Proof

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
UNITTEST = f"{sys.executable} -m unittest -v test_app"
SEEN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Plugins take seconds to load."""
OLD = "def double(x):\n    return x + x + 1\n"
NEW = "def double(x):\n    return x + x\n"


def launch(sandbox: Sandbox, command: str) -> Launch:
    return Launch(("/bin/sh", "-c", command), sandbox.paths.folder, {**SEEN, **environment({"PATH": "/usr/bin:/bin"})})


async def tried(
    folder: Path, before: dict[str, str], after: dict[str, str], command: str = PYTEST, **settings: float
) -> Proof:
    """Tries the tests of a change from `before` to `after`, which lies in the folder."""
    for name, text in after.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    names = dict.fromkeys((*before, *after))
    changes = [
        FileVersions(name, *(texts[name].encode() if name in texts else None for texts in (before, after)))
        for name in names
        if before.get(name) != after.get(name)
    ]
    questions = questions_of(changes)
    assert questions
    sandbox = choose(SandboxSettings(), folder)
    if sandbox.kind != "bubblewrap":
        pytest.skip("needs bubblewrap")
    try:
        return await RedGreenTrial(questions, command, ProofSettings.model_validate({"seconds": 120, **settings})).run(
            sandbox, launch
        )
    finally:
        assert not list(sandbox.paths.scratch.top.glob("trial-*"))
        sandbox.close()


def source(body: str, name: str = "test_double") -> str:
    return f"from app import *\n\n\ndef {name}():\n    {body}\n"


async def test_red_before_and_green_now_is_proof(tmp_path: Path) -> None:
    proof = await tried(
        tmp_path, {"app.py": OLD}, {"app.py": NEW, "tests/test_app.py": source("assert double(2) == 4")}
    )
    assert (proof.verdict, proof.red) == ("proven", ("tests/test_app.py::test_double",)), proof
    assert (tmp_path / "app.py").read_text() == NEW


async def test_green_before_too_is_hollow(tmp_path: Path) -> None:
    after = {"app.py": NEW, "tests/test_app.py": source("assert callable(double)")}
    proof = await tried(tmp_path, {"app.py": OLD}, after)
    assert (proof.verdict, proof.hollow) == ("hollow", ("tests/test_app.py::test_double",)), proof


@pytest.mark.parametrize(
    ("new", "body", "verdict"),
    [
        ("def triple(x):\n    return 3 * x\n", "assert triple(2) == 6", "proven"),
        ("def triple(x):\n    return 3 * x\n", "result = triple(2)\n    assert result == result", "hollow"),
        ("def triple(x):\n    return 3 * x\n", "triple(2)\n    assert True", "hollow"),
        ("def triple(x):\n    return 3 * x\n", "first = triple(2)\n    assert triple(2) == first", "hollow"),
    ],
)
async def test_breaks_decide_where_there_is_no_code_before(tmp_path: Path, new: str, body: str, verdict: str) -> None:
    """A name that does not exist yet makes every test red."""
    proof = await tried(tmp_path, {"app.py": NEW}, {"app.py": NEW + "\n\n" + new, "test_app.py": source(body)})
    assert (proof.verdict, proof.red) == (verdict, ()), proof


@pytest.mark.parametrize(
    ("new", "body"),
    [
        ("def odd(x):\n    return x % 2 == 1\n", "assert not odd(2)"),
        ("def odd(x):\n    is_odd = x % 2 == 1\n    return is_odd\n", "assert not odd(2)"),
        ("def found(x):\n    return {1: 2}.get(x)\n", "assert found(7) is None"),
        ("class Door:\n    def __init__(self):\n        self.open = False\n", "assert not Door().open"),
        ("class Door:\n    open: bool = False\n", "assert not Door.open"),
        ("def odd_ones(xs):\n    yield from ()\n    yield 0\n", "assert not next(odd_ones([]))"),
    ],
)
async def test_a_test_that_wants_nothing_or_false_of_new_code_can_notice_breaks(
    tmp_path: Path, new: str, body: str
) -> None:
    proof = await tried(tmp_path, {"app.py": NEW}, {"app.py": NEW + "\n\n" + new, "test_app.py": source(body)})
    assert (proof.verdict, proof.noticing) == ("proven", ("test_app.py::test_double",)), proof


async def test_an_error_of_the_old_code_is_red(tmp_path: Path) -> None:
    old = "def double(x):\n    return x['no']\n"
    proof = await tried(
        tmp_path, {"app.py": old}, {"app.py": NEW, "test_app.py": source("x = double(2)\n    assert x == 4")}
    )
    assert proof.red == ("test_app.py::test_double",), proof


async def test_unittest_is_tried_as_well(tmp_path: Path) -> None:
    cases = (
        "import unittest\nfrom app import double\n\n\nclass TestDouble(unittest.TestCase):\n"
        "    def test_two(self):\n        self.assertEqual(double(2), 4)\n\n"
        "    def test_nothing(self):\n        double(2)\n        self.assertIs(double, double)\n"
    )
    proof = await tried(tmp_path, {"app.py": OLD}, {"app.py": NEW, "test_app.py": cases}, UNITTEST)
    assert proof.red == ("test_app.py::TestDouble::test_two",), proof
    assert proof.hollow == ("test_app.py::TestDouble::test_nothing",), proof


async def test_a_src_layout_that_is_installed_is_tried_at_its_own_place(tmp_path: Path) -> None:
    """An editable install names the folder by its path, so the old code must lie there."""
    path = f"PYTHONPATH={tmp_path / 'src'} {PYTEST}"
    after = {"src/app.py": NEW, "tests/test_app.py": source("assert double(2) == 4")}
    proof = await tried(tmp_path, {"src/app.py": OLD}, after, path)
    assert proof.red == ("tests/test_app.py::test_double",), proof


async def test_only_the_tests_in_question_run(tmp_path: Path) -> None:
    same = "\n\ndef test_other():\n    open('ran', 'w').close()\n    assert False\n"
    tests = {"test_app.py": source("assert double(2) == 4") + same}
    proof = await tried(
        tmp_path, {"app.py": OLD, "test_app.py": "from app import *\n" + same}, {"app.py": NEW, **tests}
    )
    assert proof.red == ("test_app.py::test_double",), proof
    assert not (tmp_path / "ran").exists()


async def test_a_time_limit_ends_it(tmp_path: Path) -> None:
    body = "import time\n    time.sleep(60)\n    assert double(2) == 4"
    proof = await tried(tmp_path, {"app.py": OLD}, {"app.py": NEW, "test_app.py": source(body)}, seconds=1.5)
    assert proof.verdict == "unknown" and proof.why and proof.why.key == "proof.time", proof
    assert proof.seconds < 6


async def test_tests_that_fail_now_prove_nothing(tmp_path: Path) -> None:
    proof = await tried(tmp_path, {"app.py": OLD}, {"app.py": NEW, "test_app.py": source("assert double(2) == 5")})
    assert proof.verdict == "unknown" and proof.why and proof.why.key == "proof.not_green", proof


async def test_a_copy_of_another_test_is_hollow(tmp_path: Path) -> None:
    one = source("assert double(0) in (0, 1)", "test_zero")
    copied = one + one.partition("*")[2].replace("test_zero", "test_double")
    proof = await tried(tmp_path, {"app.py": OLD, "test_app.py": one}, {"app.py": NEW, "test_app.py": copied})
    assert proof.hollow == ("test_app.py::test_double",), proof


async def test_an_old_test_that_was_altered_is_hollow_only_where_no_other_shows_the_change(tmp_path: Path) -> None:
    old, altered = source("assert callable(double)", "test_old"), source("assert callable(double), 1", "test_old")
    real = "\n\ndef test_new():\n    assert double(2) == 4\n"
    before = {"app.py": OLD, "test_app.py": old}
    proof = await tried(tmp_path, before, {"app.py": NEW, "test_app.py": altered + real})
    assert (proof.verdict, proof.hollow) == ("proven", ()), proof
    proof = await tried(tmp_path, before, {"app.py": NEW, "test_app.py": altered})
    assert proof.hollow == ("test_app.py::test_old",), proof


async def test_a_test_of_old_behaviour_is_no_proof_but_not_hollow(tmp_path: Path) -> None:
    half = "\n\ndef half(x):\n    return x // 2\n"
    after = {"app.py": NEW + half, "test_app.py": source("assert half(4) == 2", "test_half")}
    proof = await tried(tmp_path, {"app.py": OLD + half}, after)
    assert (proof.verdict, proof.guarding, proof.hollow) == ("guards", ("test_app.py::test_half",), ()), proof
    after["test_app.py"] = source("kept = half(4)\n    assert half(4) == kept", "test_half")
    proof = await tried(tmp_path, {"app.py": OLD + half}, after)
    assert (proof.guarding, proof.hollow) == ((), ("test_app.py::test_half",)), proof


async def test_a_file_that_cannot_be_loaded_on_the_old_code_does_not_stop_the_others(tmp_path: Path) -> None:
    triple = "\n\ndef triple(x):\n    return 3 * x\n"
    loading = "from app import triple\n\n\ndef test_triple():\n    assert triple(2) == 6\n"
    after = {"app.py": NEW + triple, "test_app.py": source("assert double(2) == 4"), "test_new.py": loading}
    proof = await tried(tmp_path, {"app.py": OLD}, after)
    assert (proof.red, proof.noticing) == (("test_app.py::test_double",), ("test_new.py::test_triple",)), proof


async def test_of_a_test_that_cannot_run_on_the_old_code_nobody_says_that_it_passes_there(tmp_path: Path) -> None:
    words = "\n\ndef words(text):\n    parts = text.split()\n    return parts\n"
    bodies = {
        "callable": "assert callable(words)",
        "crash": "first = words('a b')[0].upper()\n    assert first == 'A'",
        "nothing": "words('a')\n    assert True",
    }
    after = {"app.py": NEW + words, "test_kept.py": source("assert callable(double)")}
    for name, body in bodies.items():
        after[f"test_{name}.py"] = f"from app import words\n\n\ndef test_{name}():\n    {body}\n"
    after["test_inside.py"] = "import app\n\n\ndef test_inside():\n    assert callable(app.words)\n"
    proof = await tried(tmp_path, {"app.py": NEW}, after)
    assert proof.passing_before == ("test_kept.py::test_double",), proof
    told = {phrase.key: phrase.values for phrase in proof.parts()}
    assert (told["proof.hollow"]["names"], told["proof.guarding_new"]["count"]) == ("test_double", 1), told
    assert "proof.guarding" not in told and told["proof.hollow_new"]["count"] == len(bodies), told


async def test_a_test_of_unchanged_code_is_compared_with_nothing(tmp_path: Path) -> None:
    proof = await tried(tmp_path, {"app.py": NEW}, {"app.py": NEW, "test_app.py": source("assert double(2) == 4")})
    assert [phrase.key for phrase in proof.parts()] == ["proof.guarding_alone"] and proof.verdict == "guards", proof


async def test_old_code_that_never_ends_is_red_and_the_other_tests_are_tried_without_it(tmp_path: Path) -> None:
    endless = OLD + "\n\ndef down(x):\n    while x != 0:\n        x -= 2\n    return x\n"
    ending = NEW + "\n\ndef down(x):\n    while x > 0:\n        x -= 2\n    return x\n"
    tests = source("assert down(3) == -1", "test_down") + "\n\ndef test_two():\n    assert double(2) == 4\n"
    proof = await tried(tmp_path, {"app.py": endless}, {"app.py": ending, "test_app.py": tests})
    assert proof.red == ("test_app.py::test_down", "test_app.py::test_two"), proof


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("first = words('a b')[0].upper()\n    assert first == 'A'", "guarding"),
        ("words('a b')[0].upper()", "untold"),
        ("words('a b')", "hollow"),
    ],
)
async def test_an_error_of_broken_code_is_noticed_only_by_a_test_that_asserts_something(
    tmp_path: Path, body: str, field: str
) -> None:
    words = "\n\ndef words(text):\n    parts = text.split()\n    return parts\n"
    after = {"app.py": NEW + words, "test_app.py": source(body, "test_words")}
    proof = await tried(tmp_path, {"app.py": OLD + words}, after)
    assert getattr(proof, field) == ("test_app.py::test_words",), proof


FIXTURE = "import pytest\nfrom app import *\n\n\n@pytest.fixture\ndef first():\n    return words('a')[0].upper()\n\n\n"
SET_UP = """import unittest
from app import *


class TestWords(unittest.TestCase):
    def setUp(self):
        words("a b")[0].upper()

    def test_words(self):
        assert words is not None
"""


@pytest.mark.parametrize(
    ("tests", "name", "loaded"),
    [
        (FIXTURE + "def test_words(first):\n    assert words is not None\n", "test_words", ""),
        (SET_UP, "TestWords::test_words", ""),
        (
            "def test_words():\n    import app\n\n    assert app is not None\n",
            "test_words",
            "\n\nA = words('a')[0].upper()\n",
        ),
    ],
)
@pytest.mark.parametrize("old_words", [" = text.split()", " = text.nothing()"])
async def test_an_error_in_what_a_test_only_needs_is_not_noticed_by_it(
    tmp_path: Path, tests: str, name: str, loaded: str, old_words: str
) -> None:
    """What a fixture or an import needs breaks for a test that looks at nothing, too: that is neither red nor a
    guard."""
    words = "\n\ndef words(text):\n    parts = text.split()\n    return parts\n" + loaded
    after = {"app.py": NEW + words, "test_app.py": tests}
    proof = await tried(tmp_path, {"app.py": OLD + words.replace(" = text.split()", old_words)}, after)
    assert (proof.red, proof.guarding) == ((), ()) and name in str(proof.hollow + proof.untold), proof


def test_breaks_begin_with_what_a_test_ran_last_once_in_each_function() -> None:
    code = "def first(x):\n    y = x\n    return y\n\n\ndef last(x):\n    z = first(x)\n    return z\n"
    breaks = breaks_of("app.py", code, range(1, 9))
    ran = dict.fromkeys(("app.py", line) for line in (8, 3, 2, 7))
    picked = chosen(breaks, {"test": ran}, 4, scattered=True)
    assert [one.line for one in picked[::2]] == [8, 3]


async def test_a_test_alone_that_runs_nothing_of_the_package_it_imports_is_hollow(tmp_path: Path) -> None:
    package = "def one(x):\n    a = x\n    return a\n\n\ndef two(x):\n    b = x\n    return b\n"
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").write_text(package)
    body = "from unittest import mock\nimport pack\n\n\ndef test_it():\n    assert mock.Mock(return_value=7)() == 7\n"
    proof = await tried(tmp_path, {}, {"test_pack.py": body})
    assert proof.hollow == ("test_pack.py::test_it",), proof


@pytest.mark.parametrize(
    ("body", "trivial"),
    [
        ("kept = double(2)\n    assert double(2) == kept", True),
        ("for kept in [double(2)]:\n        assert kept == double(2)", True),
        ("kept = double(2)\n    forget()\n    assert double(2) == kept", False),
        ("kept = double(2)\n    assert double(3) == kept", False),
        ("kept = double(2)\n    assert double(2) == kept\n    assert kept == 4", False),
    ],
)
def test_an_assertion_of_what_was_just_computed_cannot_fail(body: str, trivial: bool) -> None:
    assert bool(python_tests.tests_in_question("", source(body)).trivial) == trivial


def test_the_same_code_in_another_class_is_no_copy() -> None:
    case = "class Test{}:\n    number = {}\n\n    def test_it(self):\n        assert self.number > 0\n"
    tests = python_tests.tests_in_question(case.format("A", 1), case.format("A", 1) + case.format("B", 2))
    assert (tests.tried, tests.copies) == (("TestB::test_it",), ())


@pytest.mark.parametrize(
    "expression", ["+".join(["1"] * 4000), "-" * 9000 + "1", "x" + ".a" * 4000, "x" + "[0]" * 4000]
)
def test_an_expression_that_is_too_long_causes_no_error(expression: str) -> None:
    test = FileVersions("tests/test_app.py", None, source(f"assert {expression}").encode())
    code = FileVersions(
        "app.py", OLD.encode(), f"@a{'(1)' * 4000}\ndef some_name():\n    return {expression}\n".encode()
    )
    assert questions_of([code, test]) is None
    assert not new_names([code])
    assert {one.line for one in breaks_of("app.py", code.new, {3})} <= {3}
