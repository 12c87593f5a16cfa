"""The command line's grammar, explained in the user's language."""

import argparse
from collections.abc import Callable
from typing import Any

from duckflow import __version__
from duckflow.cli.parser import Options, Parser
from duckflow.errors import UsageError
from duckflow.i18n.words import Words, languages
from duckflow.state.mode import OFFERED, Mode
from duckflow.ui.headless_options import DuckPolicy, OutputFormat

Add = Callable[..., Any]
"""The type of argparse's method `add_argument`."""
STEPS = ("PLANNING", "EXECUTION", "REVIEW", "AWAITING_APPROVAL")
PATTERNS = ("base_main", "base_main_specialized")
NEAR = 0.75
LARGEST = 2.0**53
"""The largest number that an option takes, so that it is never infinite and fits into a column of a database."""


def parse(argv: list[str], words: Words) -> tuple[str, Options]:
    """Returns the subcommand (an empty text for a conversation) and the options."""
    argv = _command_first(argv, words)
    first_word = argv[0] if argv else ""
    if first_word == "mcp" and "--" in argv:
        # The words after `--` are the command line of another program.
        separator_index = argv.index("--")
        options = make_parser(first_word, words).read(argv[1:separator_index])
        options.command = [*options.command, *argv[separator_index + 1 :]]
        return first_word, options
    if first_word in SUBCOMMANDS:
        parser = make_parser(first_word, words)
        if first_word == "fleet" and (part := next((word for word in argv[1:] if word in FLEET_FLAGS), "")):
            parser.narrow(part, [*FLEET_COMMON, *FLEET_FLAGS[part].split()], words=words(_fleet_words(part)))
        return first_word, parser.read(argv[1:])
    if first_word == "help":
        return "", make_parser("", words).read(["--help"])
    if near_command := _nearest(first_word):
        raise UsageError("usage.near_command", word=first_word, near=near_command)
    return "", make_parser("", words).read(argv)


def _command_first(argv: list[str], words: Words) -> list[str]:
    """Turns `--lang ja doctor` into `doctor --lang ja`. If the subcommand does not know one of the flags before its
    name, nothing is moved, and the name counts as part of a message, unless it is clear that the subcommand is
    meant."""
    if not argv or not argv[0].startswith("-") or not any(word in SUBCOMMANDS for word in argv):
        return argv
    valued_flags = {name for flag in make_parser("", words).flags() if flag.takes for name in flag.names}
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        index += 2 if argv[index] in valued_flags else 1
    name = argv[index] if index < len(argv) else ""
    if name not in SUBCOMMANDS:
        return argv
    known_flags = {flag_name for flag in make_parser(name, words).flags() for flag_name in flag.names}
    used_flags = {word.partition("=")[0] for word in argv[:index] if word.startswith("-")}
    if used_flags <= known_flags:
        return [name, *argv[:index], *argv[index + 1 :]]
    if _fits(name, argv[index + 1 :], words):
        raise UsageError("usage.other_option", option=min(used_flags - known_flags), prog=f"duckflow {name}")
    return argv


def _fits(name: str, rest: list[str], words: Words) -> bool:
    """Says whether words follow the subcommand's name, and it takes them. A message of several words needs quotes."""
    try:
        return bool(rest) and not rest[0].startswith("-") and bool(make_parser(name, words).read(rest))
    except UsageError:
        return False


def _nearest(word: str) -> str:
    """Returns the subcommand that is spelled most like this word; an empty text if none is similar."""
    if not word.isascii() or not word.isalpha():
        return ""
    import difflib

    near_commands = difflib.get_close_matches(word, SUBCOMMANDS, n=1, cutoff=NEAR)
    return near_commands[0] if near_commands else ""


def make_parser(name: str, words: Words) -> Parser:
    """Makes the parser of a subcommand, or without a name the parser of `duckflow` itself."""
    if name:
        parser = Parser(
            words, name, words(f"cli.{name}"), words("cli.completion_epilog") if name == "completion" else ""
        )
        SUBCOMMANDS[name](parser.add_argument, words)
    else:
        parser = Parser(words, about=words("cli.about"), epilog=words("cli.epilog", commands=", ".join(SUBCOMMANDS)))
        _talk(parser.add_argument, words)
    parser.add_argument("--lang", choices=languages(), help=words("cli.lang"))
    return parser


def _talk(add: Add, words: Words) -> None:
    add("message", nargs="?", default="", metavar="MESSAGE", help=words("cli.message"))
    add("-p", "--print", dest="prompt", metavar="PROMPT", help=words("cli.print"))
    add("--output-format", choices=[*map(str, OutputFormat)], default="text", help=words("cli.output_format"))
    add("--input-format", choices=["text", "stream-json"], default="text", help=words("cli.input_format"))
    add("--json-schema", default="", metavar="SCHEMA", help=words("cli.json_schema"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("-c", "--continue", dest="resume_last", action="store_true", help=words("cli.continue"))
    add("-r", "--resume", nargs="?", const="", metavar="SESSION", help=words("cli.resume"))
    add("--fork", action="store_true", help=words("cli.fork"))
    _mode(add, words)
    add("--add-dir", action="append", default=[], metavar="FOLDER", help=words("cli.add_dir"))
    add("--trust", action="store_true", help=words("cli.trust"))
    add("--web", action="store_true", help=words("cli.beside"))
    add("--trajectory", default="", metavar="FILE", help=words("cli.trajectory"))
    add("--on-duck-call", type=_policy, default=None, metavar="POLICY", help=words("cli.duck"))
    add("--require-proof", action="store_true", help=words("cli.require_proof"))
    _limits(add, words)
    add("-V", "--version", action="version", version=f"duckflow {__version__}", help=words("cli.version"))


def _mode(add: Add, words: Words) -> None:
    add("--mode", choices=[*map(str, Mode)], help=words("cli.mode"))
    contained_mode = str(Mode.CONTAINED)
    add("--contained", dest="mode", action="store_const", const=contained_mode, help=words("cli.contained"))
    add("--yes-really", action="store_true", help=words("cli.yes_really"))


def _limits(add: Add, words: Words) -> None:
    add("--max-loops", type=_positive(int), metavar="N", help=words("cli.max_loops"))
    add("--max-budget-usd", type=_positive(float), metavar="USD", help=words("cli.max_budget"))
    add("--max-tokens", type=_positive(int), metavar="N", help=words("cli.max_tokens"))


def _acp(add: Add, words: Words) -> None:
    # An editor appends the word of its button "set up" to the command that starts the agent.
    add("what", choices=["init"], nargs="?", help=words("cli.acp_what"))
    _judging(add, words)


def _judging(add: Add, words: Words) -> None:
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    _mode(add, words)
    add("--trust", action="store_true", help=words("cli.trust"))
    add("--add-dir", action="append", default=[], metavar="FOLDER", help=words("cli.add_dir"))
    _limits(add, words)


def _models(add: Add, words: Words) -> None:
    add("what", choices=["pull", "list", "rm"], nargs="?", default="list", help=words("cli.models_what"))
    add("name", nargs="?", default="", metavar="WEIGHTS", help=words("cli.models_name"))
    add("--if-missing", action="store_true", help=words("cli.models_if_missing"))
    add("--from", dest="source", default="", metavar="FILE", help=words("cli.models_from"))


def _doctor(add: Add, words: Words) -> None:
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("--json", action="store_true", help=words("cli.json"))


def _sessions(add: Add, words: Words) -> None:
    actions = ["list", "search", "export", "rename", "rm"]
    add("what", choices=actions, nargs="?", default="list", help=words("cli.sessions_what"))
    add("session", nargs="?", default="", metavar="SESSION", help=words("cli.sessions_session"))
    add("rest", nargs="*", default=[], metavar="TITLE", help=words("cli.sessions_title"))
    add("--all", action="store_true", help=words("cli.sessions_all"))
    add("--yes", action="store_true", help=words("cli.sessions_yes"))
    add("--format", choices=["md", "html", "atif"], help=words("cli.sessions_format"))
    add("-o", "--output", default="", metavar="FILE", help=words("cli.sessions_output"))


def _audit(add: Add, words: Words) -> None:
    add("session", nargs="?", default="", metavar="SESSION", help=words("cli.audit_session"))
    add("--json", action="store_true", help=words("cli.audit_json"))


def _replay(add: Add, words: Words) -> None:
    add("session", nargs="?", default="", metavar="SESSION", help=words("cli.replay_session"))
    add("--into", default="", metavar="FOLDER", help=words("cli.replay_into"))
    add("--run", action="store_true", help=words("cli.replay_run"))
    add("--from", dest="step", type=_positive(int), metavar="N", help=words("cli.replay_from"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("--times", type=_positive(int), default=1, metavar="N", help=words("cli.replay_times"))
    _mode(add, words)
    _limits(add, words)


def _review(add: Add, words: Words) -> None:
    add("range", nargs="?", default="", metavar="RANGE", help=words("cli.review_range"))
    add("--format", choices=["text", "json", "sarif"], default="text", help=words("cli.review_format"))
    add("-o", "--output", default="", metavar="FILE", help=words("cli.review_output"))
    add("--fail-on", choices=["witness", "high", "any", "never"], default="witness", help=words("cli.review_fail_on"))
    _judging(add, words)


def _pr(add: Add, words: Words) -> None:
    add("base", nargs="?", default="", metavar="BASE", help=words("cli.pr_base"))


def _attach(add: Add, words: Words) -> None:
    add("session", nargs="?", default="", metavar="SESSION", help=words("cli.attach_session"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    _mode(add, words)
    add("--trust", action="store_true", help=words("cli.trust"))
    add("--host", choices=["jobs", "again", "new", "led"], help=argparse.SUPPRESS)
    add("--max-budget-usd", type=_positive(float), help=argparse.SUPPRESS)
    add("--max-tokens", type=_positive(int), help=argparse.SUPPRESS)
    add("--add-dir", action="append", default=[], help=argparse.SUPPRESS)


def _web(add: Add, words: Words) -> None:
    add("--port", type=_port, metavar="N", help=words("cli.web_port"))
    add("--host", default="", metavar="ADDRESS", help=words("cli.web_host"))
    add("--qr", action="store_true", help=words("cli.web_qr"))
    add("--no-open", action="store_true", help=words("cli.web_no_open"))
    add("--beside", action="store_true", help=argparse.SUPPRESS)


def _demo(add: Add, words: Words) -> None:
    """Adds no option: this subcommand takes only the options that all subcommands take."""


def _init(add: Add, words: Words) -> None:
    add("-y", "--yes", action="store_true", help=words("cli.init_yes"))
    add("--force", action="store_true", help=words("cli.init_force"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("--mode", choices=[*map(str, OFFERED)], help=words("cli.mode"))


def _config(add: Add, words: Words) -> None:
    add("what", choices=["list", "get", "set", "unset"], nargs="?", default="list", help=words("cli.config_what"))
    add("name", nargs="?", default="", metavar="SETTING", help=words("cli.config_name"))
    add("value", nargs="?", metavar="VALUE", help=words("cli.config_value"))
    add("--user", action="store_true", help=words("cli.config_user"))
    add("--project", action="store_true", help=words("cli.config_project"))
    add("--changed", action="store_true", help=words("cli.config_changed"))
    add("--json", action="store_true", help=words("cli.config_json"))


def _mcp(add: Add, words: Words) -> None:
    actions = ["add", "list", "remove", "test", "login", "serve"]
    add("what", choices=actions, nargs="?", default="list", help=words("cli.mcp_what"))
    add("name", nargs="?", default="", metavar="NAME", help=words("cli.mcp_name"))
    add("command", nargs="*", default=[], metavar="COMMAND", help=words("cli.mcp_command"))
    add("--env", action="append", default=[], metavar="NAME=VALUE", help=words("cli.mcp_env"))
    add("--header", action="append", default=[], metavar="NAME:VALUE", help=words("cli.mcp_header"))
    add("--scope", default="", metavar="SCOPE", help=words("cli.mcp_scope"))


def _completion(add: Add, words: Words) -> None:
    add("shell", choices=["bash", "zsh", "fish", "sessions", "models", "settings"], help=words("cli.shell"))


def _prompt(add: Add, words: Words) -> None:
    add("message", nargs="?", default="", metavar="MESSAGE", help=words("cli.prompt_message"))
    add("--step", choices=STEPS, default=STEPS[0], help=words("cli.prompt_step"))
    add("--pattern", choices=PATTERNS, default=PATTERNS[0], help=words("cli.prompt_pattern"))
    add("--profile", choices=["full", "compact"], help=words("cli.prompt_profile"))
    add("-m", "--model", metavar="MODEL", help=words("cli.model"))
    add("--json", action="store_true", help=words("cli.prompt_json"))


FLEET_FLAGS = {
    "run": "words issues source repository check model mode attempts budget_usd budget_tokens fleet_budget_usd "
    "fleet_budget_tokens minutes setup include may_touch base pick cancel_losers "
    "matrix toml yes at_once no_work places limit lease json",
    "list": "json",
    "show": "words json",
    "logs": "words attempt follow json",
    "inbox": "words json",
    "answer": "words all_same json",
    "cancel": "words attempt json",
    "retry": "words attempt no_work at_once lease json",
    "merge": "words attempt pick at_once lease json",
    "deliver": "words deliver yes json",
    "ci": "words json",
    "clean": "words yes json",
    "worker": "words at_once lease",
    "workers": "json",
    "report": "words format output json",
    "export": "words format output",
}
"""The flags that each part of `duckflow fleet` uses; all other flags are refused."""
FLEET_COMMON = ("help", "lang", "database", "place", "repositories")
"""The options that all parts of `duckflow fleet` take: the database, and this machine's name and repositories."""


def _fleet_words(part: str) -> str:
    """Returns the key of the help text for the words that the user may type after this part of `duckflow fleet`."""
    only_fleet = part in ("inbox", "clean", "worker", "report")
    return f"cli.fleet_words_{part}" if part in ("run", "answer") else f"cli.fleet_words{'_fleet' * only_fleet}"


def _fleet(add: Add, words: Words) -> None:
    add("what", choices=[*FLEET_FLAGS], nargs="?", default="list", help=words("cli.fleet_what"))
    add("words", nargs="*", default=[], metavar="WORDS", help=words("cli.fleet_words"))
    add("--issues", default="", metavar="FILE", help=words("cli.fleet_issues"))
    add("--from", dest="source", default="", metavar="FILE", help=words("cli.fleet_from"))
    add("--format", choices=["swebench", "md", "csv"], default="", help=words("cli.fleet_format"))
    add("-o", "--output", default="", metavar="FILE", help=words("cli.fleet_output"))
    add("--toml", action="store_true", help=words("cli.fleet_toml"))
    add("--matrix", action="append", default=[], metavar="NAME=FILE", help=words("cli.fleet_matrix"))
    add("--repository", default="", metavar="FOLDER", help=words("cli.fleet_repository"))
    add("--check", action="append", default=[], metavar="COMMAND", help=words("cli.fleet_check"))
    add("-m", "--model", default="", metavar="MODEL", help=words("cli.model"))
    add("--mode", choices=[*map(str, Mode)], help=words("cli.mode"))
    add("--contained", dest="mode", action="store_const", const=str(Mode.CONTAINED), help=words("cli.contained"))
    add("--attempts", type=_positive(int), metavar="N", help=words("cli.fleet_attempts"))
    add("--budget-usd", type=_positive(float), metavar="USD", help=words("cli.fleet_budget"))
    add("--budget-tokens", type=_positive(int), metavar="N", help=words("cli.fleet_budget"))
    add("--fleet-budget-usd", type=_positive(float), metavar="USD", help=words("cli.fleet_whole_budget"))
    add("--fleet-budget-tokens", type=_positive(int), metavar="N", help=words("cli.fleet_whole_budget"))
    add("--minutes", type=_positive(float), metavar="N", help=words("cli.fleet_minutes"))
    add("--setup", default="", metavar="COMMAND", help=words("cli.fleet_setup"))
    add("--include", action="append", default=[], metavar="FILE", help=words("cli.fleet_include"))
    add("--may-touch", action="append", default=[], metavar="PATTERN", help=words("cli.fleet_may_touch"))
    add("--base", default="", metavar="COMMIT", help=words("cli.fleet_base"))
    add("--pick", choices=["ask", "best"], help=words("cli.fleet_pick"))
    add("--deliver", choices=["push", "pull-request", "merge"], default="", help=words("cli.fleet_deliver"))
    add("--cancel-losers", action="store_true", help=words("cli.fleet_cancel_losers"))
    add("--at-once", type=_positive(int), default=4, metavar="N", help=words("cli.fleet_at_once"))
    add("--attempt", type=_positive(int), metavar="N", help=words("cli.fleet_attempt"))
    add("--all-same", action="store_true", help=words("cli.fleet_all_same"))
    add("-f", "--follow", action="store_true", help=words("cli.fleet_follow"))
    add("--no-work", action="store_true", help=words("cli.fleet_no_work"))
    add("--yes", action="store_true", help=words("cli.fleet_yes"))
    add("--database", default="", metavar="ADDRESS", help=words("cli.fleet_database"))
    add("--place", default="", metavar="NAME", help=words("cli.fleet_place"))
    add("--places", action="append", default=[], metavar="NAME", help=words("cli.fleet_places"))
    add("--repositories", default="", metavar="FOLDER", help=words("cli.fleet_repositories"))
    add("--limit", action="append", default=[], metavar="MODEL=N/N/N", help=words("cli.fleet_limit"))
    add("--lease", type=_positive(float), default=30.0, metavar="SECONDS", help=words("cli.fleet_lease"))
    add("--json", action="store_true", help=words("cli.json"))


SUBCOMMANDS: dict[str, Callable[[Add, Words], None]] = {
    "models": _models,
    "doctor": _doctor,
    "sessions": _sessions,
    "audit": _audit,
    "replay": _replay,
    "review": _review,
    "jobs": _demo,
    "attach": _attach,
    "web": _web,
    "acp": _acp,
    "prompt": _prompt,
    "demo": _demo,
    "fleet": _fleet,
    "init": _init,
    "config": _config,
    "mcp": _mcp,
    "pr": _pr,
    "plugins": _demo,
    "completion": _completion,
    "update": _demo,
}


def _policy(text: str) -> DuckPolicy:
    name, colon, times_text = text.partition(":")
    if name not in ("stop", "continue", "replan") or (colon and not times_text.isdecimal()):
        raise argparse.ArgumentTypeError(text)
    return DuckPolicy(name, int(times_text) if colon else 1)


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 1 << 16:
        raise argparse.ArgumentTypeError(text)
    return port


def _positive(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        value = kind(text)
        if not 0 < value <= LARGEST:
            raise argparse.ArgumentTypeError(text)
        return value

    return convert
