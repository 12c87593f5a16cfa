"""The reason why a command failed is kept, however much it printed before and after."""

import pytest

from duckflow.tools.shell.causes import hint, telling_part
from duckflow.tools.shell.output import Excerpt

FAILURES = {
    "pytest": (">       assert total([1]) == 1\nE       assert 2 == 1\n\ntest_a.py:7: AssertionError", "2 == 1"),
    "unittest": ('Traceback (most recent call last):\n  File "ut.py", line 4\nAssertionError: 13 != 55', "13 != 55"),
    "gcc": ("m.c:3:31: error: 'struct point' has no member named 'z'\n    3 | p.z = 3;\n      |  ^", "named 'z'"),
    "tsc": ("src/cart.ts(88,14): error TS2345: Argument of type 'string' is not assignable.", "TS2345"),
    "cargo": ("thread 'a' panicked at src/lib.rs:3:26:\nassertion failed\n  left: 7\n right: 6", "left: 7"),
    "go": ("=== RUN   TestParse\n    parse_test.go:42: got 3 fields, want 2\n--- FAIL: TestParse (0.01s)", "want 2"),
    "node": (
        "TypeError: Cannot read properties of undefined (reading 'port')\n    at run (a.js:6:8)",
        "'port'",
    ),
    "make": ("make: *** [Makefile:6: m40.o] Error 1", "m40.o"),
    "japanese": ("エラー: 設定ファイル config.yaml を読めません", "config.yaml"),
}
NOISE = "".join(f"test_error_handling[{number}] PASSED, 0 errors\nchecked item {number} ok\n" for number in range(600))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("piece", [7, 4096])
def test_the_cause_in_the_middle_of_a_long_output_is_kept(kind: str, piece: int) -> None:
    failure, cause = FAILURES[kind]
    text, kept = f"{NOISE}{failure}\n{NOISE}", Excerpt(4000, 8000, 4000)
    for at in range(0, len(text), piece):
        kept.add(text[at : at + piece])
    assert cause in kept.text(failed=True) and cause not in kept.text()
    assert len(kept.text(failed=True)) < 17_000
    assert cause in telling_part(text, 500) and len(telling_part(text, 500)) <= 500


def test_left_out_output_is_counted_and_nothing_is_shown_twice() -> None:
    lines = [f"line {number}" for number in range(3000)]
    lines[1500] = "fatal: the disk is full"
    kept = Excerpt(1000, 1000, 1000)
    kept.add("\n".join(lines))
    shown = kept.text(failed=True)
    missing = sum(int(line.split()[1]) for line in shown.split("\n") if line.startswith("[…"))
    told = [line for line in shown.split("\n") if not line.startswith("[…")]
    assert len(told) == len(set(told)) and "fatal: the disk is full" in told
    assert missing + len("\n".join(told)) == len("\n".join(lines))


def test_the_first_of_a_thousand_failures_is_shown() -> None:
    text = "".join(f"FAILED tests/test_{number}.py - AssertionError: value {number}\n" for number in range(1000))
    kept = Excerpt(0, 500, 1000)
    kept.add(text)
    assert "test_0.py" in kept.text(failed=True)


@pytest.mark.parametrize(
    ("output", "network"),
    [
        ("npm error code ENOTFOUND", True),
        ("getaddrinfo EAI_AGAIN registry.npmjs.org", True),
        ("ModuleNotFoundError: No module named 'shop'", False),
    ],
)
def test_only_a_failed_lookup_of_a_host_is_told_about_the_network(output: str, network: bool) -> None:
    assert ("no network" in hint(output, network=False, writes=True, limit_note="")) is network
