"""Turns a shell text into the calls of programs in it, in order. Each word of a call is known to be literal or not."""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.safety.commands.verdict import MOST_CALLS, CommandFinding, TooMuch, ask, danger
from duckflow.safety.commands.words import Call, Redirect, Word, names

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

SIMPLE = frozenset(("program", "list", "command", "redirected_statement", "pipeline", "test_command"))
"""Kinds of statements that are simple to follow. Before a command with any other kind, the user is asked."""
SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
STATEMENT = re.compile(r"(?:\w+_)?(?:statement|command|clause|item|group|definition|assignments?|subshell)|ERROR")
NO_WORDS = frozenset(("heredoc_start", "heredoc_end", "file_descriptor", "comment"))
EXPANDS = re.compile(r"[*?\[\]]|^~|[@+!]\(|\{[^{}]*(?:,|\.\.)")
TRICKY = re.compile(r"[~^#!{}\n]|^[=%]|\\")
"""Unquoted characters that have a special meaning in some shell (zsh, csh), and all backslashes."""
ESCAPED_MARK = re.compile(r"\\([^\w\n])")
ESCAPE_IN_QUOTES = re.compile(r'\\[$`"\\\n]')
UNQUOTED_ESCAPE = re.compile(r"\\(.|\n|$)", re.DOTALL)
HIDES = re.compile(r"[;&|$`<>\\]")
OPENS = re.compile(r"[|<>&({$`\[]")
MOST_OPEN = 4000
WRITERS = names("rm rmdir mv cp ln touch mkdir chmod truncate tee sed install")
MOST_NAMES = 20_000
"""The largest number of file names that are compared with the pattern of one word, such as `*.py`."""
LAST_IS_WRITTEN = names("cp ln install")


@cache
def _parser() -> "Parser":
    """Returns the parser. The grammar is loaded when the first command is read."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


@dataclass(slots=True)
class Script:
    """A shell text, split into the calls of programs in it."""

    calls: list[Call] = field(default_factory=list[Call])
    doubts: list[CommandFinding] = field(default_factory=list[CommandFinding])
    spelled: list[str] = field(default_factory=list[str])
    """Every word as it was understood. A second lexer must read the same words (`reads_the_same` in `judge.py`)."""


def parse(text: str) -> Script:
    """Parses a text. It raises TooMuch for a text that would take the grammar too long: after a mistake the grammar
    looks back over everything that is still open."""
    if len(OPENS.findall(text)) > MOST_OPEN:
        raise TooMuch
    tree_walk = _TreeWalk(text.encode("utf-8", "replace"))
    root = _parser().parse(tree_walk.source).root_node
    if root.has_error:
        tree_walk.script.doubts.append(ask("unreadable"))
        if "((" in text:
            # Two brackets are two subshells when they do not close together.
            tree_walk.script.calls.extend(parse(text.replace("((", "( (")).calls)
    try:
        tree_walk.statement(root, ())
    except RecursionError:
        raise TooMuch from None
    return tree_walk.script


@dataclass(slots=True)
class _Parts:
    """The parts of one call of a program, while they are collected."""

    words: list[Word] = field(default_factory=list[Word])
    assignments: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    fed: str | None = None
    following: list["Node"] = field(default_factory=list["Node"])
    """Statements that follow a `<<EOF` on the same line."""


class _TreeWalk:
    """Walks through the tree that the grammar makes of one shell text."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.script = Script()

    def text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def statement(self, node: "Node", piped: tuple[Call, ...]) -> tuple[Call, ...]:
        """Collects the calls of a statement, and returns them for the next stage of a pipeline."""
        calls_before = len(self.script.calls)
        if calls_before > MOST_CALLS:
            raise TooMuch
        match node.type:
            case "command" | "redirected_statement":
                self._call(node, piped)
            case "pipeline":
                for stage_node in node.named_children:
                    piped += self.statement(stage_node, piped)
            case "test_command" if re.match(r"\[[^\[]", self.text(node)):
                self._bracket(node, piped)
            case "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command":
                self._assignments(node)
            case "function_definition":
                self._function(node)
                self._children(node, piped)
            case kind:
                if kind not in SIMPLE or kind == "test_command":
                    self.script.doubts.append(ask("compound"))
                self._children(node, piped)
        return tuple(self.script.calls[calls_before:])

    def _children(self, node: "Node", piped: tuple[Call, ...]) -> None:
        for child in node.children:
            if child.type in SIMPLE or STATEMENT.fullmatch(child.type):
                self.statement(child, piped)
            elif child.type == "comment" and HIDES.search(self.text(child)):
                # Some shells do not know comments when they are typed in.
                self.script.doubts.append(ask("comment"))
            elif child.is_named:
                self.substitutions(child)
            elif child.type == "&":
                self.script.doubts.append(ask("background"))

    def substitutions(self, node: "Node") -> tuple[Call, ...]:
        """Collects the calls in `$(…)`, backquotes and `<(…)`, anywhere inside the node."""
        calls_before = len(self.script.calls)
        if node.type in SUBSTITUTIONS:
            self._children(node, ())
        else:
            for child in node.children:
                self.substitutions(child)
        return tuple(self.script.calls[calls_before:])

    def _bracket(self, node: "Node", piped: tuple[Call, ...]) -> None:
        """Reads `[ … ]`, which is a command like any other: unlike in `[[ … ]]`, a `>` in it writes."""
        inner_script = parse(f"test {self.text(node)[1:].removesuffix(']')}")
        self.script.calls.extend(replace(call, piped=piped) for call in inner_script.calls)
        self.script.doubts.extend(inner_script.doubts)
        self.script.spelled.extend(("[", *inner_script.spelled[1:], "]"))

    def _assignments(self, node: "Node") -> None:
        """Reads `NAME=value` alone, `export`, `declare`, `unset` and similar statements."""
        self.script.doubts.append(ask("sets_variable", name=self.text(node)))
        parts = _Parts()
        for child in [node] if node.type == "variable_assignment" else node.named_children:
            self._part(child, parts)
        self.script.calls.append(Call((), tuple(parts.assignments)))

    def _function(self, node: "Node") -> None:
        name, body = (node.child_by_field_name(part) for part in ("name", "body"))
        title = self.text(name) if name else ""
        self.script.doubts.append(ask("defines", name=title))
        if body and re.search(rf"{re.escape(title)}\s*(?:\||&(?!&))", self.text(body)):
            self.script.doubts.append(danger("fork_bomb"))

    def _call(self, node: "Node", piped: tuple[Call, ...]) -> None:
        parts, body = _Parts(), node.child_by_field_name("body")
        own_children = body.named_children if body and body.type == "command" else []
        for child in [*own_children, *(child for child in node.named_children if child != body)]:
            self._part(child, parts)
        if parts.fed is not None:
            self.script.doubts.append(ask("fed_text"))
        if body and body.type != "command":
            piped += self.statement(body, piped)
        self.script.spelled.extend(word.text for word in parts.words)
        call = Call(tuple(parts.words), tuple(parts.assignments), tuple(parts.redirects), parts.fed, piped)
        self.script.calls.append(call)
        for statement in parts.following:
            self.statement(statement, (*piped, call) if statement.type == "pipeline" else ())

    def _part(self, node: "Node", parts: _Parts) -> None:
        match node.type:
            case "variable_assignment":
                name, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
                self.substitutions(name or node)
                word = self._word(value_node) if value_node else Word("")
                parts.assignments.append((self.text(name).partition("[")[0] if name else "", word))
            case "file_redirect":
                self._redirect(node, parts)
            case "herestring_redirect":
                parts.fed = self._word(node.named_children[-1]).text
            case "heredoc_redirect":
                self._here_document(node, parts)
            case "subshell":
                # Brackets in the middle of a call: other shells run what is inside.
                self.statement(node, ())
            case kind:
                parts.words.extend([] if kind in NO_WORDS else [self._word(node)])

    def _redirect(self, node: "Node", parts: _Parts) -> None:
        """Reads a redirection. The grammar takes the words after a redirection as part of it, but they belong to the
        call."""
        operator = next((child.type for child in node.children if not child.is_named), ">")
        target_nodes = [child for child in node.named_children if child.type != "file_descriptor"]
        target = self._word(target_nodes[0]) if target_nodes else Word("", known=False, literal=False)
        parts.redirects.append(Redirect(operator, target))
        parts.words.extend(self._word(target) for target in target_nodes[1:])

    def _here_document(self, node: "Node", parts: _Parts) -> None:
        """Reads a here-document. Its text is everything after the first line; the grammar may take a part of it for
        words of the call."""
        first_line, _, parts.fed = self.text(node).partition("\n")
        line_end = node.start_byte + len(first_line.encode())
        for child in node.named_children:
            if child.type in SIMPLE or STATEMENT.fullmatch(child.type):
                parts.following.append(child)
            elif child.start_byte >= line_end:
                self.substitutions(child)
            else:
                self._part(child, parts)

    def _word(self, node: "Node") -> Word:
        """Reads one word. In `shape` quoted text is replaced by `q`, so every other character has its meaning to the
        shell."""
        text, shape, is_known, is_literal = "", "", True, True
        calls_before = len(self.script.calls)
        for piece_text, piece_shape, piece_known, piece_literal in self._pieces(node):
            text, shape = text + piece_text, shape + piece_shape
            is_known, is_literal = is_known and piece_known, is_literal and piece_literal
        is_known = is_known and not EXPANDS.search(shape)
        is_literal = is_known and is_literal and not TRICKY.search(shape) and "\n" not in text
        if node.type == "command_name":
            is_literal = is_literal and text == self.text(node)
        return Word(text, is_known, is_literal, tuple(self.script.calls[calls_before:]))

    def _pieces(self, node: "Node") -> Iterator[tuple[str, str, bool, bool]]:
        raw_text = self.text(node)
        match node.type:
            case "word" | "number" | "test_operator" | "extglob_pattern" | "regex" | "brace_expression":
                text = UNQUOTED_ESCAPE.sub(lambda escape: escape[1].strip("\n"), raw_text)
                yield text, ESCAPED_MARK.sub("q", raw_text), True, True
            case "raw_string":
                yield raw_text[1:-1], "q", True, True
            case "string" if all(child.type in ('"', "string_content") for child in node.children):
                inner_text = raw_text[1:-1]
                text = ESCAPE_IN_QUOTES.sub(lambda escape: escape[0][1:].strip("\n"), inner_text)
                yield text, "q", True, not ESCAPE_IN_QUOTES.search(inner_text)
            case "string" | "translated_string" | "ansi_c_string":
                self.substitutions(node)
                yield raw_text.removeprefix("$").strip("'\""), "q", False, False
            case "concatenation" | "command_name":
                for child in node.children:
                    yield from self._pieces(child)
            case _:
                self.substitutions(node)
                yield raw_text, "q", False, False


def named_targets(command: str, folder: Path) -> list[str]:
    """Returns the paths that a command writes to: as arguments of a program that writes files, or after `>`. Paths that
    are only known at run time are left out, and so is everything after a `cd` to such a place."""
    targets, current_folder = list[str](), folder
    try:
        calls = parse(command).calls
    except TooMuch:
        return []
    for call in calls:
        if call.program == "cd":
            if len(call.arguments) != 1 or not call.arguments[0].known:
                break
            current_folder = current_folder / call.arguments[0].text
        words = [word for word in call.arguments if call.program in WRITERS and not word.text.startswith("-")]
        if call.program == "sed" and not any(text.startswith(("-i", "--in-place")) for text in call.texts):
            words = []
        words = words[-1:] if call.program in LAST_IS_WRITTEN else words
        for word in (*words, *(redirect.target for redirect in call.redirects if redirect.writes)):
            if word.known:
                targets.append(os.path.normpath(current_folder / word.text))
            elif word.text and not word.text.startswith("/") and "**" not in word.text:
                targets += map(str, _matching(current_folder, word.text.split("/")))
    return targets


def _matching(folder: Path, patterns: list[str]) -> list[Path]:
    """Returns the paths beneath a folder whose names match these patterns. No link is followed and nothing outside is
    looked at, so no pattern takes long; a pattern that would need too many names matches nothing."""
    paths, names_read = [folder], 0
    for pattern in filter(None, patterns):
        matching_paths = list[Path]()
        for path in paths:
            if names_read > MOST_NAMES or (path != folder and path.is_symlink()):
                continue
            with contextlib.suppress(OSError):
                names = os.listdir(path)
                names_read += len(names)
                matching_paths += [path / name for name in names if fnmatchcase(name, pattern)]
        paths = matching_paths
    return [] if names_read > MOST_NAMES else paths
