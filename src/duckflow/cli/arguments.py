"""The command line's grammar, explained in the user's language."""

import argparse
from collections.abc import Callable
from typing import Any

from duckflow import __version__
from duckflow.cli.parser import Options, Parser
from duckflow.errors import UsageError
from duckflow.i18n.words import LANGUAGES, Words
from duckflow.safety.mode import Mode
from duckflow.store.paths import Paths
from duckflow.ui.headless_options import DuckPolicy, OutputFormat

Command = Callable[[Options, Words, Paths], int]
STEPS = ("PLANNING", "EXECUTION", "REVIEW", "AWAITING_APPROVAL")
PATTERNS = ("base_main", "base_main_specialized")
NEAR = 0.75


def parse(argv: list[str], words: Words) -> Options:
    """Options with `command` set to the function that carries them out."""
    first = argv[0] if argv else ""
    if first in GRAMMARS:
        return GRAMMARS[first](words).read(argv[1:])
    if first == "help":
        return talk_grammar(words).read(["--help"])
    if near := _nearest(first):
        raise UsageError("usage.near_command", word=first, near=near)
    return talk_grammar(words).read(argv)


def _nearest(word: str) -> str:
    """The command that one word at the beginning was probably meant to be."""
    if not word.isascii() or not word.isalpha():
        return ""
    import difflib

    near = difflib.get_close_matches(word, GRAMMARS, n=1, cutoff=NEAR)
    return near[0] if near else ""


def talk_grammar(words: Words) -> Parser:
    from duckflow.cli.prompt_first import start

    parser = Parser(words, about=words("cli.about"), epilog=words("cli.epilog", commands=", ".join(GRAMMARS)))
    add = parser.add_argument
    add("message", nargs="?", default="", metavar="MESSAGE", help=words("cli.message"))
    add("-p", "--print", dest="prompt", metavar="PROMPT", help=words("cli.print"))
    add("--output-format", choices=[*map(str, OutputFormat)], default="text", help=words("cli.output_format"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("-c", "--continue", dest="resume_last", action="store_true", help=words("cli.continue"))
    add("-r", "--resume", nargs="?", const="", metavar="SESSION", help=words("cli.resume"))
    add("--fork", action="store_true", help=words("cli.fork"))
    add("--mode", choices=[*map(str, Mode)], help=words("cli.mode"))
    add("--max-loops", type=_positive(int), metavar="N", help=words("cli.max_loops"))
    add("--on-duck-call", type=_policy, default=DuckPolicy(), metavar="POLICY", help=words("cli.duck"))
    add("--max-budget-usd", type=_positive(float), metavar="USD", help=words("cli.max_budget"))
    add("-V", "--version", action="version", version=f"duckflow {__version__}", help=words("cli.version"))
    return _common(parser, words, start)


def _models(words: Words) -> Parser:
    from duckflow.cli.models import models

    parser = Parser(words, "models", words("cli.models"))
    add = parser.add_argument
    add("what", choices=["pull", "list", "rm"], nargs="?", default="list", help=words("cli.models_what"))
    add("name", nargs="?", default="", metavar="WEIGHTS", help=words("cli.models_name"))
    add("--if-missing", action="store_true", help=words("cli.models_if_missing"))
    add("--from", dest="source", default="", metavar="FILE", help=words("cli.models_from"))
    return _common(parser, words, models)


def _doctor(words: Words) -> Parser:
    from duckflow.cli.doctor.command import doctor

    parser = Parser(words, "doctor", words("cli.doctor"))
    parser.add_argument("-m", "--model", metavar="MODEL", help=words("cli.model"))
    parser.add_argument("--json", action="store_true", help=words("cli.config_json"))
    return _common(parser, words, doctor)


def _sessions(words: Words) -> Parser:
    from duckflow.cli.session_list import sessions

    parser = Parser(words, "sessions", words("cli.sessions"))
    add = parser.add_argument
    add("what", choices=["list", "export", "rename", "rm"], nargs="?", default="list", help=words("cli.sessions_what"))
    add("session", nargs="?", default="", metavar="SESSION", help=words("cli.sessions_session"))
    add("rest", nargs="*", default=[], metavar="TITLE", help=words("cli.sessions_title"))
    add("--all", action="store_true", help=words("cli.sessions_all"))
    add("--yes", action="store_true", help=words("cli.sessions_yes"))
    add("--format", choices=["md", "html"], help=words("cli.sessions_format"))
    add("-o", "--output", default="", metavar="FILE", help=words("cli.sessions_output"))
    return _common(parser, words, sessions)


def _audit(words: Words) -> Parser:
    from duckflow.cli.audit import show_audit

    parser = Parser(words, "audit", words("cli.audit"))
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=words("cli.audit_session"))
    parser.add_argument("--json", action="store_true", help=words("cli.audit_json"))
    return _common(parser, words, show_audit)


def _demo(words: Words) -> Parser:
    from duckflow.cli.demo.command import demo

    return _common(Parser(words, "demo", words("cli.demo")), words, demo)


def _init(words: Words) -> Parser:
    from duckflow.cli.init.command import init

    parser = Parser(words, "init", words("cli.init"))
    add = parser.add_argument
    add("-y", "--yes", action="store_true", help=words("cli.init_yes"))
    add("--force", action="store_true", help=words("cli.init_force"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("--mode", choices=[*map(str, Mode)], help=words("cli.mode"))
    return _common(parser, words, init)


def _config(words: Words) -> Parser:
    from duckflow.cli.config import config

    parser = Parser(words, "config", words("cli.config"))
    add = parser.add_argument
    add("what", choices=["list", "get", "set", "unset"], nargs="?", default="list", help=words("cli.config_what"))
    add("name", nargs="?", default="", metavar="SETTING", help=words("cli.config_name"))
    add("value", nargs="?", metavar="VALUE", help=words("cli.config_value"))
    add("--user", action="store_true", help=words("cli.config_user"))
    add("--project", action="store_true", help=words("cli.config_project"))
    add("--changed", action="store_true", help=words("cli.config_changed"))
    add("--json", action="store_true", help=words("cli.config_json"))
    return _common(parser, words, config)


def _completion(words: Words) -> Parser:
    from duckflow.cli.completion.command import completion

    parser = Parser(words, "completion", words("cli.completion"), words("cli.completion_epilog"))
    parser.add_argument(
        "shell", choices=["bash", "zsh", "fish", "sessions", "models", "settings"], help=words("cli.shell")
    )
    return _common(parser, words, completion)


def _prompt(words: Words) -> Parser:
    from duckflow.cli.prompt import show_prompt

    parser = Parser(words, "prompt", words("cli.prompt"))
    add = parser.add_argument
    add("message", nargs="?", default="", metavar="MESSAGE", help=words("cli.prompt_message"))
    add("--step", choices=STEPS, default=STEPS[0], help=words("cli.prompt_step"))
    add("--pattern", choices=PATTERNS, default=PATTERNS[0], help=words("cli.prompt_pattern"))
    add("--profile", choices=["full", "compact"], help=words("cli.prompt_profile"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("--json", action="store_true", help=words("cli.prompt_json"))
    return _common(parser, words, show_prompt)


GRAMMARS: dict[str, Callable[[Words], Parser]] = {
    "models": _models,
    "doctor": _doctor,
    "sessions": _sessions,
    "audit": _audit,
    "prompt": _prompt,
    "demo": _demo,
    "init": _init,
    "config": _config,
    "completion": _completion,
}


def _common(parser: Parser, words: Words, command: Command) -> Parser:
    parser.add_argument("--lang", choices=LANGUAGES, help=words("cli.lang"))
    parser.set_defaults(command=command)
    return parser


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
