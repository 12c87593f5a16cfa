"""Helpers that make steps and feed them to the Pacemaker."""

from collections.abc import Iterable

from duckflow.pacemaker.interventions import DuckCall, Verdict
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.signatures import LoopStep


def read(path: str, content: str | None = None) -> LoopStep:
    return LoopStep("file_ops.read_file", {"path": path}, content or f"content of {path}", kind="read")


def grep(pattern: str, found: str = "") -> LoopStep:
    return LoopStep("file_ops.grep", {"pattern": pattern}, found or f"no match for {pattern}", kind="search")


def edit(path: str, content: str) -> LoopStep:
    return LoopStep("file_ops.write_file", {"path": path, "content": content}, "written", kind="edit")


def rewrite(path: str, content: str) -> LoopStep:
    """Makes an edit as the product does, with the file that changed."""
    return edit(path, content)._replace(changed=(path,))


def replace(path: str, old: str, new: str) -> LoopStep:
    args = {"path": path, "edits": [{"old": old, "new": new}]}
    return LoopStep("file_ops.edit_file", args, "changed", kind="edit", changed=(path,))


def bad_edit(path: str, content: str, error: str = "the old text is not in the file") -> LoopStep:
    return LoopStep("file_ops.edit_file", {"path": path, "content": content}, error, is_error=True, kind="edit")


def run(command: str, output: str, *, failed: bool = False) -> LoopStep:
    return LoopStep("shell.run", {"command": command}, output, is_error=failed, kind="run")


def say_it(text: str) -> LoopStep:
    return LoopStep("response", {"text": text}, "shown to the user", kind="talk", text=text)


def tell(pacemaker: Pacemaker, steps: Iterable[LoopStep]) -> list[Verdict]:
    """Returns the verdict after every step, until the Pacemaker asks."""
    verdicts: list[Verdict] = []
    for step in steps:
        pacemaker.observe(step)
        verdicts.append(pacemaker.beat())
        if isinstance(verdicts[-1], DuckCall):
            break
    return verdicts


def ask_after(pacemaker: Pacemaker, steps: Iterable[LoopStep]) -> DuckCall:
    """Returns the Duck Call in which these steps end."""
    verdict = tell(pacemaker, steps)[-1]
    assert isinstance(verdict, DuckCall)
    return verdict
