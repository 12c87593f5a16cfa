"""The parts of a command as the grammar gives them: words, assignments, redirections, and text fed to it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duckflow.safety.commands.invocation import Assignment, Output, Redirect
from duckflow.safety.commands.text.spelling import Speller
from duckflow.safety.commands.text.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

FOLLOWING = frozenset(("pipeline", "list", "command", "redirected_statement", "subshell", "compound_statement"))


@dataclass(slots=True)
class Parts:
    """Filled in while the children of a command are read."""

    words: list[Word] = field(default_factory=list[Word])
    assignments: list[Assignment] = field(default_factory=list[Assignment])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    feed: Output | None = None
    strange: list["Node"] = field(default_factory=list["Node"])
    """Brackets in the middle of a command: other shells run what is inside."""
    following: list["Node"] = field(default_factory=list["Node"])
    """Statements that stand on the line of a `<<EOF`."""

    def read(self, node: "Node", speller: Speller) -> None:
        match node.type:
            case "variable_assignment":
                given = assignment(node, speller)
                self.assignments.append(given)
                speller.scope.assign(given.name, given.value)
            case "file_redirect":
                self._redirect(node, speller)
            case "herestring_redirect":
                word = speller.word(node.named_children[-1])
                self.feed = Output(word.text + "\n" if word.known else None, word.origins)
            case "heredoc_redirect":
                self._heredoc(node, speller)
            case "heredoc_start" | "heredoc_end" | "file_descriptor" | "comment":
                pass
            case "subshell":
                self.strange.append(node)
            case _:
                self.words.extend(speller.words(node))

    def _redirect(self, node: "Node", speller: Speller) -> None:
        """The grammar puts words that come after a redirection into it; they belong to the command."""
        operator = next((child.type for child in node.children if not child.is_named), ">")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        target = speller.word(targets[0]) if targets else Word("", known=False, plain=False)
        self.redirects.append(Redirect(operator, target))
        for more in targets[1:]:
            self.words.extend(speller.words(more))

    def _heredoc(self, node: "Node", speller: Speller) -> None:
        """The text is everything between its first line and its end mark.

        The grammar takes a text that begins with a backslash for more words of the command, so it is found here."""
        start = next(
            (child.end_byte for child in node.named_children if child.type == "heredoc_start"), node.start_byte
        )
        line_end = speller.source.find(b"\n", start)
        body_start = line_end + 1 if line_end >= 0 else node.end_byte
        body_end = next(
            (child.start_byte for child in node.named_children if child.type == "heredoc_end"), node.end_byte
        )
        for child in node.named_children:
            if child.type in FOLLOWING:
                self.following.append(child)
            elif child.start_byte >= line_end >= 0:
                speller.run_inside(child)
            else:
                self.read(child, speller)
        self.feed = Output(speller.source[body_start:body_end].decode("utf-8", "replace"))


def assignment(node: "Node", speller: Speller) -> Assignment:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    word = speller.word(value) if value is not None else Word("")
    return Assignment(speller.text(name).partition("[")[0] if name is not None else "", word)
