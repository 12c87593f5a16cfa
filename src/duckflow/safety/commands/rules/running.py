"""Options of everyday programs that make them run a command."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.verdict import ask, danger
from duckflow.safety.commands.words import Word

RUNNING: dict[str, re.Pattern[str]] = {
    "tar": re.compile(
        r"^(?:--to-command|--checkpoint-action=exec|--use-compress-program|--rsh-command|-I|--info-script|-F)=?(.*)$"
    ),
    "rsync": re.compile(r"^(?:-[a-zA-Z]*e|--rsh|--rsync-path)=?(.*)$"),
    "scp": re.compile(r"^(?:-S|-o?ProxyCommand|-oProxyCommand|ProxyCommand)=?(.*)$"),
    "sftp": re.compile(r"^(?:-S|-oProxyCommand|ProxyCommand)=?(.*)$"),
    "man": re.compile(r"^(?:-P|--pager|-H|--html)=?(.*)$"),
    "less": re.compile(r"^\+!?(.*)$"),
    "split": re.compile(r"^--filter=?(.*)$"),
    "sort": re.compile(r"^--compress-program=?(.*)$"),
    "rg": re.compile(r"^(?:--pre|--hostname-bin)=?(.*)$"),
    "fd": re.compile(r"^(?:-x|-X|--exec|--exec-batch)=?(.*)$"),
    "zip": re.compile(r"^(?:-TT|--unzip-command)=?(.*)$"),
    "script": re.compile(r"^(?:-[a-z]*c|--command)=?(.*)$"),
    "runuser": re.compile(r"^(?:-[a-z]*c|--command)=?(.*)$"),
    "flock": re.compile(r"^(?:-[a-z]*c|--command)=?(.*)$"),
    "tmux": re.compile(r"^(?:new-session|new|neww|new-window|split-window|send-keys|run-shell|if-shell)$()"),
    "screen": re.compile(r"^(?:-X|-dmS?|-[a-zA-Z]*m\w*)$()"),
    "nix-shell": re.compile(r"^(?:--run|--command)=?(.*)$"),
    "nix": re.compile(r"^(?:-c|--command)$()"),
    "make": re.compile(r"^(?:SHELL|--eval)=?(.*)$"),
    "ansible": re.compile(r"^(?:-a|--args)=?(.*)$"),
    "kubectl": re.compile(r"^--()$"),
    "oc": re.compile(r"^--()$"),
    "socat": re.compile(r"^(?:EXEC|SYSTEM):(.*)$", re.IGNORECASE),
    "gcc": re.compile(r"^-wrapper()$"),
    "crontab": re.compile(r"^(-)$"),
}


def judge_running(call: Invocation) -> Iterator[Opinion]:
    """The value is attached to the option or is the words after it."""
    for place, text in enumerate(call.texts):
        found = RUNNING[call.program].match(text)
        if not found:
            continue
        yield ask("option_changes", program=call.program, option=text)
        inside = found[1].removeprefix("exec=")
        after = call.texts[place + 1 :]
        if inside:
            yield RunsText(inside)
        elif after:
            yield RunsText(after[0])
            yield RunsText(" ".join(after))


def judge_su(call: Invocation) -> Iterator[Opinion]:
    """Becoming another user, for one command or for good."""
    yield ask("as_administrator", program=call.program)
    commands = [
        call.texts[place + 1] for place, text in enumerate(call.texts[:-1]) if text in ("-c", "--command", "-lc")
    ]
    for command in commands:
        yield RunsText(command)
    if not commands:
        yield danger("becomes_administrator")


def judge_java(call: Invocation) -> Iterator[Opinion]:
    """A jar is a program like any other."""
    yield ask("runs_code", program=call.program)
    if "-jar" in call.texts[:-1]:
        place = call.texts.index("-jar") + 1
        name = call.texts[place].rpartition("/")[2].removesuffix(".jar")
        yield Runs((Word(name), *call.arguments[place + 1 :]))
