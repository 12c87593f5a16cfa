"""The plan as a tree on paper: branches stay whole when a line is wrapped, states have their colours."""

import re

from rich.text import Text

from duckflow.ui.console.paper import Paper
from duckflow.ui.plain import plain

BRANCH = re.compile(r"(?P<lines>[│├└─ ]*)(?P<mark>[○▶✓✗?] )?(?P<number>\d+\. )?")
STYLES = {"✓": "green", "✗": "red", "▶": "bold yellow", "?": "yellow"}
BELOW = str.maketrans({"├": "│", "└": " ", "─": " "})


def print_tree(tree: str, paper: Paper) -> None:
    for line in plain(tree).split("\n"):
        found = BRANCH.match(line)
        begin = found[0] if found else ""
        lines = found["lines"] if found else ""
        mark = (found["mark"] or "") if found else ""
        text = Text(line[len(begin) :], style=STYLES.get(mark[:1], ""))
        paper.wrapped(text, begin, lines.translate(BELOW) + " " * (len(begin) - len(lines)))
