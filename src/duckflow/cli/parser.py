"""The parser of the command line: reads its arguments, and writes its help."""

import argparse
import re
from collections.abc import Container, Iterable
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.ui.streams import print_out


def wrap(text: str, width: int) -> list[str]:
    """Splits a text into lines of at most `width` columns."""
    from duckflow.i18n.width import line_ends

    text = " ".join(text.split())
    cut_offsets = [0, *line_ends(text, width), len(text)]
    return [text[start:end].strip() for start, end in pairwise(cut_offsets)]


def make_formatter(words: Words) -> type[argparse.HelpFormatter]:
    """Returns a formatter that writes help in the language of `words`."""

    class HelpText(argparse.HelpFormatter):
        def add_usage(
            self,
            usage: str | None,
            actions: Iterable[argparse.Action],
            groups: Iterable[Any],
            prefix: str | None = None,
        ) -> None:
            super().add_usage(usage, actions, groups, prefix or words("cli.usage"))

        def _split_lines(self, text: str, width: int) -> list[str]:
            return wrap(text, width)

        def _fill_text(self, text: str, width: int, indent: str) -> str:
            return "\n".join(indent + line for part in text.split("\n") for line in wrap(part, width))

    return HelpText


Options = argparse.Namespace
COMPLAINTS = (
    (r"argument [^-:]+: invalid choice: (?P<value>.+?) \(choose from (?P<known>.+)\)", "usage.word"),
    (r"argument (?P<option>.+?): expected .*argument", "usage.value_missing"),
    (
        r"argument (?P<option>.+?): invalid choice: (?P<value>.+?) \(choose from (?P<known>.+)\)",
        "usage.choice",
    ),
    (r"argument (?P<option>.+?): invalid \S+ value: (?P<value>.+)", "usage.value"),
    (r"argument (?P<option>.+?): ignored explicit argument (?P<value>.+)", "usage.no_value"),
    (r"argument (?P<option>[^:]+?): (?P<value>.*)", "usage.value"),
    (r"the following arguments are required: (?P<names>.+)", "usage.required"),
    (r"ambiguous option: (?P<option>\S+) could match (?P<known>.+)", "usage.ambiguous"),
)


class Flag(NamedTuple):
    """One option or argument, as a shell's completion needs it."""

    names: tuple[str, ...]
    """The option's names, such as `-m` and `--model`; empty for a positional argument."""
    help: str
    takes: str
    """The kind of the option's value, such as `MODEL`; empty for an option without a value."""
    choices: tuple[str, ...] = ()


class Parser(argparse.ArgumentParser):
    """The grammar of `duckflow`, or of one of its commands."""

    def __init__(self, words: Words, name: str = "", about: str = "", epilog: str = "") -> None:
        prog = f"duckflow {name}".strip()
        super().__init__(
            prog=prog, description=about, epilog=epilog, formatter_class=make_formatter(words), add_help=False
        )
        self._refused: list[argparse.Action] = []
        self._positionals.title = words("cli.arguments")
        self._optionals.title = words("cli.options")
        self.add_argument("-h", "--help", action="help", help=words("cli.help"))

    def read(self, argv: list[str]) -> Options:
        """Returns the options, or raises a UsageError that says what was probably meant."""
        options, strange_words = self.parse_known_args(argv)
        if strange_words:
            # This method also accepts words after flags, but it is slower and its errors cannot say how the command is
            # used.
            options, strange_words = self.parse_known_intermixed_args(argv)
        if not strange_words:
            self._require_own(options)
            return options
        unknown_option = next((word for word in strange_words if word.startswith("-")), "")
        if not unknown_option:
            raise UsageError("usage.too_many", words=" ".join(strange_words), prog=self.prog, all=" ".join(argv))
        import difflib

        name = unknown_option.partition("=")[0]
        near_options = difflib.get_close_matches(name, self._option_string_actions, n=2)
        if near_options:
            raise UsageError("usage.near_option", option=name, near=" / ".join(near_options), prog=self.prog)
        raise UsageError("usage.unknown_option", option=name, prog=self.prog)

    def narrow(self, part: str, names: Container[str], **helps: str) -> None:
        """Makes this the parser of one part of a command: options other than `names` are refused, and left out of its
        help. `helps` holds help texts that differ for this part."""
        self.prog = f"{self.prog} {part}"
        for action in self._actions:
            action.help = helps.get(action.dest, action.help) if action.dest in names else argparse.SUPPRESS
        self._refused = [action for action in self._actions if action.dest not in names and action.option_strings]

    def _require_own(self, options: Options) -> None:
        for action in self._refused:
            if getattr(options, action.dest) != action.default:
                raise UsageError("usage.unknown_option", option=action.option_strings[-1], prog=self.prog)

    def flags(self) -> list[Flag]:
        return [_as_flag(action) for action in self._actions]

    def print_help(self, file: Any = None) -> None:
        """Prints the help. Unlike argparse, it raises an error if nothing could be written."""
        print_out(self.format_help().rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        for pattern, key in COMPLAINTS:
            if match := re.fullmatch(pattern, message):
                values = {name: text.strip("'\"") for name, text in match.groupdict().items()}
                values |= {"known": values["known"].replace("'", "")} if "known" in values else {}
                raise UsageError(key, prog=self.prog, **values)
        raise UsageError("usage.bad", reason=message, prog=self.prog)


def _as_flag(action: argparse.Action) -> Flag:
    choices: Any = action.choices or ()
    value_name = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    return Flag(tuple(action.option_strings), action.help or "", value_name, tuple(map(str, choices)))
