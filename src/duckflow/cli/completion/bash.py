"""The script for bash."""

from collections.abc import Mapping, Sequence

from duckflow.cli.parser import Flag

HEAD = """\
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
TAIL = """\
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
DYNAMIC = {"SESSION": "sessions", "MODEL": "models", "SETTING": "settings"}


def script(flags: Mapping[str, Sequence[Flag]], about: Mapping[str, str]) -> str:
    commands = [name for name in flags if name]
    cases = "".join(_case(name, flags[name], "") for name in commands)
    return HEAD + cases + _case("*", flags[""], " ".join(commands)) + TAIL


def _case(name: str, flags: Sequence[Flag], commands: str) -> str:
    """What may follow inside one command: the values of the option before, else options and arguments."""
    lines = [f'        {name})\n            case "$previous" in\n']
    valued = [flag for flag in flags if flag.names and flag.takes]
    lines += [f"                {'|'.join(flag.names)}) {_values(flag)} ;;\n" for flag in valued]
    options = " ".join(name for flag in flags for name in flag.names)
    places = " ".join(word for flag in flags if not flag.names for word in flag.choices)
    dynamic = "".join(_dynamic(flag) for flag in flags if not flag.names)
    first = f'[[ ${{#typed[@]}} -eq 1 ]] && offered="{commands}"; ' if commands else f'offered="{places}{dynamic}"; '
    lines.append(f'                *) {first}[[ "$current" == -* ]] && offered="{options}" ;;\n')
    return "".join([*lines, "            esac ;;\n"])


def _values(flag: Flag) -> str:
    if flag.takes == "FILE":
        return "files=yes"
    return f'offered="{" ".join(flag.choices)}{_dynamic(flag)}"'


def _dynamic(flag: Flag) -> str:
    return f" $(duckflow completion {DYNAMIC[flag.takes]} 2>/dev/null)" if flag.takes in DYNAMIC else ""
