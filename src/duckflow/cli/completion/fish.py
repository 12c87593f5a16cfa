"""The script for fish."""

from collections.abc import Mapping, Sequence

from duckflow.cli.parser import Flag

HEAD = """\
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
ACTIONS = {
    "SESSION": "(duckflow completion sessions 2>/dev/null)",
    "MODEL": "(duckflow completion models 2>/dev/null)",
    "SETTING": "(duckflow completion settings 2>/dev/null)",
}


def script(flags: Mapping[str, Sequence[Flag]], about: Mapping[str, str]) -> str:
    commands = [name for name in flags if name]
    lines = [HEAD, *(_command(name, about[name]) for name in commands)]
    for name, found in flags.items():
        condition = f"__duckflow_in {name}" if name else f"not __duckflow_in {' '.join(commands)}"
        lines += [_line(flag, condition) for flag in found]
    return "".join(lines)


def _command(name: str, about: str) -> str:
    return f"complete -c duckflow -n __duckflow_begins -a {name} -d {_quoted(about)}\n"


def _line(flag: Flag, condition: str) -> str:
    values = ACTIONS.get(flag.takes, " ".join(flag.choices))
    if not flag.names:
        return f"complete -c duckflow -n {_quoted(condition)} -a {_quoted(values)}\n" if values else ""
    names = "".join(_name(name) for name in flag.names)
    needs = " -x" if flag.takes and flag.takes != "FILE" else " -r -F" if flag.takes else ""
    offered = f" -a {_quoted(values)}" if flag.takes and values else ""
    return f"complete -c duckflow -n {_quoted(condition)}{names}{needs}{offered} -d {_quoted(flag.help)}\n"


def _name(name: str) -> str:
    return f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
