"""Rules about how a test ended: what its failure on other code shows."""

import ast
import re
from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from duckflow.proof.python_tests import UNREADABLE, FileTests

FailureKind = Literal["assertion", "absent", "error"]
ABSENT = frozenset(("ImportError", "AttributeError", "NameError"))
"""Errors that an unknown name raises."""
SIGNATURE = re.compile(
    r"unexpected keyword argument|positional arguments? but|missing \d+ required|takes no (?:keyword )?arguments"
    r"|invalid keyword argument"
)
NAME = re.compile(r"['\"`]([\w.]+)['\"`]")
ASSERTIONS = frozenset(("AssertionError", "Failed"))


class TrialEnd(NamedTuple):
    """The end of one test, with its error."""

    file: str
    test: str
    """The name in its file; empty where the whole file could not be loaded."""
    outcome: Literal["passed", "failed", "skipped", "broken", "begun"]
    """`broken`: its file could not be loaded; `begun`: it never ended, or ended the whole process."""
    ran: tuple[tuple[str, int], ...] = ()
    """The watched lines that it ran, the last one first."""
    kinds: tuple[str, ...] = ()
    message: str = ""
    line: int = 0
    """The last line of its own file that the error came through."""

    @property
    def name(self) -> str:
        """Returns the name without parameters."""
        return f"{self.file}::{self.test.partition('[')[0]}"


def failure_kind(end: TrialEnd, tests: FileTests, added: Collection[str]) -> FailureKind:
    """Says whether a test failed by an assertion, because a name that the change `added` is missing, or by another
    error of the code."""
    if not ASSERTIONS.isdisjoint(end.kinds):
        return "assertion"
    if end.outcome == "broken":
        return "absent"
    names = {part for name in NAME.findall(end.message) for part in name.split(".")}
    if not ABSENT.isdisjoint(end.kinds) and not names.isdisjoint(added):
        return "absent"
    if "TypeError" in end.kinds and SIGNATURE.search(end.message):
        return "absent"
    return "assertion" if end.line in tests.asserting else "error"


def notices(end: TrialEnd, tests: FileTests) -> bool:
    """Says whether a test notices that the code was broken: by an assertion, not because the broken code never ends."""
    return end.outcome == "failed" and failure_kind(end, tests, ()) == "assertion"


def names_in(text: str) -> frozenset[str]:
    """Returns all names that a source defines or uses; every word where it cannot be parsed."""
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
