"""A script: have the failing tests of a project mended, and answer its questions by rule.

python fix_tests.py PROJECT"""

import sys

from duckflow import Duckflow, Question


def answer(question: Question) -> str | None:
    """Edits are fine, commands are not: what needs more than an edit is left out."""
    return "yes" if question.gate and not question.gate.commands else None


with Duckflow(sys.argv[1], mode="ask", answer=answer) as duck:
    summary = duck.say("Run the tests and mend what fails. Change no test.")
    print(summary.result)
    print("changed:", ", ".join(summary.files_changed) or "nothing", "· checks:", summary.checks)
sys.exit(summary.exit_code)
