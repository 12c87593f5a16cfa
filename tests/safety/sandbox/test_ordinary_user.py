"""Runs the same attacks as a user without any powers, when the tests run as root."""

from pathlib import Path

import pytest

from tests.ordinary_user import only_for_root, run_tests_as_nobody


@only_for_root
@pytest.mark.slow
def test_nothing_more_gets_through_as_an_ordinary_user() -> None:
    tests = [str(Path(__file__).with_name(name)) for name in ("test_attacks.py", "test_git_guard.py")]
    run_tests_as_nobody("-k", "not real", *tests)
