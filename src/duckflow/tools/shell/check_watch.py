"""Watches the checks that a command runs: asks the runner for a report, and bash for the calls that fail."""

import asyncio
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from duckflow.programs.find import find_shell
from duckflow.safety.files import read_plain
from duckflow.state.checks import CheckReport
from duckflow.tools.shell.calls import calls_in, calls_piped_into
from duckflow.tools.shell.checkers import REPORTS, RecognisedCheck, check_in, failed_check, judged, report_for, text_in

LONGEST_NOTES = 1_000_000
TESTS_WITHIN = RecognisedCheck(("pytest",), "tests", alone=False, hidden=True)
"""The check that is assumed for a program which is no check itself, but may run one."""


class FailedCalls:
    """The file in which bash notes the calls of a command that fail. The exit code alone does not tell which call it
    was, and a later call may hide it."""

    def __init__(self, command: str, folder: Path) -> None:
        self._command = command
        self._path = folder / f"failed-{secrets.token_hex(8)}"

    @property
    def trap(self) -> str:
        """Returns the text to put before the command, which makes bash note the calls that fail."""
        noting_command = f'{{ printf "%s %s\\0" $? "$BASH_COMMAND" >>"${REPORTS}/{self._path.name}"; }} 2>/dev/null'
        return f"trap '{noting_command}' ERR; "

    def last_check(self, output: str) -> CheckReport | None:
        """Returns the last check that has failed; None if no check has."""
        try:
            *notes, _ = read_plain(self._path, LONGEST_NOTES, follow=False).decode("utf-8", "replace").split("\0")
            self._path.unlink()
        except OSError:
            return None
        for code, _, call in (note.partition(" ") for note in reversed(notes)):
            calls = [*calls_in(call), *calls_piped_into(call, self._command)]
            if check_report := failed_check(calls, int(code) if code.isdecimal() else 1, output):
                return check_report
        return None


class CheckWatch:
    """Follows one command, to judge the check that it runs."""

    def __init__(self, command: str, folder: Path, scratch: Path, writes: bool) -> None:
        """`scratch` is the folder for temporary files."""
        self.check = check_in(command)
        needs_report = self.check or writes
        read_file = partial(text_in, folder)
        self._report = report_for(self.check or TESTS_WITHIN, command, scratch, read_file) if needs_report else None
        needs_trap = self.check and not self.check.alone and find_shell(folder).endswith("bash")
        self._failed_calls = FailedCalls(command, scratch) if needs_trap else None
        trap_text = self._failed_calls.trap if self._failed_calls else ""
        self.command = f"{trap_text}{command}{self._report.arguments if self._report else ''}"
        """The command as it is to be run."""

    def environment(self, before: Mapping[str, str], reports: str) -> dict[str, str]:
        """Returns the variables of the command. `reports` is the folder for temporary files as the command sees it."""
        variables = {**before, REPORTS: reports} if self._report or self._failed_calls else {**before}
        return self._report.environment(variables) if self._report else variables

    def without_its_lines(self, output: bytes) -> bytes:
        """Removes from the output the lines that are there only because the check was asked for a report."""
        return self._report.without_its_line(output) if self._report else output

    async def judged(self, code: int, output: str) -> CheckReport | None:
        """Returns the report of the check; None if the command ran none."""
        if not (self.check or self._report):
            return None
        check_report = await asyncio.to_thread(judged, self.check or TESTS_WITHIN, code, output, self._report)
        if check_report.ok is None and self._failed_calls:
            check_report = await asyncio.to_thread(self._failed_calls.last_check, output) or check_report
        return check_report if self.check or check_report.ok is False else None
