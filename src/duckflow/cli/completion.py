"""`duckflow completion`: prints a script for the shell, or the values that the scripts ask for while the user types."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from duckflow.cli.parser import Flag, Options
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out


def run_completion(options: Options, words: Words, paths: Paths) -> int:
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

    parsers = {name: make_parser(name, words) for name in ("", *SUBCOMMANDS)}
    flags = {name: parser.flags() for name, parser in parsers.items()}
    descriptions = {name: parser.description or "" for name, parser in parsers.items()}
    scripts = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
    return scripts[shell](flags, descriptions)


def _sessions(paths: Paths) -> list[str]:
    """Lists the sessions, the newest first. Only the names of their files are read."""
    journals = paths.sessions_of(Path.cwd()).glob("*.db")
    return sorted((path.stem for path in journals if ".damaged-" not in path.name), reverse=True)


def _models(paths: Paths) -> list[str]:
    """Lists models without asking any endpoint: local models, then those of endpoints with a key, then all others."""
    from duckflow.llm.endpoints import KNOWN
    from duckflow.llm.local.weights import Weights

    keyed_endpoints = [endpoint for endpoint in KNOWN if any(os.environ.get(name) for name in endpoint.key_names)]
    other_endpoints = [endpoint for endpoint in KNOWN if endpoint not in keyed_endpoints]
    local_names = [f"local:{weights_file.model.name}" for weights_file in Weights(paths.models, os.environ).installed()]
    return [
        "local",
        *local_names,
        *(f"{endpoint.name}:{endpoint.model}" for endpoint in (*keyed_endpoints, *other_endpoints)),
    ]


def _settings() -> list[str]:
    from duckflow.config.settings import Settings
    from duckflow.config.value import list_setting_names

    return list_setting_names(Settings)


LISTINGS = {"SESSION": "sessions", "MODEL": "models", "SETTING": "settings"}
"""For each kind of value, the argument of `duckflow completion` that lists the values."""
BASH_HEAD = """\
# duckflow in bash. In ~/.bashrc: eval "$(duckflow completion bash)"
_duckflow() {
    local line="${COMP_LINE:0:COMP_POINT}" typed=() command="" current="" previous="" offered="" files="" word
    read -r -a typed <<< "$line"
    [[ "$line" == *[[:space:]] ]] || { current="${typed[${#typed[@]}-1]}"; unset "typed[${#typed[@]}-1]"; }
    [[ ${#typed[@]} -gt 1 ]] && { previous="${typed[${#typed[@]}-1]}"; command="${typed[1]}"; }
    local before="${current%%=*}="
    if [[ "$current" == --*=* ]]; then previous="${current%%=*}"; current="${current#*=}"; else before=""; fi
    case "$command" in
"""
BASH_TAIL = """\
    esac
    COMPREPLY=()
    [[ -n "$files" ]] && COMPREPLY=( $(compgen -f -- "$current") )
    local word
    for word in $(compgen -W "$offered" -- "$current"); do
        # bash takes a colon or an equals sign for the end of a word: only what follows may be given.
        [[ "$COMP_WORDBREAKS" == *:* && "$current" == *:* ]] && word="${word#"${current%:*}:"}"
        [[ -n "$before" && "$COMP_WORDBREAKS" != *=* ]] && word="$before$word"
        COMPREPLY+=("$word")
    done
}
complete -o bashdefault -F _duckflow duckflow
"""


def bash_script(flags: Mapping[str, Sequence[Flag]], about: Mapping[str, str]) -> str:
    commands = [name for name in flags if name]
    bash_cases = "".join(_bash_case(name, flags[name], "") for name in commands)
    return BASH_HEAD + bash_cases + _bash_case("*", flags[""], " ".join(commands)) + BASH_TAIL


def _bash_case(name: str, flags: Sequence[Flag], commands: str) -> str:
    """Writes the part of the bash script for one subcommand: it offers values for the option before the cursor,
    otherwise options and arguments."""
    lines = [f'        {name})\n            case "$previous" in\n']
    valued_flags = [flag for flag in flags if flag.names and flag.takes]
    lines += [f"                {'|'.join(flag.names)}) {_bash_values(flag)} ;;\n" for flag in valued_flags]
    options = " ".join(name for flag in flags for name in flag.names)
    positional_words = " ".join(word for flag in flags if not flag.names for word in flag.choices)
    listings = "".join(_bash_listing(flag) for flag in flags if not flag.names)
    first_case = (
        f'[[ ${{#typed[@]}} -eq 1 ]] && offered="{commands}"; '
        if commands
        else f'offered="{positional_words}{listings}"; '
    )
    lines.append(f'                *) {first_case}[[ "$current" == -* ]] && offered="{options}" ;;\n')
    return "".join([*lines, "            esac ;;\n"])


def _bash_values(flag: Flag) -> str:
    if flag.takes == "FILE":
        return "files=yes"
    return f'offered="{" ".join(flag.choices)}{_bash_listing(flag)}"'


def _bash_listing(flag: Flag) -> str:
    return f" $(duckflow completion {LISTINGS[flag.takes]} 2>/dev/null)" if flag.takes in LISTINGS else ""


ZSH_HEAD = """\
#compdef duckflow
# duckflow in zsh. In ~/.zshrc, after compinit: eval "$(duckflow completion zsh)"
_duckflow_offer() { local -a found; found=(${(f)"$(duckflow completion $1 2>/dev/null)"}); compadd -V $1 -a found }
_duckflow_sessions() { _duckflow_offer sessions }
_duckflow_models() { _duckflow_offer models }
_duckflow_settings() { _duckflow_offer settings }
_duckflow() {
    local -a commands
    if (( CURRENT == 2 )) && [[ "$words[2]" != -* ]]; then
"""
ZSH_TAIL = """\
    esac
}
# Read by eval it names itself; put into a folder of $fpath it is called.
if [[ "$funcstack[1]" == _duckflow ]]; then _duckflow "$@"; else compdef _duckflow duckflow; fi
"""
ZSH_ACTIONS = {"FILE": "_files"} | {takes: f"_duckflow_{listing}" for takes, listing in LISTINGS.items()}


def zsh_script(flags: Mapping[str, Sequence[Flag]], about: Mapping[str, str]) -> str:
    command_rows = "\n".join(
        f"            {_zsh_quoted(f'{name}:{_zsh_plain(about[name])}')}" for name in flags if name
    )
    lines = [ZSH_HEAD, f"        commands=(\n{command_rows}\n        )\n"]
    lines.append("        _describe -t commands command commands\n        return\n    fi\n")
    lines.append('    case "$words[2]" in\n')
    lines += [_zsh_case(name, flags[name]) for name in flags if name]
    return "".join([*lines, _zsh_case("*", flags[""], shifted=False), ZSH_TAIL])


def _zsh_case(name: str, flags: Sequence[Flag], shifted: bool = True) -> str:
    specs = " \\\n            ".join(_zsh_spec(flag) for flag in flags)
    # zsh is told to take the name of the subcommand for the command itself.
    shift_command = "shift words; (( CURRENT-- )); " if shifted else ""
    return f"        {name}) {shift_command}_arguments -s -S \\\n            {specs} ;;\n"


def _zsh_spec(flag: Flag) -> str:
    value = f":{flag.takes.lower()}:{_zsh_action(flag)}" if flag.takes else ""
    if not flag.names:
        return _zsh_quoted(f":{value}")
    if len(flag.names) == 1:
        return _zsh_quoted(f"{flag.names[0]}[{_zsh_plain(flag.help)}]{value}")
    flag_names = f"'({' '.join(flag.names)})'{{{','.join(flag.names)}}}"
    return flag_names + _zsh_quoted(f"[{_zsh_plain(flag.help)}]{value}")


def _zsh_action(flag: Flag) -> str:
    return ZSH_ACTIONS.get(flag.takes, f"({' '.join(flag.choices)})" if flag.choices else " ")


def _zsh_plain(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace(":", " -")


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


FISH_HEAD = """\
# duckflow in fish: duckflow completion fish > ~/.config/fish/completions/duckflow.fish
function __duckflow_begins
    test (count (commandline -opc)) -eq 1
end
function __duckflow_in
    set -l typed (commandline -opc)
    set -q typed[2]; and contains -- $typed[2] $argv
end
complete -c duckflow -f
"""


def fish_script(flags: Mapping[str, Sequence[Flag]], about: Mapping[str, str]) -> str:
    commands = [name for name in flags if name]
    lines = [FISH_HEAD, *(_fish_command(name, about[name]) for name in commands)]
    for name, command_flags in flags.items():
        condition = f"__duckflow_in {name}" if name else f"not __duckflow_in {' '.join(commands)}"
        lines += [_fish_line(flag, condition) for flag in command_flags]
    return "".join(lines)


def _fish_command(name: str, about: str) -> str:
    return f"complete -c duckflow -n __duckflow_begins -a {name} -d {_fish_quoted(about)}\n"


def _fish_line(flag: Flag, condition: str) -> str:
    values = " ".join(flag.choices)
    if flag.takes in LISTINGS:
        values = f"(duckflow completion {LISTINGS[flag.takes]} 2>/dev/null)"
    if not flag.names:
        return f"complete -c duckflow -n {_fish_quoted(condition)} -a {_fish_quoted(values)}\n" if values else ""
    names = "".join(_fish_name(name) for name in flag.names)
    arg_flag = " -x" if flag.takes and flag.takes != "FILE" else " -r -F" if flag.takes else ""
    choices = f" -a {_fish_quoted(values)}" if flag.takes and values else ""
    return f"complete -c duckflow -n {_fish_quoted(condition)}{names}{arg_flag}{choices} -d {_fish_quoted(flag.help)}\n"


def _fish_name(name: str) -> str:
    return f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
