"""Rules about how a test ended: they say what its failure on other code shows."""

import ast
import re
from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from duckflow.proof.python_tests import UNREADABLE, FileTests

FailureKind = Literal["assertion", "absent", "error"]
ABSENT = frozenset(("ImportError", "AttributeError", "NameError"))
"""Errors that Python raises for an unknown name."""
SIGNATURE = re.compile(
    r"unexpected keyword argument|positional arguments? but|missing \d+ required|takes no (?:keyword )?arguments"
    r"|invalid keyword argument"
)
NAME = re.compile(r"['\"`]([\w.]+)['\"`]")
ASSERTIONS = frozenset(("AssertionError", "Failed"))


class TrialEnd(NamedTuple):
    """The end of one test: its outcome, and its error if there was one."""

    file: str
    test: str
    """The name of the test in its file; empty if the whole file could not be loaded."""
    outcome: Literal["passed", "failed", "skipped", "broken", "begun"]
    """`broken`: the test's file could not be loaded; `begun`: the test never ended, or ended the whole process."""
    ran: tuple[tuple[str, int], ...] = ()
    """The watched lines that the test ran, the last one first."""
    kinds: tuple[str, ...] = ()
    message: str = ""
    line: int = 0
    """The last line of the test's own file that the error came through; 0 if the test's own code did not cause the
    error."""

    @property
    def name(self) -> str:
        """Returns the test's name without its parameters."""
        return f"{self.file}::{self.test.partition('[')[0]}"


def failure_kind(end: TrialEnd, tests: FileTests, added: Collection[str]) -> FailureKind:
    """Returns the way in which a test failed: by an assertion, because something that it needs is missing (such as a
    fixture, or a name that the change `added`), or by another error of the code."""
    if not ASSERTIONS.isdisjoint(end.kinds):
        return "assertion"
    if end.outcome == "broken":
        return "absent"
    names = {part for name in NAME.findall(end.message) for part in name.split(".")}
    if not ABSENT.isdisjoint(end.kinds) and not names.isdisjoint(added):
        return "absent"
    if "TypeError" in end.kinds and SIGNATURE.search(end.message):
        return "absent"
    if end.line in tests.asserting:
        return "assertion"
    return "error" if end.line else "absent"


def notices(end: TrialEnd, tests: FileTests) -> bool:
    """Says whether a test notices that the code was broken: by an assertion, not because the broken code never ends."""
    return end.outcome == "failed" and failure_kind(end, tests, ()) == "assertion"


def names_in(text: str) -> frozenset[str]:
    """Returns all names that a source defines or uses; if it cannot be parsed, all of its words."""
    try:
        tree = ast.parse(text)
    except UNREADABLE:
        return frozenset(re.findall(r"\w+", text))
    return frozenset(name for node in ast.walk(tree) for name in _names_of(node))


def _names_of(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.AsyncFunctionDef(name=name) | ast.alias(asname=str(name)):
            return (name,)
        case ast.alias(name=name):
            return name.split(".")
        case ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return (name,)
        case _:
            return ()
