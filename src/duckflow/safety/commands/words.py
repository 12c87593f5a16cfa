"""The parts of a shell text: words, calls of programs, and the options among their words."""

import posixpath
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

VERSIONED = re.compile(r"^(python|pip|perl|ruby|node|php|lua|bash|gcc|clang|java)[-.\d]+$")
ECHO_OPTION = re.compile(r"^-[neE]+$")


def names(text: str) -> frozenset[str]:
    """Splits a text into a set of names. A table is easier to read and to edit as one text."""
    return frozenset(text.split())


def program_name(word: str) -> str:
    """Returns the program's name without its folder and version, in lower case: on some disks `RM` is `rm`."""
    name = posixpath.basename(word.rstrip("/")).lower().removesuffix(".exe").removesuffix(".jar")
    version_match = VERSIONED.match(name)
    return version_match[1] if version_match else name


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a shell text. `known` is True if bash passes on exactly this text. `literal` is True if every shell
    does, and the word has no tricky signs such as a backslash."""

    text: str
    known: bool = True
    literal: bool = True
    inside: tuple["Call", ...] = ()
    """Calls of programs whose output becomes a part of the word."""


UNKNOWN = Word("…", known=False, literal=False)
"""Stands for a word that exists only at run time, such as one that xargs adds."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection: `>`, `>>`, `<` and the like. `target` is a file, or a number for another stream."""

    operator: str
    target: Word

    @property
    def joins_streams(self) -> bool:
        return self.operator.endswith("&") and (self.target.text.isdigit() or self.target.text == "-")

    @property
    def writes(self) -> bool:
        return ">" in self.operator and not self.joins_streams


@dataclass(frozen=True)
class Call:
    """One call of a program: its words, its assignments and redirections, and its input."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    fed: str | None = None
    """The text of a here-document or here-string that the program gets as input."""
    piped: tuple["Call", ...] = ()
    """The calls that come before this one in the same pipeline."""

    @cached_property
    def program(self) -> str:
        return program_name(self.words[0].text) if self.words else ""

    @cached_property
    def arguments(self) -> tuple[Word, ...]:
        return self.words[1:]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])

    @cached_property
    def plain_words(self) -> tuple[str, ...]:
        """Returns the arguments that are no options. Subcommands come first among them."""
        return tuple(text for text in self.texts if not text.startswith("-"))

    @cached_property
    def input_text(self) -> str | None:
        """Returns the program's input where the shell text itself contains it: a here-document, or `echo` before the
        pipe."""
        if self.fed is not None or not self.piped:
            return self.fed
        piped_call = self.piped[-1]
        if piped_call.program == "cat" and not piped_call.arguments:
            return piped_call.input_text
        if piped_call.program in ("echo", "printf"):
            return " ".join(text for text in piped_call.texts if not ECHO_OPTION.match(text))
        return None

    def running(self, words: tuple[Word, ...]) -> "Call":
        """Returns the call that this wrapper (such as `sudo`) runs: these words, with the same input."""
        return replace(self, words=words, assignments=(), redirects=())


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a call. `given` lists them one by one (`-rf` is `-r`, `-f`), each with its value, if it has
    one."""

    given: tuple[tuple[str, Word | None], ...]
    operands: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        return any(_means(option, name) for option, _ in self.given for name in names)

    def values(self, *names: str) -> list[Word]:
        return [value for option, value in self.given if value and any(_means(option, name) for name in names)]


def _means(option: str, name: str) -> bool:
    """Says whether an option means this name. Long options may be shortened: `--forc` is `--force`."""
    return option == name or (len(option) >= 3 and option.startswith("--") and name.startswith(option))


def read_options(words: Iterable[Word], with_value: str = "", long_with_value: Iterable[str] = ()) -> Options:
    """Reads options from words. `with_value` holds the letters of short options that take a value, attached or as the
    next word."""
    options, operands = list[tuple[str, Word | None]](), list[Word]()
    words_left, long_names = list(words)[::-1], frozenset(long_with_value)
    while words_left:
        word = words_left.pop()
        text = word.text
        if text == "--":
            operands.extend(reversed(words_left))
            break
        if not text.startswith("-") or text == "-":
            operands.append(word)
        elif text.startswith("--"):
            name, equals_sign, option_value = text.partition("=")
            attached_word = replace(word, text=option_value) if equals_sign else None
            options.append((name, attached_word or (words_left.pop() if name in long_names and words_left else None)))
        else:
            index = next((index for index, letter in enumerate(text) if index and letter in with_value), len(text))
            options.extend((f"-{letter}", None) for letter in text[1:index])
            if index < len(text):
                attached_value = replace(word, text=text[index + 1 :])
                options.append(
                    (
                        f"-{text[index]}",
                        attached_value if attached_value.text else words_left.pop() if words_left else None,
                    )
                )
    return Options(tuple(options), tuple(operands))


def joined(words: Iterable[Word]) -> str:
    """Joins several words into one text, as `eval` does."""
    return " ".join(word.text for word in words)


TABLE = """
as_administrator | sudo doas pkexec gosu su-exec chroot nsenter unshare systemd-run runuser
unknown_program | time timeout gtimeout nohup setsid nice ionice chrt taskset stdbuf unbuffer chronic caffeinate command
  builtin exec coproc noglob nocorrect busybox toybox fakeroot rlwrap winpty torsocks proxychains proxychains4 env
  flock watch
on_another_machine | ssh mosh
runs_code | strace ltrace valgrind entr xvfb-run npx bunx uvx
runs_code | uv poetry pipenv pdm hatch rye conda mamba | run
runs_code | bundle pnpm yarn npm mise pixi direnv | exec dlx x run
runs_code | docker podman nerdctl docker-compose podman-compose | run exec
runs_code | java | -jar
at_run_time | xargs gxargs parallel
"""
"""Programs that run another one. A row: the doubt about it | programs | words of which one must come first, if any."""
NOT_A_PROGRAM = re.compile(r"^-|^[A-Za-z_]\w*=|^[\d.]+[smhd]?$|^$")


@dataclass(frozen=True, slots=True)
class Behind:
    """The command that a wrapper such as `sudo` runs. It begins at the first known program, or else at the first word
    that may be a program."""

    doubt: str
    words: tuple[Word, ...] = ()
    known: bool = False
    texts: tuple[str, ...] = ()
    """Words with spaces that come before the command. Each is a whole command line, as in `env -S 'ls -l'`."""


def _read_table() -> dict[str, tuple[str, list[str]]]:
    rows = dict[str, tuple[str, list[str]]]()
    for line in re.sub(r"\n +", " ", TABLE).strip().splitlines():
        doubt_key, programs, *first_words = line.split("|")
        rows.update((program, (doubt_key.strip(), " ".join(first_words).split())) for program in programs.split())
    return rows


WRAPPERS = _read_table()


def look_behind(call: Call, known: Container[str]) -> Behind | None:
    """Returns the command behind a wrapper, or None when the call is no wrapper. All words before a known program are
    skipped, whether they are options or values."""
    if call.program not in WRAPPERS or (call.program == "command" and call.texts[:1] in (("-v",), ("-V",))):
        return None
    doubt_key, first_words = WRAPPERS[call.program]
    words = call.arguments
    if first_words:
        index = next((index for index, text in enumerate(call.texts[:3]) if text in first_words), None)
        if index is None:
            return None
        words = words[index + 1 :]
    added_words = (UNKNOWN,) if doubt_key == "at_run_time" else ()
    guessed_words, texts = (), list[str]()
    for index, word in enumerate(words):
        if " " in word.text.strip():
            texts.append(word.text.removeprefix("-S").removeprefix("--split-string="))
        elif not NOT_A_PROGRAM.match(word.text):
            guessed_words = guessed_words or words[index:] + added_words
            if not word.text.isupper() and Call((word,)).program in known:
                return Behind(doubt_key, words[index:] + added_words, True, tuple(texts))
    return Behind(doubt_key, guessed_words, False, tuple(texts))
