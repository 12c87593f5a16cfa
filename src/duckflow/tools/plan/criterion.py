"""Finds the files, texts in files, and commands that the success criterion of a step names. Each of them needs a result
that proves it."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from duckflow.i18n.words import begins, fullmatch, search
from duckflow.state.plan import Plan
from duckflow.tools.shell.calls import called
from duckflow.tools.shell.checkers import recognised

ENDINGS = (
    r"(?:py|md|txt|json|toml|ya?ml|cfg|ini|csv|html?|css|[jt]sx?|go|rs|java|kt|c|h|cpp|cs|rb|php|swift|sh|sql|lock|ipynb"
    r"|rst|xml|svg|vue|scss|proto|tf|lua|[mc]js|tsv|jsonl)"
)
"""Extensions by which a name with a dot is taken for a file; `Cart.remove` and `console.log` are not files."""
FILE = (
    r"(?<![A-Za-z0-9_/.-])(?![A-Z][a-z]+\.js\b)(?:[A-Za-z0-9_.-]+/)*\.?[A-Za-z0-9_-]+\.(?:[A-Za-z0-9_-]+\.)*"
    rf"{ENDINGS}(?![A-Za-z0-9])"
)
LISTED_FILE = r"(?:\./)?[\w.+@-]+(?:/[\w.+@-]+)*"
"""A path that a step may list as its file. Others may look like something else in a list of files."""
COMMAND = (
    r"(?<![A-Za-z0-9_.-])(?:python3? (?:-m [A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*|[A-Za-z0-9_./-]+\.py"
    r"|-c (?:\"[^\"\n]+\"|'[^'\n]+'))|pytest"
    r"|npm (?:run [a-z:-]+|test|ci|install)|go test|mypy|ruff check"
    r"|cargo (?:test|build|run|check|clippy)|make (?:test|check|build|lint|all)"
    r"|node [A-Za-z0-9_./-]+\.js)(?![A-Za-z0-9_])"
)
VERBS = r"(?:pass|exit|end|print|succeed|run|return|finish|work|report|show|fail|give|is|are|and|in|on|with|has|must)"
SHORT_OPTION = rf" -(?:[kmpcnoj] (?!{VERBS}(?:e?s)?\b)[A-Za-z0-9_./:-]*[A-Za-z0-9_/]|[A-Za-z]+\d*)(?![A-Za-z0-9_-])"
"""A pattern for a short option with its value, if it takes one. The word after any other option belongs to the
sentence."""
ARGUMENT = (
    r" --?[A-Za-z][A-Za-z-]*[ =](?:'[^'\n]+'|\"[^\"\n]+\")"
    rf"| (?!with|{VERBS}(?:e?s)?\b)[A-Za-z0-9_][A-Za-z0-9_./:-]*(?= --?[A-Za-z])"
    rf"|{SHORT_OPTION}| (?:--[a-z][A-Za-z0-9-]*(?:=[A-Za-z0-9_./:-]+)?|{FILE}"
    r"|(?=[A-Za-z0-9_./:-]*(?:[a-z0-9]_[a-z0-9]|::|[A-Za-z0-9_]{2}\.[a-z_]|/(?!or\b|fail\b)))[A-Za-z_.][A-Za-z0-9_./:-]*)"
    r"(?<![.:])(?![A-Za-z0-9_/:-]|\.[A-Za-z0-9_])(?! (?:exists?|contains?|is|are|has)\b)"
)
"""A pattern for an argument of a command, as opposed to a word of the sentence: an option (its value may be quoted), a
word before an option, a file, or a name with a sign such as `_` or `::` in it."""
QUOTED = (
    r"`(?P<code>[^`\n]+)`|「(?P<single>[^」\n]+)」|『(?P<double>[^』\n]+)』|\"(?P<plain>[^\"\n]+)\"|“(?P<curly>[^”\n]+)”"
    r"|(?<![A-Za-z0-9])'(?P<tick>[^'\n]+)'(?![A-Za-z0-9])"
)
PIECE = rf"{QUOTED}|(?P<command>{COMMAND}(?:{ARGUMENT})*)|(?P<file>{FILE})"
SENTENCE = r"(?:`[^`\n]*`|\"[^\"\n]*\"|(?<![A-Za-z0-9])'[^'\n]+'(?![A-Za-z0-9])|(?![。\n;；]|\.\s).)+"
"""A pattern for one sentence. A quoted part may contain the signs that end a sentence."""


class NamedThing(NamedTuple):
    """One thing that a criterion names, with the texts that must be in it: a file that exists or is gone, or a command
    that ended."""

    kind: Literal["file", "gone", "command"]
    name: str
    texts: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    code: str = "0"
    """The exit code that the command must have; `!0` means any but 0."""
    unchecked: tuple[str, ...] = ()
    """Statements in plain words about the thing's content, which nothing can check."""
    written: str = ""
    """The criterion's text from the beginning of the command on. It is kept because the end of a command without
    quotation marks is not always clear."""

    def as_run(self, command: str) -> "NamedThing":
        """Returns the thing with the command that was run as its name, if the criterion may mean this command: `pytest
        -q tests passes` may mean `pytest -q` or `pytest -q tests`."""
        call = re.split(r"\s*(?:\d>|[|&;<>\n])", command)[0]
        begins_so = call.startswith(f"{self.name} ") and self.written.startswith(call)
        ends_there = begins_so and not re.match(r"[./:=-]*\w", self.written[len(call) :])
        return self._replace(name=call) if ends_there else self

    def told(self) -> str:
        name_and_code = f"{self.name}: exit code {self.code}" if self.code != "0" else self.name
        texts = [f'"{text}"' for text in self.texts] + [f'no "{text}"' for text in self.absent]
        return f"{'no ' if self.kind == 'gone' else ''}{name_and_code}" + (f" ({', '.join(texts)})" if texts else "")


def named_in(success: str) -> tuple[NamedThing, ...]:
    """Returns the things that a success criterion names, each once. Words that may mean something else are left out."""
    things_by_key: dict[tuple[str, str], NamedThing] = {}
    for sentence in re.findall(SENTENCE, success):
        for thing in _sentence(sentence):
            # `pytest` and `python -m pytest` are the same command.
            thing_key = (thing.kind, " ".join(called(thing.name.split())) if thing.kind == "command" else thing.name)
            earlier_thing = things_by_key.get(thing_key)
            things_by_key[thing_key] = _joined(earlier_thing, thing) if earlier_thing else thing
    return tuple(things_by_key.values())


def with_checks(plan: Plan) -> Plan:
    """Adds to a draft the commands that its criteria name. The user's yes to the plan allows these commands, confined
    to the sandbox. Commands that may be dangerous, leave the folder or show secrets are left out: the user is asked
    when they are run. An approved plan is not changed, because the user said yes to what was shown."""
    if plan.status != "draft":
        return plan
    commands = [thing.name for step in plan.steps for thing in named_in(step.success) if thing.kind == "command"]
    return plan.model_copy(update={"checks": tuple(filter(_may_run, dict.fromkeys(commands)))})


def _may_run(command: str) -> bool:
    from duckflow.safety.commands.judge import judge_command
    from duckflow.safety.risk import NOT_FULLY_READ, REVEALING

    judgement = judge_command(command)
    needs_a_closer_look = any(reason.key in NOT_FULLY_READ | REVEALING for reason in judgement.reasons)
    return judgement.verdict == "ask" and not judgement.leaves and not needs_a_closer_look


def changed_files(plan: Plan) -> list[str]:
    """Returns the files in the work folder that the plan's steps list as theirs, or that their criteria demand to be
    there or to hold something, by their paths. A file is left out if a sentence of the plan says that it stays as it
    is."""
    listed_paths, kept_names = list[str](), _kept_names((plan.name, plan.goal, *plan.risks))
    for step in plan.steps:
        paths = [path for path in step.files if re.fullmatch(LISTED_FILE, path)]
        listed_paths += paths
        texts, own_names = (step.name, step.description, step.success), {posixpath.basename(path) for path in paths}
        # What a step says of a file that it lists as its own is mostly how the file changes.
        own_clauses = [clause for text in texts for clause in re.split(CLAUSE_END, text)]
        kept_names |= (_kept_names(texts) - own_names) | (_kept_names(own_clauses) & own_names)
    paths = [path for step in plan.steps for text in re.findall(SENTENCE, step.success) for path in _changed(text)]
    inside = [path for path in map(posixpath.normpath, [*listed_paths, *paths]) if not path.startswith(("/", "../"))]
    return [path for path in dict.fromkeys(inside) if posixpath.basename(path) not in kept_names]


CLAUSE_END = r"[;,()、。]|:\s|\.\s"
"""Matches the end of a clause. A full stop in the name of a file is none."""


def _kept_names(texts: Iterable[str]) -> set[str]:
    """Returns the names of the files of which a sentence says that they stay as they are."""
    sentences = [sentence for text in texts for sentence in re.findall(SENTENCE, text)]
    return {posixpath.basename(name) for text in filter(_keeps, sentences) for name in re.findall(FILE, text)}


def _keeps(sentence: str) -> bool:
    return bool(search("criteria.kept", sentence) or search("requests.forbids", sentence))


def _changed(sentence: str) -> Iterator[str]:
    """Yields the files of which a sentence demands something that a change of the file brings about. A command may only
    read or run the files beside it, so of those only a text or their being there counts."""
    named_things = list(_sentence(sentence))
    beside_command = any(thing.kind == "command" for thing in named_things)
    for thing in named_things:
        parts_around = re.split(rf"(?a)(?<![\w./-]){re.escape(thing.name)}(?![\w/-])", sentence)
        marked_sentence = "<this>".join(re.sub(FILE, "<file>", part) for part in parts_around)
        demands_content = thing.texts or thing.absent or (thing.unchecked and not beside_command)
        if thing.kind == "file" and (demands_content or search("criteria.there", marked_sentence)):
            yield thing.name


class Piece(NamedTuple):
    kind: Literal["file", "command", "text"]
    text: str
    before: str
    """The text between the previous piece and this one."""
    after: str


def _sentence(sentence: str) -> Iterator[NamedThing]:
    pieces = list(_pieces(sentence))
    subjects = [number for number, piece in enumerate(pieces) if piece.kind != "text"]
    texts = {number: list[Piece]() for number in subjects}
    for number, piece in enumerate(pieces):
        if piece.kind == "text" and subjects and (subject_number := _subject(pieces, subjects, number)) is not None:
            texts[subject_number].append(piece)
    wants_absence = search("criteria.gone", sentence) is not None and not any(texts.values())
    for number in subjects:
        piece = pieces[number]
        if piece.kind == "command":
            code = _code(sentence if len(subjects) == 1 else piece.after)
            thing = _wanted("command", piece, texts[number], code)._replace(written=piece.text + piece.after)
            yield _with_prose(thing, piece, texts[number])
        elif not wants_absence:
            yield _with_prose(_wanted("file", piece, texts[number]), piece, texts[number])
        elif search("criteria.surely_gone", re.sub(FILE, "<file>", sentence)):
            yield NamedThing("gone", piece.text)


def _pieces(sentence: str) -> Iterator[Piece]:
    pieces = list(re.finditer(PIECE, sentence))
    for number, match in enumerate(pieces):
        text_before = sentence[pieces[number - 1].end() if number else 0 : match.start()]
        text_after = sentence[match.end() : pieces[number + 1].start() if number + 1 < len(pieces) else None]
        kind, text = match.lastgroup, match[match.lastgroup or 0].strip()
        if number and re.fullmatch(FILE, text) and fullmatch("criteria.names_next", text_before):
            yield Piece("text", text, text_before, text_after)
        elif kind == "file" or re.fullmatch(FILE, text):
            yield Piece("file", text, text_before, text_after)
        elif (
            kind == "command"
            or _is_command(match, text, text_before, text_after)
            or (len(pieces) == 1 and not text_before.strip() and _reads_something(match["code"] or "", text_after))
        ):
            yield Piece("command", text, text_before, text_after)
        elif _around("criteria.printed", text_before, text_after) or not (
            len(text) == 1 or _around("criteria.result", text_before, text_after)
        ):
            yield Piece("text", text, text_before, text_after)


def _around(name: str, before: str, after: str) -> bool:
    """Says whether the word pattern called `name` fits the words right before or right after a piece."""
    return bool(search(f"{name}_before", before) or begins(f"{name}_after", after))


def _is_command(match: re.Match[str], text: str, before: str, after: str) -> bool:
    """Says whether a quotation is a command to run: a known command, or something that begins like a program's name
    where the words around it say so."""
    if _around("criteria.written", before, after) and not begins("criteria.run_after", after):
        return False
    if re.match(COMMAND, text) or re.match(COMMAND, " ".join(called(text.split()))):
        return True
    if not match["code"] or not re.match(r"[./\w-]+(?:\s|$)", match["code"]):
        return False
    return _around("criteria.run", before, after)


def _reads_something(code: str, after: str) -> bool:
    """Says whether code is a whole call of a program that only reads, with options or files (`grep -n x a.md`), and the
    words after it do not say that it should find nothing."""
    from duckflow.safety.commands.reader_programs import GIT_READERS, READERS

    words = code.split()
    has_options_or_files = any(word.startswith("-") or re.fullmatch(FILE, word) for word in words[1:])
    is_reader = has_options_or_files and (words[0] in READERS or " ".join(words[:2]) in GIT_READERS)
    finds_nothing = search("checks.not_before", after) or search("criteria.gone", after)
    return is_reader and not finds_nothing and not begins("criteria.absent_after", after)


def _subject(pieces: list[Piece], subjects: list[int], number: int) -> int | None:
    """Returns the index of the piece (a named file or command) in which a text should occur: the one named before the
    text, or the one after it if the words say so, or if there is none before."""
    later_subject = next((index for index in subjects if index > number), None)
    earlier_subject = next((index for index in reversed(subjects) if index < number), None)
    said_next = later_subject == number + 1 and begins("criteria.in_the_next", pieces[number].after) is not None
    return later_subject if earlier_subject is None or said_next else earlier_subject


def _wanted(kind: Literal["file", "command"], subject: Piece, texts: list[Piece], code: str = "0") -> NamedThing:
    absent_texts = [piece.text for piece in texts if _around("criteria.absent", piece.before, piece.after)]
    present_texts = [piece.text for piece in texts if piece.text not in absent_texts]
    if kind == "command" and (number := begins("criteria.prints", subject.after)):
        present_texts.append(number[1])
    return NamedThing(kind, subject.text, tuple(present_texts), tuple(absent_texts), code)


def _with_prose(thing: NamedThing, subject: Piece, texts: list[Piece]) -> NamedThing:
    """Adds what the words after a file or command say about its content. A word that is marked as one (`the word ok`)
    becomes a text to look for; another statement is noted as unchecked. A known check stays as it is, because its
    report says enough."""
    if thing.kind == "command" and recognised(thing.name):
        return thing
    words = [word for piece in (subject, *texts) for word in _words_in(piece.after)]
    prose = search(f"criteria.{'printed' if thing.kind == 'command' else 'content'}_prose", subject.after)
    statement = next((text for text in prose.groups() if text), "").strip(" ,.:、。`\"'") if prose else ""
    unchecked_statements = (statement,) if statement and not (words or thing.texts or thing.absent) else ()
    return thing._replace(texts=tuple(dict.fromkeys((*thing.texts, *words))), unchecked=unchecked_statements)


def _words_in(text: str) -> Iterator[str]:
    while match := search("criteria.word", text):
        yield next(word for word in match.groups() if word).rstrip(".,")
        text = text[match.end() :]


def _code(text: str) -> str:
    if match := search("criteria.exit_code", text):
        return next(number for number in match.groups() if number)
    return "!0" if search("criteria.fails", text) else "0"


def _joined(first: NamedThing, other: NamedThing) -> NamedThing:
    texts, absent_texts = dict.fromkeys(first.texts + other.texts), dict.fromkeys(first.absent + other.absent)
    return first._replace(
        texts=tuple(texts),
        absent=tuple(absent_texts),
        code=other.code if first.code == "0" else first.code,
        unchecked=tuple(dict.fromkeys(first.unchecked + other.unchecked)),
    )
