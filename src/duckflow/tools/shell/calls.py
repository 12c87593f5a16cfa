"""Splits command lines into calls of programs, and finds the call that decides how a command line ends."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from duckflow.safety.environment import HARMLESS_VARIABLE

OPERATORS = ";&|()\n"
REDIRECTED = r"\s\d?>&\d|\s(?:\d|&)?>{1,2}\s*[^\s;&|]+"
RUNNERS = (
    r"(?:\w+=\S*|env|time|nice|timeout(?: -\S+)* \S+|(?:uv|poetry|pipenv) run|npx|(?:\S*/)?python3?(?: -[BPu])* -m) "
)
"""A pattern for the words that come before a program and run it, such as `uv run`."""
LOOKS = (
    *("true", "pwd", "ls", "cat", "head", "tail", "less", "more", "grep", "rg", "find", "wc", "stat", "file", "echo"),
    *(":", "printf", "git", "sed", "awk", "diff", "tree", "which", "sleep", "date"),
)
"""Programs that only look at something."""
ONLY_SHOWS = ("tail", "tee", "cat")
"""Programs that pass on all of the output and leave the exit code as it is. `head` is missing, because it ends the
program before it."""
AFTERWARDS = ("ls", "cat", "pwd", "echo", "wc")
"""Programs that may follow a successful call: they change nothing by themselves."""
WRITES = r"(?<!2)>(?!&)"
CHANGES_THE_SHELL = frozenset(
    (
        *("trap", "alias", "unalias", "eval", "source", ".", "exec", "function", "unset", "shopt", "enable", "hash"),
        *("builtin", "command", "declare", "local", "readonly", "typeset", "return", "exit", "if", "for", "while"),
        *("until", "case", "select", "coproc", "!", "[[", "time", "set", "export", "let", "then", "else", "do"),
        *("pushd", "popd", "read", "mapfile", "readarray", "getopts", "ulimit", "umask"),
    )
)
"""Words after which a name may mean another program, or the exit code may mean something else."""
STRICT = r"-\w*e\w*(?: pipefail)?(?: -\w*e\w*)?"
HARMLESS_NAME = rf"{HARMLESS_VARIABLE}|PYTHONPATH|DJANGO_SETTINGS_MODULE|DATABASE_URL"
"""A pattern for variables that do not change what the program does."""
NOT_PLAIN = r"[`{}]|\$\(|<\(|<<|[()]"
TEXTS = r"'[^']*'|\"[^\"]*\""
ESCAPED = r"\\[\"']"
AFTER_CALL = r"[#<>|;&\n\\]"
TARGETS = r">{1,2}\s*([^\s;&|>]+)|\btee\s+([^;&|]+)"
KEEPS_OUTPUT = r"(?:\S*/)?[^./]+(?:\.(?:log|txt|out))?"
"""A pattern for a file that only keeps the output. Writing to any other file would change what the checks look at."""
SETS_NAME = r"(\w+)="
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
WRAPPERS = (("env",), ("nice",), ("uv", "run"), ("poetry", "run"), ("pipenv", "run"))
"""Words before a program that do not change how the program runs."""
PYTHON = re.compile(r"python3?")
QUIET_OPTIONS = ("-u", "-B")
"""Options of Python that do not change what a program does."""


def parts_of(command: str) -> list[tuple[str, list[str]]]:
    """Returns the commands of a line, each with the operator before it; an empty list if the line cannot be read."""
    import shlex

    lexer = shlex.shlex(re.sub(REDIRECTED, " ", command), posix=True, punctuation_chars=OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, "#"
    signed_calls: list[tuple[str, list[str]]] = [("", [])]
    try:
        for token in lexer:
            if token and set(token) <= set(OPERATORS):
                signed_calls.append((token.strip("\n") or ";", []))
            else:
                signed_calls[-1][1].append(token)
    except ValueError:
        return []
    return [(sign, words) for sign, words in signed_calls if words]


def called(words: Sequence[str]) -> list[str]:
    """Returns the words of a command without the words that merely start it."""
    text = " ".join(words)
    while (bare_text := re.sub(rf"^{RUNNERS}", "", text)) != text:
        text = bare_text
    program, *arguments = text.split() or [""]
    name = program.rpartition("/")[2]
    name = "python" if name == "python3" else "pytest" if name == "py.test" else name
    return [name, *(word.removeprefix("./").rstrip("/") for word in arguments)] if program else []


class PlainCall(NamedTuple):
    """One program that a command runs: its folder, its arguments, and the variables set for it."""

    folder: str
    words: tuple[str, ...]
    variables: frozenset[str]

    def is_run_of(self, wanted: "PlainCall") -> bool:
        """Says whether this is the wanted call itself: the same program and arguments, in the same folder. Only
        variables that do not change what runs may differ."""
        differing_names = (name.partition("=")[0] for name in self.variables ^ wanted.variables)
        is_same_call = self.folder == wanted.folder and self.words == wanted.words
        return is_same_call and all(re.fullmatch(HARMLESS_VARIABLE, name) for name in differing_names)


def plain_calls(command: str) -> list[PlainCall]:
    """Returns the calls of a command up to the one that decides how the command ends. If that call succeeds, all calls
    before it have succeeded too. Returns an empty list if it is not certain which call decides."""
    calls, folder, exported_variables = list[PlainCall](), "", set[str]()
    for _, (first_word, *arguments) in _deciding_chain(command):
        if first_word == "cd":
            folder = posixpath.normpath(posixpath.join(folder, *arguments))
        elif first_word == "export":
            exported_variables.update(arguments)
        elif first_word != "set":
            variables, words = _unwrapped([first_word, *arguments])
            calls.append(
                PlainCall("" if folder == "." else folder, words, frozenset((*exported_variables, *variables)))
            )
    return calls


def _unwrapped(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Returns the variables that are set for a call, and the words of the call itself. Different spellings of the same
    call, such as `python3 -u` and `python`, become one."""
    variables = list[str]()
    while words:
        wrapper = next((names for names in WRAPPERS if tuple(words[: len(names)]) == names), ())
        if re.match(SETS_NAME, words[0]):
            variables.append(words[0])
        elif not wrapper:
            break
        words = words[len(wrapper) or 1 :]
    if words and PYTHON.fullmatch(words[0]):
        words = ["python", *words[1:]]
        while words[1:2] and words[1] in QUIET_OPTIONS:
            del words[1]
    return variables, tuple(word.removeprefix("./").rstrip("/") or word for word in words)


def deciding_call(command: str) -> list[str]:
    """Returns the call that decides how the whole command ends, such as `pytest` in `cd app && pytest`. Returns an
    empty list if no call certainly does."""
    chain = _deciding_chain(command)
    return called(chain[-1][1]) if chain else []


def _deciding_chain(command: str) -> list[tuple[str, list[str]]]:
    """Returns the parts of a command up to the call that decides how the whole command ends, such as `pytest` in `cd
    app && pytest`. Returns an empty list if no call certainly does.

    Other programs may come before that call, as long as each must succeed and none changes what names mean. After it
    may come only programs that show its output, or look at something."""
    bare_command = _without_texts(command)
    if re.search(NOT_PLAIN, bare_command) or not all(
        re.fullmatch(KEEPS_OUTPUT, path) for path in written_to(bare_command)
    ):
        return []
    chain = parts_of(command)
    while chain and chain[-1][0] == "|" and chain[-1][1][0] in ONLY_SHOWS:
        chain.pop()
    while (
        len(chain) > 1
        and chain[-1][0] == "&&"
        and chain[-1][1][0] in AFTERWARDS
        and not re.search(WRITES, bare_command)
    ):
        chain.pop()
    if not chain:
        return []
    *earlier_parts, (sign, words) = chain
    stops_on_failure = (
        bool(earlier_parts)
        and earlier_parts[0][1][0] == "set"
        and bool(re.fullmatch(STRICT, " ".join(earlier_parts[0][1][1:])))
    )
    operators = [sign, *(earlier_sign for earlier_sign, _ in earlier_parts)]
    if not all(operator in ("", "&&") or (stops_on_failure and operator == ";") for operator in operators):
        return []
    if not all(
        map(_keeps_meaning, earlier_parts[1:] if stops_on_failure else earlier_parts)
    ) or not _sets_only_harmless(words):
        return []
    call = called(words)
    return [] if not call or call[0] in CHANGES_THE_SHELL else chain


def calls_in(command: str, depth: int = 2) -> Iterator[list[str]]:
    """Yields every call of a command, also those in brackets and in a text that a shell is given to run."""
    for _, words in parts_of(command):
        while words and words[0] in {"{", *CHANGES_THE_SHELL}:
            words = words[1:]
        call = called(words)
        if call and call[0] in SHELLS and depth:
            for text in words[1:]:
                yield from calls_in(text, depth - 1)
        elif call:
            yield call


def calls_piped_into(last: str, command: str) -> Iterator[list[str]]:
    """Yields the calls of a command that pipe their output into the call `last`: for `tail -5` in `pytest | tail -5` it
    is the call of pytest."""
    last_words, piped = [words for _, words in parts_of(last)], list[list[str]]()
    for operator, words in parts_of(command):
        piped = [*piped, words] if operator == "|" else [words]
        if piped[1:] and [words] == last_words:
            yield from map(called, piped[:-1])


def _without_texts(command: str) -> str:
    """Returns the command without quoted texts, except for parts that a shell would still run. If a quotation mark may
    be escaped, everything stays."""
    if re.search(ESCAPED, command):
        return command
    return re.sub(TEXTS, lambda text: "".join(re.findall(r"`|\$\(", text[0])) if text[0][0] == '"' else "", command)


def runs_alone(command: str) -> bool:
    """Says whether only the call that decides how the command ends can have failed, and no call before it."""
    *earlier_calls, _ = [words for operator, words in parts_of(command) if operator != "|"] or [[""]]
    return all(words[0] in ("cd", "export", "set") for words in earlier_calls)


def written_to(command: str) -> list[str]:
    """Returns the files that the output of a command goes to."""
    redirected_paths = [path for path, _ in re.findall(TARGETS, command) if path]
    copied_paths = [
        word for _, words in re.findall(TARGETS, command) for word in words.split() if not word.startswith("-")
    ]
    return [path.strip("'\"") for path in (*redirected_paths, *copied_paths)]


def folder_of(command: str) -> str:
    """Returns the folder that a command changes to before the call that decides its exit code; empty if it changes to
    none."""
    folder = posixpath.join("", *(words[1] for _, words in parts_of(command)[:-1] if words[0] == "cd" and words[1:]))
    return "" if posixpath.normpath(folder) == "." else posixpath.normpath(folder)


def ends_with_call(command: str) -> bool:
    """Says whether options that are appended to the command reach the call that decides its exit code."""
    return not re.search(AFTER_CALL, command.strip().rpartition("&&")[2])


def _keeps_meaning(part: tuple[str, list[str]]) -> bool:
    first_word, *arguments = part[1]
    if first_word == "cd":
        return len(arguments) == 1 and not arguments[0].startswith(("/", "~", "$", "..", "-"))
    if first_word == "export":
        return all("=" in word for word in arguments) and _sets_only_harmless([*arguments, "x"])
    # The variable that `printf -v` sets may be PATH.
    sets_name = re.match(SETS_NAME, first_word) or (
        first_word == "printf" and arguments[:1] and arguments[0].startswith("-v")
    )
    return first_word not in CHANGES_THE_SHELL and not sets_name


def _sets_only_harmless(words: Sequence[str]) -> bool:
    names = [match[1] for word in words[:-1] if (match := re.match(SETS_NAME, word))]
    return all(re.fullmatch(HARMLESS_NAME, name) for name in names)


def tries_out(command: str) -> bool:
    """Says whether the command does more than show the present state of files."""
    return any((called(words) or [""])[0] not in LOOKS for _, words in parts_of(command))
