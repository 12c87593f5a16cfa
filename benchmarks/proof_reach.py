"""How well code that nothing reaches is found, on real commits.

    python -m benchmarks.proof_reach FOLDER_OF_GIT_DIRECTORIES [--repositories a,b] [--commits 30] [--keys]

Each commit that adds a public name or a key is looked at as it is, where an alarm is false, and with every other line
that speaks of the first such name in its code blanked out by this program.

`--keys` looks at keys of configurations in the newest commit, each as though it were new: some fields of classes of
settings, and some keys of files, most of which other programs read."""

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
from duckflow.safety.undo.facts import FileVersions

SECONDS = 120.0
KEYS_OF_A_FILE, KEYS_OF_A_KIND = 2, 10


def without_wiring(texts: Mapping[str, str], new: NewName) -> dict[str, str]:
    """Blanks out all lines that speak of a name, but for its definition."""
    spoken = re.compile(rf"\b{re.escape(new.name)}\b".replace(r"\-", "[-_]"))

    def stays(path: str, number: int, line: str) -> bool:
        return not spoken.search(line) or (path == new.path and new.first <= number <= new.last)

    return {
        path: "\n".join(line if stays(path, at, line) else "" for at, line in enumerate(text.splitlines(), 1))
        for path, text in texts.items()
    }


def reach(repository: Path, commit: str, changes: list[FileVersions], counts: Counter[str]) -> bool:
    """Counts one commit; not where it adds no public name."""
    names = new_names(changes)
    texts = folder_texts(repository, commit) if names else None
    if texts is None:
        return False
    alarms = unreached(names, texts)
    counts["commits"] += 1
    counts["false alarms"] += bool(alarms)
    for new in names:
        if new.name in alarms:
            print(f"{repository.parent.name} {commit[:10]} {new.path}:{new.first} {new.name}", flush=True)
    wired = [new for new in names if new.name not in alarms and not new.is_key]
    if wired:
        counts["wiring removed"] += 1
        counts["noticed"] += wired[0].name in unreached(names, without_wiring(texts, wired[0]))
    return True


def folder_texts(repository: Path, commit: str) -> dict[str, str] | None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as top:
        return texts_of(Path(top), SECONDS) if checkout(repository, commit, Path(top)) else None


def keys(repository: Path, counts: Counter[str]) -> None:
    """Counts keys of the newest commit."""
    texts = folder_texts(repository, "HEAD") or {}
    of_files = (new_names([FileVersions(path, None, text.encode())]) for path, text in sorted(texts.items()))
    every_key = [key for names in of_files for key in [new for new in names if new.is_key][:KEYS_OF_A_FILE]]
    for kind, wanted in ((" (fields)", True), (" (keys of files)", False)):
        for key in [key for key in every_key if key.path.endswith(".py") == wanted][:KEYS_OF_A_KIND]:
            counts[f"looked at{kind}"] += 1
            if unreached([key], texts):
                counts[f"false alarms{kind}"] += 1
                print(f"{repository.parent.name} {key.path}:{key.first} {key.name}", flush=True)
            else:
                counts[f"wiring removed{kind}"] += 1
                counts[f"noticed{kind}"] += bool(unreached([key], without_wiring(texts, key)))


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
        if options.keys and repository.is_dir():
            keys(repository, counts)
            continue
        for commit, changes in islice(candidates(repository), 6 * options.commits) if repository.is_dir() else ():
            taken += reach(repository, commit, changes, counts)
            if taken >= options.commits:
                break
    print(dict(counts))
    for part, whole in (("noticed", "wiring removed"), ("false alarms", "commits")):
        print(f"{part} %", round(100 * counts[part] / counts[whole], 1) if counts[whole] else "-")


if __name__ == "__main__":
    main()
