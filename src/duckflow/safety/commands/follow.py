"""Follows a text the way a shell would: statement by statement, through everything it runs."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from duckflow.safety.commands.effects import take_effect
from duckflow.safety.commands.invocation import Assignment, Invocation, Output
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.opinions import opinions
from duckflow.safety.commands.output import printed
from duckflow.safety.commands.reading.operands import files_read
from duckflow.safety.commands.report import Report, TooMuch
from duckflow.safety.commands.scope import Scope
from duckflow.safety.commands.secret_names import is_secret
from duckflow.safety.commands.text.grammar import parse
from duckflow.safety.commands.text.lexing import lexed
from duckflow.safety.commands.text.parts import Parts, assignment
from duckflow.safety.commands.text.salvage import salvage
from duckflow.safety.commands.text.spelling import RUNS, Speller
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.verdict import ask, danger

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 10
HIDES = re.compile(r"[;&|$`<>\\]")
MOST_TURNS = 6
TWO_BRACKETS = re.compile(r"\((?=\()")
COMPOUND = frozenset(
    ("compound_statement", "subshell", "if_statement", "while_statement", "c_style_for_statement", "case_statement")
)
STATEMENTS = frozenset(
    ("program", "list", "compound_statement", "subshell", "if_statement", "elif_clause", "else_clause")
    + ("while_statement", "c_style_for_statement", "case_statement", "case_item", "do_group", "negated_command")
    + ("ERROR", "command", "redirected_statement", "pipeline", "variable_assignment", "variable_assignments")
    + ("declaration_command", "unset_command", "function_definition", "for_statement", "test_command")
)


class Follower:
    """Follows one text; what that text runs is followed by another one, a level deeper."""

    def __init__(self, report: Report, scope: Scope, depth: int = 0) -> None:
        self.report = report
        self.scope = scope
        self.depth = depth
        self.speller = Speller(b"", scope, self._inside)

    def follow(self, text: str, feed: Output | None = None) -> Output:
        if self.depth > DEEPEST:
            raise TooMuch
        self.report.step()
        source = text.encode("utf-8", "replace")
        self.speller = Speller(source, self.scope, self._inside)
        root = parse(source)
        output = self._statement(root, feed)
        if root.has_error:
            self.report.add(ask("unreadable"))
            _salvage(text, self)
        return output

    def _deeper(self, text: str, arguments: tuple[Word, ...] | None, feed: Output | None) -> Output:
        return Follower(self.report, self.scope.called_with(arguments), self.depth + 1).follow(text, feed)

    def _inside(self, node: "Node") -> Output:
        """`$(…)`, backquotes and `<(…)`."""
        return self._children(node, None)

    def _statement(self, node: "Node", feed: Output | None) -> Output:
        match node.type:
            case "command" | "redirected_statement":
                return self._command(node, feed)
            case "pipeline":
                return self._pipeline(node, feed)
            case "variable_assignment":
                return self._assign((assignment(node, self.speller),))
            case "variable_assignments" | "declaration_command" | "unset_command":
                return self._declare(node)
            case "function_definition":
                return self._function(node)
            case "for_statement":
                return self._loop(node, feed)
            case "test_command":
                return self._test(node, feed)
            case name:
                if name in COMPOUND:
                    self.report.add(ask("compound"))
                return self._children(node, feed)

    def _test(self, node: "Node", feed: Output | None) -> Output:
        """`[ … ]` is a command like any other: a `>` in it writes, other than in `[[ … ]]`."""
        text = self.speller.text(node)
        self._spelled(lexed(text))
        if text.startswith("[["):
            self.speller.run_inside(node)
            return Output()
        return self._deeper(f"test {text[1:].removesuffix(']')}", self.scope.arguments, feed)

    def _children(self, node: "Node", feed: Output | None) -> Output:
        outputs = list[Output]()
        for child in node.children:
            if child.type in STATEMENTS:
                outputs.append(self._statement(child, feed))
            elif child.type in RUNS:
                outputs.append(self._inside(child))
            elif child.type == "comment":
                self._comment(child)
            elif child.is_named:
                self.speller.run_inside(child)
            elif child.type == "&":
                self.report.add(ask("background"))
        programs = tuple(program for output in outputs for program in output.programs)
        secret = any(output.secret for output in outputs)
        return Output(outputs[0].text if len(outputs) == 1 else None, programs, secret)

    def _comment(self, node: "Node") -> None:
        """Some shells do not know comments when they are typed in."""
        if HIDES.search(self.speller.text(node)):
            self.report.add(ask("comment"))

    def _pipeline(self, node: "Node", feed: Output | None) -> Output:
        programs = list[str]()
        for stage in node.named_children:
            output = self._statement(stage, feed)
            programs.extend(output.programs)
            feed = Output(output.text, tuple(programs), output.secret)
        return feed or Output()

    def _command(self, node: "Node", feed: Output | None) -> Output:
        parts, body = Parts(), node.child_by_field_name("body")
        for child in [*(body.named_children if body and body.type == "command" else ()), *node.named_children]:
            if child != body:
                parts.read(child, self.speller)
        if parts.strange:
            self.report.add(ask("unreadable"))
        for strange in parts.strange:
            self._statement(strange, feed)
        if parts.feed:
            self.report.add(ask("fed_text"))
            feed = parts.feed
        self._spelled([word.text for word in parts.words])
        around = Output()
        if body and body.type != "command":
            around = self._statement(body, feed)
        output = self.call(
            Invocation(tuple(parts.words), tuple(parts.assignments), tuple(parts.redirects), feed, self.scope.scene())
        )
        output = Output(output.text or around.text, around.programs + output.programs, around.secret or output.secret)
        for statement in parts.following:
            output = self._statement(statement, output if statement.type == "pipeline" else None)
        return output

    def _spelled(self, words: list[str]) -> None:
        if self.depth == 0:
            self.report.spelled.extend(words)

    def _assign(self, assignments: tuple[Assignment, ...]) -> Output:
        self.call(Invocation((), assignments, (), None, self.scope.scene()))
        for given in assignments:
            self.scope.assign(given.name, given.value)
        return Output()

    def _declare(self, node: "Node") -> Output:
        """`export`, `declare`, `unset` and their kin."""
        self.report.add(ask("sets_variable", name=self.speller.text(node)))
        given = [child for child in node.named_children if child.type == "variable_assignment"]
        for other in node.named_children:
            if other not in given:
                self.speller.words(other)
        return self._assign(tuple(assignment(child, self.speller) for child in given))

    def _function(self, node: "Node") -> Output:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return Output()
        title, text = self.speller.text(name), self.speller.text(body)
        self.report.add(ask("defines", name=title))
        if _multiplies(title, body, self.speller):
            self.report.add(danger("fork_bomb"))
            return Output()
        self._deeper(text, None, None)
        self.scope.functions[title] = text
        return Output()

    def _loop(self, node: "Node", feed: Output | None) -> Output:
        """`for x in …`: the body is followed once for each value, as far as that is reasonable."""
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return self._children(node, feed)
        name = self.speller.text(variable)
        self.report.add(ask("sets_variable", name=name))
        values = [word for child in node.children_by_field_name("value") for word in self.speller.words(child)]
        for value in values[:MOST_TURNS] or [Word(f"${name}", known=False, plain=False)]:
            self.scope.assign(name, value)
            self._statement(body, feed)
        return Output()

    def call(self, call: Invocation) -> Output:
        self.report.step()
        head = call.words[0].text if call.words else ""
        programs = list[str]()
        if head:
            self.report.programs[call.program] = None
            programs.append(call.program)
        if head in self.scope.functions or head in self.scope.aliases:
            self.call(replace(call, words=()))
            return self._defined(head, call)
        for opinion in opinions(call):
            programs.extend(self._heed(opinion, call).programs)
        take_effect(call, self.scope, self.report)
        secret = any(is_secret(word.text) for word in files_read(call)) or (call.feed is not None and call.feed.secret)
        return Output(printed(call) if head else None, tuple(programs), secret)

    def _defined(self, name: str, call: Invocation) -> Output:
        """A function or an alias of the same text. An alias may name itself: inside, the name means the program."""
        if name in self.scope.functions:
            return self._deeper(self.scope.functions[name], call.arguments, call.feed)
        text = self.scope.aliases.pop(name)
        rest = " ".join(word.text for word in call.arguments)
        output = self._deeper(f"{text} {rest}", (), call.feed)
        self.scope.aliases[name] = text
        return output

    def _heed(self, opinion: Opinion, call: Invocation) -> Output:
        match opinion:
            case Runs(words):
                return self.call(call.running(words)) if words else Output()
            case RunsText(text, arguments):
                is_feed = call.feed is not None and call.feed.text == text
                return self._deeper(text, arguments, None if is_feed else call.feed)
            case finding:
                self.report.add(finding)
                return Output()


def _multiplies(name: str, body: "Node", speller: Speller) -> bool:
    """A function that starts itself and does not wait for it."""
    calls, waiting, background = 0, [body], False
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        background = background or node.type in ("&", "|")
        calls += node.type == "command_name" and speller.text(node) == name
    return calls > 0 and background


def _salvage(text: str, broken: Follower) -> None:
    """Of what could be guessed from a text that cannot be read, only harm counts."""
    guess = Report(steps=broken.report.steps)
    follower = Follower(guess, broken.scope, broken.depth)
    if "((" in text:
        # Bash takes two brackets for two subshells when they do not close together.
        follower.follow(TWO_BRACKETS.sub("( ", text))
    for words in salvage(text):
        follower.call(Invocation(words, scene=broken.scope.scene()))
    for finding in guess.findings:
        if finding.verdict == "dangerous":
            broken.report.add(finding)
