"""Programs that run another one given in their arguments: what is behind them is judged instead."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from duckflow.safety.commands.git_call import read_git
from duckflow.safety.commands.invocation import Assignment, Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.reading.git import git_only_reads
from duckflow.safety.commands.reading.programs import READERS
from duckflow.safety.commands.secret_names import is_secret
from duckflow.safety.commands.variables import judge_assignments
from duckflow.safety.commands.verdict import Finding, ask, danger
from duckflow.safety.commands.words import UNKNOWN, Word, joined

ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
NUMBER = re.compile(r"^-\d+$")
LOCAL_COMMAND = re.compile(r"(?:Proxy|Local|KnownHosts|AuthorizedKeys)Command[= ]+(.+)$", re.IGNORECASE)


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


SUDO = Wrapper(
    "ughpCTrtUDRac",
    ("--user", "--group", "--host", "--prompt", "--close-from", "--chdir", "--chroot", "--role", "--type")
    + ("--other-user", "--command-timeout"),
    doubt="as_administrator",
)
REMOTE = Wrapper("bBcDEeFIiJLlmOopQRSWw", operands=1, doubt="on_another_machine", as_text=True)
TOOL_RUN = Wrapper("pCw", ("--with", "--from", "--python", "--project", "--directory"), doubt="runs_code")
TRANSPARENT = Wrapper()
XARGS = Wrapper("IJRLnPsdEa", ("--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-lines", "--max-chars"))
PARALLEL = Wrapper("jNnLSadCEI", ("--jobs", "--max-args", "--arg-file", "--delay", "--joblog"))
MOST_ADDED = 20
SHELL_NAMES = ("sh", "bash", "zsh", "dash", "ksh", "fish", "ash")
SHELL_TEXT = re.compile(r"^-[a-z]*c[a-z]*$")
BECOMES = frozenset(("-i", "-s", "--login", "--shell"))
LOOKS = frozenset(
    ("status", "list", "ls", "ps", "show", "info", "get", "logs", "images", "search", "version", "inspect", "-v")
)

WRAPPERS: dict[str, Wrapper] = {
    "sudo": SUDO,
    "doas": Wrapper("uCa", doubt="as_administrator"),
    "pkexec": Wrapper("", ("--user",), doubt="as_administrator"),
    "gosu": Wrapper(operands=1, doubt="as_administrator"),
    "su-exec": Wrapper(operands=1, doubt="as_administrator"),
    "chroot": Wrapper("", ("--userspec", "--groups"), 1, "as_administrator"),
    "nsenter": Wrapper("tSGrw", ("--target",), doubt="as_administrator"),
    "unshare": Wrapper("SGRw", doubt="as_administrator"),
    "systemd-run": Wrapper("pMHutE", ("--unit", "--property", "--uid", "--gid"), doubt="as_administrator"),
    "time": Wrapper("fo", ("--format", "--output")),
    "timeout": Wrapper("ks", ("--kill-after", "--signal"), 1),
    "gtimeout": Wrapper("ks", ("--kill-after", "--signal"), 1),
    "nohup": TRANSPARENT,
    "nice": Wrapper("n", ("--adjustment",)),
    "ionice": Wrapper("cnpPu", ("--class", "--classdata")),
    "chrt": Wrapper("TPD", operands=1),
    "taskset": Wrapper("", operands=1),
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
    "valgrind": Wrapper(doubt="runs_code"),
    "xvfb-run": Wrapper("efnpsw", doubt="runs_code"),
    "flock": Wrapper("wEc", ("--timeout", "--conflict-exit-code"), 1),
    "entr": Wrapper(doubt="runs_code"),
    "watch": Wrapper("nq", ("--interval",), as_text=True),
    "ssh": REMOTE,
    "mosh": REMOTE,
    "npx": Wrapper("pc", ("--package", "--call"), doubt="runs_code"),
    "bunx": Wrapper(doubt="runs_code"),
    "uvx": TOOL_RUN,
    "uv": replace(TOOL_RUN, subcommand=("run",)),
    "poetry": Wrapper("C", doubt="runs_code", subcommand=("run",)),
    "pipenv": Wrapper(doubt="runs_code", subcommand=("run",)),
    "pdm": Wrapper("p", doubt="runs_code", subcommand=("run",)),
    "hatch": Wrapper("e", doubt="runs_code", subcommand=("run",)),
    "rye": Wrapper(doubt="runs_code", subcommand=("run",)),
    "pixi": Wrapper("e", doubt="runs_code", subcommand=("run", "exec")),
    "conda": Wrapper("np", ("--name", "--prefix"), doubt="runs_code", subcommand=("run",)),
    "mamba": Wrapper("np", ("--name", "--prefix"), doubt="runs_code", subcommand=("run",)),
    "bundle": Wrapper(doubt="runs_code", subcommand=("exec",)),
    "pnpm": Wrapper("C", doubt="runs_code", subcommand=("exec", "dlx")),
    "yarn": Wrapper(doubt="runs_code", subcommand=("exec", "dlx")),
    "npm": Wrapper(doubt="runs_code", subcommand=("exec", "x")),
    "mise": Wrapper("C", doubt="runs_code", subcommand=("exec", "x")),
    "direnv": Wrapper(operands=1, doubt="runs_code", subcommand=("exec",)),
}


def is_wrapper(call: Invocation) -> bool:
    wrapper = WRAPPERS.get(call.program)
    if wrapper is None or (call.program == "command" and _only_asks_where(call)):
        return False
    return not wrapper.subcommand or (bool(call.texts) and call.texts[0] in wrapper.subcommand)


def unwrap(call: Invocation) -> Iterator[Opinion]:
    """The wrapper's own doubt, then what it runs."""
    wrapper = WRAPPERS[call.program]
    if wrapper.doubt:
        yield ask(wrapper.doubt, program=call.program)
    rest = behind(call.arguments[1:] if wrapper.subcommand else call.arguments, wrapper)
    for found in filter(None, map(LOCAL_COMMAND.search, call.texts if wrapper is REMOTE else ())):
        yield RunsText(found[1])
    if wrapper.doubt == "as_administrator":
        yield from _as_administrator(call, rest)
    if not rest:
        yield ask("unknown_program", program=call.program)
    elif wrapper.as_text:
        yield RunsText(joined(rest).text)
    else:
        yield Runs(rest)


def _as_administrator(call: Invocation, rest: tuple[Word, ...]) -> Iterator[Finding]:
    """With all rights a change is a change of the whole machine."""
    if not rest:
        if not BECOMES.isdisjoint(call.texts):
            yield danger("becomes_administrator")
        return
    inner = call.running(rest)
    if inner.program in WRAPPERS or inner.program in ("env", "xargs", "rm", *SHELL_NAMES):
        return
    if inner.program == "git":
        changes = not git_only_reads(read_git(inner))
    elif inner.program in READERS:
        changes = any(is_secret(text) for text in inner.texts)
    else:
        changes = LOOKS.isdisjoint(inner.texts[:2])
    if changes:
        yield danger("administrator_changes", program=inner.program)


def unwrap_env(call: Invocation) -> Iterator[Opinion]:
    """`env NAME=value … program`; `-S` holds a whole command line."""
    words = list(call.arguments)
    assignments = list[Assignment]()
    while words:
        text = words[0].text
        if text.startswith(("-S", "--split-string")):
            value = text.partition("=")[2] if text.startswith("--") else text[2:]
            yield RunsText(joined((Word(value), *words[1:])).text)
            return
        if text in ("-u", "--unset", "-C", "--chdir", "-P"):
            words = words[2:]
        elif text.startswith("-"):
            words = words[1:]
        elif ASSIGNMENT.match(text):
            name, _, value = text.partition("=")
            assignments.append(Assignment(name, replace(words.pop(0), text=value)))
        else:
            break
    yield from judge_assignments(tuple(assignments))
    if words:
        yield Runs(tuple(words))
    else:
        yield ask("shows_environment")


def unwrap_xargs(call: Invocation) -> Iterator[Opinion]:
    """The words it adds come from its input; where that is not known, neither are they."""
    yield ask("at_run_time", program=call.program)
    rest = behind(call.arguments, XARGS)
    given = call.feed.text if call.feed and "-a" not in call.texts else None
    added = tuple(Word(text, plain=False) for text in given.split()[:MOST_ADDED]) if given is not None else (UNKNOWN,)
    marker = ""
    for place, text in enumerate(call.texts):
        if text in ("-I", "-J"):
            marker = call.texts[place + 1] if place + 1 < len(call.texts) else "{}"
        elif text.startswith(("-I", "-J", "-i", "--replace")):
            marker = text[2:] if not text.startswith("--") else text.partition("=")[2]
            marker = marker or "{}"
    yield from _with_added(rest, marker, added)


def unwrap_parallel(call: Invocation) -> Iterator[Opinion]:
    """Like xargs, or with the words behind `:::`."""
    yield ask("at_run_time", program=call.program)
    rest = behind(call.arguments, PARALLEL)
    mark = next((place for place, word in enumerate(rest) if word.text.startswith(":::")), len(rest))
    values = rest[mark + 1 : mark + 1 + MOST_ADDED]
    yield from _with_added(rest[:mark], "{}", values or (UNKNOWN,))
    yield RunsText(joined(rest[:mark]).text)


def _with_added(rest: tuple[Word, ...], marker: str, added: tuple[Word, ...]) -> Iterator[Opinion]:
    if not rest:
        rest = (Word("echo"),)
    script = _shell_script(rest)
    if script is not None and (not script or (marker and script == marker)):
        yield danger("runs_input")
    if marker and any(marker in word.text for word in rest):
        for word in added:
            yield Runs(tuple(_filled(part, marker, word) for part in rest))
    else:
        yield Runs(rest + added)


def _shell_script(words: tuple[Word, ...]) -> str | None:
    """The text after `bash -c`; empty when it would come from the input."""
    if words[0].text.rpartition("/")[2] not in SHELL_NAMES:
        return None
    for place, word in enumerate(words):
        if SHELL_TEXT.match(word.text):
            return words[place + 1].text if place + 1 < len(words) else ""
    return None


def _filled(part: Word, marker: str, word: Word) -> Word:
    if marker not in part.text:
        return part
    return Word(part.text.replace(marker, word.text), known=word.known and part.known, plain=False)


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


def _only_asks_where(call: Invocation) -> bool:
    return bool(call.texts) and call.texts[0] in ("-v", "-V")
