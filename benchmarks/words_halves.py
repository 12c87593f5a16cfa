"""How well answers and questions are read, on the half that the grammars were chosen on and on the other one.

    python -m benchmarks.words_halves ../shared/data/answers [--show]

A folder holds `answers.jsonl` (text, kind: yes, no or other), `questions.jsonl` (text, asks) and `scopes.jsonl` (text,
kind, scope, about, condition, background). Which half a phrase is
in is a matter of its text alone. `--show` prints what went wrong in the first half; of the other one only the figures
are ever shown. The project's own phrases, written before the given ones were looked at: `tests/words`, `--whole`.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from benchmarks.adapters import answer, asks, whole_answer

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--whole", action="store_true", help="one half, for phrases that nothing is chosen on")
    given = parser.parse_args()
    for kind, score in (("answers", _answers), ("questions", _questions), ("scopes", _scopes)):
        lines = (given.folder / f"{kind}.jsonl").read_text("utf-8").splitlines()
        rows: list[Row] = [json.loads(line) for line in lines if line]
        parts = {"chosen on": [one for one in rows if _first(one)]}
        parts["other half"] = [one for one in rows if not _first(one)]
        for name, half in {"all": rows}.items() if given.whole else parts.items():
            figures, wrong = score(half)
            print(kind, name, json.dumps(figures))
            for row in wrong if given.show and name == "chosen on" else ():
                print("   ", json.dumps(row, ensure_ascii=False))


def _first(row: Row) -> bool:
    return hashlib.sha256(row["text"].encode()).digest()[0] % 2 == 0


def _share(hits: list[bool]) -> float:
    return round(100 * sum(hits) / max(1, len(hits)), 1)


def _answers(rows: list[Row]) -> tuple[dict[str, float], list[Row]]:
    read = [(row, found if (found := answer(row["text"])) in ("yes", "no") else "other") for row in rows]
    figures: dict[str, float] = {
        "phrases": len(rows),
        "false_yes": sum(found == "yes" != row["kind"] for row, found in read),
        "false_no": sum(found == "no" != row["kind"] for row, found in read),
    }
    for kind in ("yes", "no"):
        figures[kind] = _share([found == kind for row, found in read if row["kind"] == kind])
    return figures, [row | {"read": found} for row, found in read if found != row["kind"]]


def _questions(rows: list[Row]) -> tuple[dict[str, float], list[Row]]:
    read = [(row, asks(row["text"])) for row in rows]
    asked = [found for row, found in read if row["asks"]]
    told = [found for row, found in read if not row["asks"]]
    figures = {"phrases": len(rows), "asked": _share(asked), "false": _share(told)}
    return figures, [row for row, found in read if found != row["asks"]]


WIDTH = {"": 0, "once": 0, "session": 1, "always": 2}


def _scopes(rows: list[Row]) -> tuple[dict[str, float], list[Row]]:
    read = [(row, whole_answer(row["text"])) for row in rows]
    agreed = [(row, found) for row, found in read if row["kind"] == "yes"]
    taken = [(row, found) for row, found in read if found["kind"] == "yes"]

    def share(pairs: list[tuple[Row, Row]], name: str) -> float:
        return _share([found[name] == row[name] for row, found in pairs])

    figures = {
        "phrases": len(rows),
        "false_yes": sum(found["kind"] == "yes" != row["kind"] for row, found in read),
        "false_no": sum(found["kind"] == "no" != row["kind"] for row, found in read),
        "too_wide": sum(WIDTH[found["scope"]] > WIDTH[row["scope"]] for row, found in taken),
        "verdict": share(read, "kind"),
        "scope": share(agreed, "scope"),
        "about": _share([row["about"].lower() in found["about"].lower() for row, found in agreed if row["about"]]),
        "condition": share([pair for pair in read if pair[0]["condition"]], "condition"),
        "background": share(agreed, "background"),
    }
    wrong = [row | {"read": found} for row, found in read if any(found[name] != row[name] for name in SCORED)]
    return figures, wrong


SCORED = ("kind", "scope", "condition", "background")


if __name__ == "__main__":
    main()
