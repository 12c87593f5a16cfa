"""How well code that nothing reaches is found, on real commits.

    python -m benchmarks.proof_reach FOLDER_OF_GIT_DIRECTORIES [--repositories a,b] [--commits 30] [--keys]

Each commit that adds a public name is looked at as it is, where an alarm is false, and with every other line that
speaks of the first such name blanked out by this program.

`--keys` looks only at keys of configurations: those of files, most of which other programs read, and fields of classes
of settings. The two are counted apart."""

import argparse
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from benchmarks.proof import candidates, checkout
from duckflow.proof.reach import NewName, new_names, texts_of, unreached
from duckflow.safety.undo.undo import FileVersions

SECONDS = 120.0


def without_wiring(texts: Mapping[str, str], new: NewName) -> dict[str, str]:
    """Blanks out all lines that speak of a name, but for its definition."""
    spoken = re.compile(rf"\b{re.escape(new.name)}\b".replace(r"\-", "[-_]"))

    def stays(path: str, number: int, line: str) -> bool:
        return not spoken.search(line) or (path == new.path and new.first <= number <= new.last)

    return {
        path: "\n".join(line if stays(path, at, line) else "" for at, line in enumerate(text.splitlines(), 1))
        for path, text in texts.items()
    }


def reach(repository: Path, commit: str, changes: list[FileVersions], counts: Counter[str], keys: bool) -> bool:
    """Counts one commit; not where it adds no public name, or no key if only keys are asked for."""
    names = [new for new in new_names(changes) if new.is_key or not keys]
    if not names:
        return False
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as top:
        texts = texts_of(Path(top), SECONDS) if checkout(repository, commit, Path(top)) else None
    if texts is None:
        return False
    alarms = unreached(names, texts)
    counts["commits"] += 1
    counts["false alarms"] += bool(alarms)
    for new in names:
        if new.name in alarms:
            print(f"{repository.parent.name} {commit[:10]} {new.path}:{new.first} {new.name}", flush=True)
    wired = [new for new in names if new.name not in alarms]
    first_of_kinds = {_kind(new): new for new in reversed(wired)}
    for new in first_of_kinds.values() if keys else wired[:1]:
        counts[f"wiring removed{_kind(new)}"] += 1
        counts[f"noticed{_kind(new)}"] += new.name in unreached(names, without_wiring(texts, new))
    return True


def _kind(new: NewName) -> str:
    if not new.is_key:
        return ""
    return " (fields)" if new.path.endswith(".py") else " (keys of files)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repositories", default="")
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--keys", action="store_true")
    options = parser.parse_args()
    counts = Counter[str]()
    folder: Path = options.folder
    names: list[str] = options.repositories.split(",") if options.repositories else sorted(os.listdir(folder))
    for name in names:
        repository, taken = folder / name / "repo", 0
        looked_at = (60 if options.keys else 6) * options.commits
        for commit, changes in islice(candidates(repository), looked_at) if repository.is_dir() else ():
            taken += reach(repository, commit, changes, counts, options.keys)
            if taken >= options.commits:
                break
    print(dict(counts))
    for part, whole in (("noticed", "wiring removed"), ("false alarms", "commits")):
        print(f"{part} %", round(100 * counts[part] / counts[whole], 1) if counts[whole] else "-")


if __name__ == "__main__":
    main()
