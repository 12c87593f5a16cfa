"""Programs that run another one given in their arguments: what is behind them is judged instead."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.text.words import Word, joined
from duckflow.safety.commands.verdict import ask

ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
NUMBER = re.compile(r"^-\d+$")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How to find the command behind a wrapper."""

    with_value: str = ""
    """Letters of the options that take a value."""
    long_with_value: tuple[str, ...] = ()
    operands: int = 0
    """Operands of its own before the command begins."""
    doubt: str = ""
    """Why the wrapper itself is worth a question."""
    as_text: bool = False
    """The rest is one text for a shell, not words."""
    subcommand: tuple[str, ...] = ()
    """`uv run …`: only with this first word."""


TRANSPARENT = Wrapper()
RUNS_CODE = Wrapper(doubt="runs_code")
TOOL_RUN = Wrapper("pCw", ("--with", "--from", "--python", "--project", "--directory"), doubt="runs_code")

WRAPPERS: dict[str, Wrapper] = {
    "time": Wrapper("fo", ("--format", "--output")),
    "timeout": Wrapper("ks", ("--kill-after", "--signal"), 1),
    "gtimeout": Wrapper("ks", ("--kill-after", "--signal"), 1),
    "nohup": TRANSPARENT,
    "nice": Wrapper("n", ("--adjustment",)),
    "ionice": Wrapper("cnpPu", ("--class", "--classdata")),
    "chrt": Wrapper("TPD", operands=1),
    "taskset": Wrapper(operands=1),
    "stdbuf": Wrapper("ioe", ("--input", "--output", "--error")),
    "setsid": TRANSPARENT,
    "unbuffer": TRANSPARENT,
    "chronic": TRANSPARENT,
    "caffeinate": Wrapper("tw"),
    "command": TRANSPARENT,
    "builtin": TRANSPARENT,
    "exec": Wrapper("a"),
    "coproc": TRANSPARENT,
    "noglob": TRANSPARENT,
    "nocorrect": TRANSPARENT,
    "busybox": TRANSPARENT,
    "toybox": TRANSPARENT,
    "fakeroot": Wrapper("ls"),
    "rlwrap": TRANSPARENT,
    "winpty": TRANSPARENT,
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "torsocks": TRANSPARENT,
    "strace": Wrapper("eopsPEuaXbIOS", doubt="runs_code"),
    "ltrace": Wrapper("eopsuanlFDx", doubt="runs_code"),
    "valgrind": RUNS_CODE,
    "xvfb-run": Wrapper("efnpsw", doubt="runs_code"),
    "flock": Wrapper("wEc", ("--timeout", "--conflict-exit-code"), 1),
    "entr": RUNS_CODE,
    "watch": Wrapper("nq", ("--interval",), as_text=True),
    "npx": Wrapper("pc", ("--package", "--call"), doubt="runs_code"),
    "bunx": RUNS_CODE,
    "uvx": TOOL_RUN,
    "uv": replace(TOOL_RUN, subcommand=("run",)),
    "poetry": Wrapper("C", doubt="runs_code", subcommand=("run",)),
    "pipenv": replace(RUNS_CODE, subcommand=("run",)),
    "pdm": Wrapper("p", doubt="runs_code", subcommand=("run",)),
    "hatch": Wrapper("e", doubt="runs_code", subcommand=("run",)),
    "rye": replace(RUNS_CODE, subcommand=("run",)),
    "pixi": Wrapper("e", doubt="runs_code", subcommand=("run", "exec")),
    "conda": Wrapper("np", ("--name", "--prefix"), doubt="runs_code", subcommand=("run",)),
    "mamba": Wrapper("np", ("--name", "--prefix"), doubt="runs_code", subcommand=("run",)),
    "bundle": replace(RUNS_CODE, subcommand=("exec",)),
    "pnpm": Wrapper("C", doubt="runs_code", subcommand=("exec", "dlx")),
    "yarn": replace(RUNS_CODE, subcommand=("exec", "dlx")),
    "npm": replace(RUNS_CODE, subcommand=("exec", "x")),
    "mise": Wrapper("C", doubt="runs_code", subcommand=("exec", "x")),
    "direnv": Wrapper(operands=1, doubt="runs_code", subcommand=("exec",)),
}


def is_wrapper(call: Invocation) -> bool:
    wrapper = WRAPPERS.get(call.program)
    if wrapper is None or (call.program == "command" and call.texts[:1] in (("-v",), ("-V",))):
        return False
    return not wrapper.subcommand or (bool(call.texts) and call.texts[0] in wrapper.subcommand)


def unwrap(call: Invocation) -> Iterator[Opinion]:
    """The wrapper's own doubt, then what it runs."""
    wrapper = WRAPPERS[call.program]
    rest = behind(call.arguments[1:] if wrapper.subcommand else call.arguments, wrapper)
    yield from judge_behind(call, wrapper, rest)


def judge_behind(call: Invocation, wrapper: Wrapper, rest: tuple[Word, ...]) -> Iterator[Opinion]:
    if wrapper.doubt:
        yield ask(wrapper.doubt, program=call.program)
    if not rest:
        yield ask("unknown_program", program=call.program)
    elif wrapper.as_text:
        yield RunsText(joined(rest).text)
    else:
        yield Runs(rest)


def behind(words: tuple[Word, ...], wrapper: Wrapper) -> tuple[Word, ...]:
    """The words that are left when options, assignments and operands of the wrapper are taken off."""
    waiting = list(words)
    operands = wrapper.operands
    while waiting:
        text = waiting[0].text
        if text == "--":
            waiting.pop(0)
            return tuple(waiting[operands:])
        if text.startswith("--"):
            del waiting[: 2 if text in wrapper.long_with_value else 1]
        elif text.startswith("-") and len(text) > 1 and not NUMBER.match(text):
            letter = next((place for place, letter in enumerate(text[1:], 1) if letter in wrapper.with_value), 0)
            del waiting[: 2 if letter == len(text) - 1 else 1]
        elif NUMBER.match(text) or ASSIGNMENT.match(text):
            waiting.pop(0)
        elif operands:
            waiting.pop(0)
            operands -= 1
        else:
            break
    return tuple(waiting)
