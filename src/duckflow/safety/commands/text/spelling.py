"""From the grammar's nodes to words: quotes and backslashes removed, variables and braces filled in where known."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckflow.safety.commands.invocation import Output
from duckflow.safety.commands.scope import Scope
from duckflow.safety.commands.text import escapes
from duckflow.safety.commands.text.braces import expand
from duckflow.safety.commands.text.marks import BREAK, hide, show
from duckflow.safety.commands.text.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

RUNS = frozenset(("command_substitution", "process_substitution"))
FILLED_IN = re.compile(r"[*?\[\]]|^~|[@+!]\(")
SHELLS_DISAGREE = re.compile(r"[~^#!]|^=|^%|[{}]")
"""Some shells (zsh, csh) give these a meaning where bash does not."""
LINE_BREAK = hide("\n")
ESCAPED_LETTER = re.compile(r"\\\w")
ESCAPE_IN_QUOTES = re.compile(r'\\[$`"\\\n]')
PARAMETER = re.compile(r"^\$\{(!?)(\w+|[@*])(\[[@*]\])?(?:(:?[-=+?])(.*))?\}$", re.DOTALL)
POSITION = re.compile(r"^[1-9][0-9]{0,3}$", re.ASCII)
MOST_WORDS = 400

Runner = Callable[["Node"], Output]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word, with what is quoted already hidden."""

    text: str
    known: bool = True
    plain: bool = True
    origins: tuple[str, ...] = ()


class Speller:
    """Reads the words of one text; commands inside words are handed to `run`."""

    def __init__(self, source: bytes, scope: Scope, run: Runner) -> None:
        self.source = source
        self.scope = scope
        self.run = run

    def text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def words(self, node: "Node") -> list[Word]:
        """The words a node becomes: none for an unset variable, several for braces or a variable with spaces."""
        pieces = list(self._pieces(node, quoted=False))
        whole = "".join(piece.text for piece in pieces)
        spelled = [part for word in expand(whole) for part in word.split(BREAK)]
        if len(spelled) > 1:
            spelled = [part for part in spelled if part]
        elif not whole and not any(piece.plain for piece in pieces):
            return []
        return [_word(part, pieces, changed=part != whole) for part in spelled[:MOST_WORDS]]

    def word(self, node: "Node") -> Word:
        """One word, whatever is in it: the value of an assignment, the target of a redirection."""
        pieces = list(self._pieces(node, quoted=False))
        return _word("".join(piece.text for piece in pieces).replace(BREAK, " "), pieces, changed=False)

    def _pieces(self, node: "Node", quoted: bool) -> Iterator[Piece]:
        match node.type:
            case "word" | "number" | "test_operator" | "extglob_pattern" | "regex" | "brace_expression":
                raw = self.text(node)
                yield Piece(_hide_escaped(raw), plain=not ESCAPED_LETTER.search(raw))
            case "raw_string":
                yield Piece(hide(self.text(node)[1:-1]))
            case "ansi_c_string" | "ansii_c_string":
                yield Piece(hide(escapes.ansi(self.text(node)[2:-1])), plain=False)
            case "string" | "translated_string":
                yield from self._double_quoted(node)
            case "concatenation" | "command_name":
                for child in node.children:
                    yield from self._pieces(child, quoted)
            case "simple_expansion" | "expansion":
                yield self._expansion(node, quoted)
            case "command_substitution" | "process_substitution":
                yield self._output(node, quoted)
            case "array":
                values = [word for child in node.named_children for word in self.words(child)]
                yield Piece(BREAK.join(hide(word.text) for word in values), all(word.known for word in values), False)
            case _:
                self.run_inside(node)
                yield Piece(hide(self.text(node)), known=False, plain=False)

    def _double_quoted(self, node: "Node") -> Iterator[Piece]:
        yield Piece("")
        place = node.children[0].end_byte if node.children else node.start_byte
        for child in node.children[1:]:
            if child.start_byte > place:
                yield self._content(self.source[place : child.start_byte].decode("utf-8", "replace"))
            if child.type == "string_content":
                yield self._content(self.text(child))
            elif child.is_named:
                yield from self._pieces(child, quoted=True)
            elif child.type != '"':
                yield self._content(self.text(child))
            place = child.end_byte

    def _content(self, text: str) -> Piece:
        return Piece(hide(escapes.double_quoted(text)), plain=not ESCAPE_IN_QUOTES.search(text))

    def _expansion(self, node: "Node", quoted: bool) -> Piece:
        origins = self.run_inside(node)
        raw = self.text(node)
        name, default = raw[1:], ""
        found = PARAMETER.match(raw)
        if found:
            name, default = found[2], found[5] or ""
            if found[1]:
                pointed = self.scope.variables.get(name)
                name = pointed[0].text if pointed else ""
            if found[4] and found[4].endswith("+"):
                return Piece(hide(default), known=False, plain=False, origins=origins)
        elif not raw[1:].isidentifier() and not raw[1:].isdigit() and raw not in ("$@", "$*"):
            return Piece(hide(raw), known=False, plain=False, origins=origins)
        value = self._value(name)
        if value is None and default:
            return Piece(hide(default.strip("\"'")), known=False, plain=False, origins=origins)
        if value is None:
            return Piece(hide(raw), known=False, plain=False, origins=origins)
        text = value.text if quoted and not raw.endswith(("@", "@]}")) else re.sub(r"[ \t\n]+", BREAK, value.text)
        return Piece(hide(text) if quoted else text, value.known, False, origins + value.origins)

    def _value(self, name: str) -> Word | None:
        """What is known of a variable. Unset positional ones are empty; `$IFS` is the space it is used for."""
        given = self.scope.arguments
        if POSITION.match(name) and given is not None:
            return given[int(name) - 1] if int(name) <= len(given) else Word("", plain=False)
        if name in ("@", "*") and given is not None:
            return Word(" ".join(word.text for word in given), all(word.known for word in given), False)
        values = self.scope.variables.get(name)
        if values is not None:
            known = all(word.known for word in values)
            origins = tuple(origin for word in values for origin in word.origins)
            return Word(" ".join(word.text for word in values), known, False, origins)
        return Word(" ", plain=False) if name == "IFS" else None

    def _output(self, node: "Node", quoted: bool) -> Piece:
        output = self.run(node)
        if output.text is None or node.type == "process_substitution":
            return Piece(hide(self.text(node)), known=False, plain=False, origins=output.programs)
        text = output.text.rstrip("\n")
        return Piece(hide(text) if quoted else re.sub(r"\s+", BREAK, text), True, False, output.programs)

    def run_inside(self, node: "Node") -> tuple[str, ...]:
        """Commands anywhere inside run too."""
        programs = list[str]()
        waiting = list(node.children)
        while waiting:
            child = waiting.pop()
            if child.type in RUNS:
                programs.extend(self.run(child).programs)
            else:
                waiting.extend(child.children)
        return tuple(programs)


def _hide_escaped(raw: str) -> str:
    return escapes.UNQUOTED.sub(lambda found: "" if found[1] == "\n" else hide(found[1]), raw)


def _word(text: str, pieces: list[Piece], changed: bool) -> Word:
    filled_in = bool(FILLED_IN.search(text))
    return Word(
        show(text),
        known=all(piece.known for piece in pieces) and not filled_in,
        plain=all(piece.plain and piece.known for piece in pieces)
        and not (filled_in or changed or LINE_BREAK in text or SHELLS_DISAGREE.search(text)),
        origins=tuple(origin for piece in pieces for origin in piece.origins),
    )
