"""A pre-commit hook: what is staged is read by a model that may change nothing, and a serious finding stops the commit.

Put it into .git/hooks/pre-commit, with the interpreter that has Duckflow in its first line."""

import subprocess
import sys

from duckflow import Duckflow

WISH = "Review this diff. End with one line: VERDICT: fine, or VERDICT: stop."

diff = subprocess.run(["git", "diff", "--cached"], capture_output=True, text=True, check=True).stdout
if not diff:
    sys.exit(0)
with Duckflow(".", mode="plan") as duck:
    summary = duck.say(f"{WISH}\n\n{diff}")
print(summary.result, file=sys.stderr)
sys.exit(1 if "VERDICT: stop" in summary.result else 0)
