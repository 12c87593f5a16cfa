"""The script for zsh."""

from collections.abc import Mapping, Sequence

from duckflow.cli.parser import Flag

HEAD = """\
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
TAIL = """\
    esac
}
# Read by eval it names itself; put into a folder of $fpath it is called.
if [[ "$funcstack[1]" == _duckflow ]]; then _duckflow "$@"; else compdef _duckflow duckflow; fi
"""
ACTIONS = {
    "SESSION": "_duckflow_sessions",
    "MODEL": "_duckflow_models",
    "FILE": "_files",
    "SETTING": "_duckflow_settings",
}


def script(flags: Mapping[str, Sequence[Flag]], about: Mapping[str, str]) -> str:
    named = "\n".join(f"            {_quoted(f'{name}:{_plain(about[name])}')}" for name in flags if name)
    lines = [HEAD, f"        commands=(\n{named}\n        )\n"]
    lines.append("        _describe -t commands command commands\n        return\n    fi\n")
    lines.append('    case "$words[2]" in\n')
    lines += [_case(name, flags[name]) for name in flags if name]
    return "".join([*lines, _case("*", flags[""], shifted=False), TAIL])


def _case(name: str, flags: Sequence[Flag], shifted: bool = True) -> str:
    specs = " \\\n            ".join(_spec(flag) for flag in flags)
    # Inside a command its name counts as the command itself.
    shift = "shift words; (( CURRENT-- )); " if shifted else ""
    return f"        {name}) {shift}_arguments -s -S \\\n            {specs} ;;\n"


def _spec(flag: Flag) -> str:
    value = f":{flag.takes.lower()}:{_action(flag)}" if flag.takes else ""
    if not flag.names:
        return _quoted(f":{value}")
    if len(flag.names) == 1:
        return _quoted(f"{flag.names[0]}[{_plain(flag.help)}]{value}")
    together = f"'({' '.join(flag.names)})'{{{','.join(flag.names)}}}"
    return together + _quoted(f"[{_plain(flag.help)}]{value}")


def _action(flag: Flag) -> str:
    return ACTIONS.get(flag.takes, f"({' '.join(flag.choices)})" if flag.choices else " ")


def _plain(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace(":", " -")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
