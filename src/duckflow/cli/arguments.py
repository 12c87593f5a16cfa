"""The command line's grammar, explained in the user's language."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from duckflow.errors import UsageError
from duckflow.safety.mode import Mode
from duckflow.store.paths import Paths
from duckflow.ui.headless_options import DuckPolicy, OutputFormat
from duckflow.ui.i18n.words import LANGUAGES, Words

Options = argparse.Namespace
Command = Callable[[Options, Words, Paths], int]
SUBCOMMANDS = ("models", "doctor", "sessions", "audit", "prompt")
STEPS = ("PLANNING", "EXECUTION", "REVIEW", "AWAITING_APPROVAL")
PATTERNS = ("base_main", "base_main_specialized")


class _Parser(argparse.ArgumentParser):
    """Complains with a phrase instead of leaving."""

    def error(self, message: str) -> NoReturn:
        raise UsageError("usage.bad", reason=message)


def parse(argv: list[str], words: Words) -> Options:
    """Options with `command` set to the function that carries them out."""
    if argv and argv[0] in SUBCOMMANDS:
        return _subcommands(words).parse_args(argv)
    return _talk(words).parse_args(argv)


def _talk(words: Words) -> argparse.ArgumentParser:
    from duckflow.cli.prompt_first import start

    parser = _Parser(prog="duckflow", description=words("cli.about"), epilog=words("cli.epilog"))
    add = parser.add_argument
    add("message", nargs="?", default="", help=words("cli.message"))
    add("-p", "--print", dest="prompt", metavar="PROMPT", help=words("cli.print"))
    add("--output-format", choices=list(OutputFormat), default=OutputFormat.TEXT, help=words("cli.output_format"))
    add("-m", "--model", help=words("cli.model"))
    add("-c", "--continue", dest="resume_last", action="store_true", help=words("cli.continue"))
    add("-r", "--resume", nargs="?", const="", metavar="SESSION", help=words("cli.resume"))
    add("--fork", action="store_true", help=words("cli.fork"))
    add("--mode", choices=list(Mode), help=words("cli.mode"))
    add("--max-loops", type=_positive(int), help=words("cli.max_loops"))
    add("--on-duck-call", type=_policy, default=DuckPolicy(), metavar="POLICY", help=words("cli.duck"))
    add("--max-budget-usd", type=_positive(float), help=words("cli.max_budget"))
    _common(parser, words, start)
    return parser


def _subcommands(words: Words) -> argparse.ArgumentParser:
    from duckflow.cli.audit import show_audit
    from duckflow.cli.doctor import doctor
    from duckflow.cli.models import models
    from duckflow.cli.session_list import list_sessions

    parser = _Parser(prog="duckflow")
    commands = parser.add_subparsers(parser_class=_Parser)
    one = commands.add_parser("models", help=words("cli.models"), description=words("cli.models"))
    one.add_argument("what", choices=["pull", "list", "rm"], nargs="?", default="list", help=words("cli.models_what"))
    one.add_argument("name", nargs="?", default="", help=words("cli.models_name"))
    one.add_argument("--if-missing", action="store_true", help=words("cli.models_if_missing"))
    one.add_argument("--from", dest="source", default="", metavar="FILE", help=words("cli.models_from"))
    _common(one, words, models)
    one = commands.add_parser("doctor", help=words("cli.doctor"), description=words("cli.doctor"))
    one.add_argument("-m", "--model", help=words("cli.model"))
    _common(one, words, doctor)
    one = commands.add_parser("sessions", help=words("cli.sessions"), description=words("cli.sessions"))
    _common(one, words, list_sessions)
    one = commands.add_parser("audit", help=words("cli.audit"), description=words("cli.audit"))
    one.add_argument("session", nargs="?", default="", help=words("cli.audit_session"))
    one.add_argument("--json", action="store_true", help=words("cli.audit_json"))
    _common(one, words, show_audit)
    one = commands.add_parser("prompt", help=words("cli.prompt"), description=words("cli.prompt"))
    one.add_argument("message", nargs="?", default="", help=words("cli.prompt_message"))
    one.add_argument("--step", choices=STEPS, default=STEPS[0], help=words("cli.prompt_step"))
    one.add_argument("--pattern", choices=PATTERNS, default=PATTERNS[0], help=words("cli.prompt_pattern"))
    one.add_argument("--profile", choices=["full", "compact"], help=words("cli.prompt_profile"))
    one.add_argument("-m", "--model", help=words("cli.model"))
    one.add_argument("--json", action="store_true", help=words("cli.prompt_json"))
    _common(one, words, _show_prompt)
    return parser


def _show_prompt(options: Options, words: Words, paths: Paths) -> int:
    from duckflow.cli.prompt import show_prompt

    return show_prompt(options, words, paths)


def _common(parser: argparse.ArgumentParser, words: Words, command: Command) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, help=words("cli.lang"))
    parser.set_defaults(command=command)


def _policy(text: str) -> DuckPolicy:
    name, colon, times = text.partition(":")
    if name not in ("stop", "continue", "replan") or (colon and not times.isdecimal()):
        raise argparse.ArgumentTypeError(text)
    return DuckPolicy(name, int(times) if colon else 1)


def _positive(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(text)
        return value

    return convert
