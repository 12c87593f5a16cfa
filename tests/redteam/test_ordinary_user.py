"""Every try of the red team once more as a user without powers, in both sandboxes, and the limits of a command."""

import pytest

from tests.ordinary_user import only_for_root, run_tests_as_nobody

TRIED = (
    "tests/redteam/test_commands.py",
    "tests/redteam/test_files.py",
    "tests/redteam/test_first_process.py",
    "tests/tools/shell/test_limits.py",
)


@pytest.mark.slow
@only_for_root
@pytest.mark.parametrize("tests", TRIED)
def test_nothing_gets_through_as_an_ordinary_user(tests: str) -> None:
    run_tests_as_nobody("-m", "slow or not slow", tests)
