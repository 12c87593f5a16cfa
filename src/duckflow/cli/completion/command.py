"""`duckflow completion`: prints a script for the shell, or the values that the scripts ask for while one types."""

import os
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out


def completion(options: Options, words: Words, paths: Paths) -> int:
    match options.shell:
        case "sessions":
            lines = _sessions(paths)
        case "models":
            lines = _models(paths)
        case "settings":
            lines = _settings()
        case shell:
            lines = [_script(shell, words)]
    for line in lines:
        print_out(line)
    return 0


def _script(shell: str, words: Words) -> str:
    from duckflow.cli.arguments import SUBCOMMANDS, make_parser
    from duckflow.cli.completion import bash, fish, zsh

    parsers = {name: make_parser(name, words) for name in ("", *SUBCOMMANDS)}
    flags = {name: parser.flags() for name, parser in parsers.items()}
    about = {name: parser.description or "" for name, parser in parsers.items()}
    scripts = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}
    return scripts[shell](flags, about)


def _sessions(paths: Paths) -> list[str]:
    """The newest first; only the names of the files are looked at."""
    journals = paths.sessions_of(Path.cwd()).glob("*.db")
    return sorted((path.stem for path in journals if ".damaged-" not in path.name), reverse=True)


def _models(paths: Paths) -> list[str]:
    """What can be named without asking anybody: endpoints with a key first, then the others, then local weights."""
    from duckflow.llm.endpoints import KNOWN
    from duckflow.llm.local.weights import Weights

    keyed = [one for one in KNOWN if any(os.environ.get(name) for name in one.key_names)]
    others = [one for one in KNOWN if one not in keyed]
    local = [f"local:{holding.model.name}" for holding in Weights(paths.models, os.environ).installed()]
    return ["local", *local, *(f"{one.name}:{one.model}" for one in (*keyed, *others))]


def _settings() -> list[str]:
    from duckflow.config.settings import Settings
    from duckflow.config.value import setting_names

    return setting_names(Settings)
