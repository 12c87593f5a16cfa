"""Diffs as they are told to a model, or written where others read them: without the lines of secret files."""

import os
from pathlib import Path, PurePath

from duckflow.safety.secrets import BLOT, secret_name
from duckflow.state.changes import ReadLine, read_diff

NAMING = ("--- ", "+++ ", "diff --git ", "rename from ", "rename to ")


def leads_to_secret(path: str, folder: Path) -> bool:
    """Says whether a path has the name of a secret, or leads to a file that has one."""
    if secret_name(path):
        return True
    try:
        return secret_name(os.path.relpath(os.path.realpath(folder / path), os.path.realpath(folder)))
    except (OSError, ValueError):
        return False


def leads_into_git(path: str, folder: Path) -> bool:
    """Says whether a path leads into a git folder, whose settings may hold logins."""
    return any(".git" in PurePath(place).parts for place in (path, os.path.realpath(folder / path)))


def without_secret_lines(diff: str, folder: Path) -> str:
    """Returns a diff in which only numbers of lines are told of secret files. Any line that could be the head of a
    secret file's diff begins such a part, even inside a hunk that is shorter than it says. It ends where the diff of
    another file surely begins."""
    lines, withheld, added_count, removed_count = list[str](), False, 0, 0
    for line in read_diff(diff):
        whole_line = line.text if line.sign in ("", "@") else line.sign + line.text
        if whole_line.startswith(NAMING) and _names_secret(whole_line, folder):
            if not withheld:
                added_count, removed_count = 0, 0
            withheld = True
            lines.append(whole_line)
        elif withheld and _begins_other_file(line, folder):
            lines += [_counts(added_count, removed_count), whole_line]
            withheld = False
        elif withheld:
            added_count, removed_count = added_count + (line.sign == "+"), removed_count + (line.sign == "-")
        else:
            lines.append(whole_line)
    return "\n".join([*lines, _counts(added_count, removed_count)] if withheld else lines)


def _counts(added: int, removed: int) -> str:
    return f"@@ {BLOT} +{added} −{removed} @@"


def _begins_other_file(line: ReadLine, folder: Path) -> bool:
    is_head = not line.sign and line.text.startswith(("diff --git ", "--- ", "rename from "))
    return is_head and not _names_secret(line.text, folder)


def _names_secret(line: str, folder: Path) -> bool:
    names = [line.partition(" ")[2].split("\t")[0], *line.split()[1:]]
    paths = [name.strip().strip('"') for name in names]
    return any(
        leads_to_secret(path.removeprefix(prefix), folder)
        for path in paths
        for prefix in ("a/", "b/", "from ", "to ")
        if path and path != "/dev/null"
    )
