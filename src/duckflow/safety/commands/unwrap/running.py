"""Options of everyday programs that make them run a command."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.verdict import ask

RUNNING: dict[str, tuple[str, ...]] = {
    "tar": ("--to-command", "--checkpoint-action", "--use-compress-program", "--rsh-command", "-I", "-F"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S", "-oProxyCommand", "ProxyCommand"),
    "sftp": ("-S", "-oProxyCommand", "ProxyCommand"),
    "man": ("-P", "--pager", "-H", "--html"),
    "less": ("+!",),
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "rg": ("--pre", "--hostname-bin"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "fdfind": ("-x", "-X", "--exec", "--exec-batch"),
    "zip": ("-TT", "--unzip-command"),
    "script": ("-c", "--command"),
    "runuser": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "tmux": ("new-session", "new", "neww", "new-window", "split-window", "send-keys", "run-shell", "if-shell"),
    "screen": ("-X", "-dm", "-dmS", "-m"),
    "nix-shell": ("--run", "--command"),
    "nix": ("-c", "--command"),
    "make": ("SHELL", "--eval"),
    "ansible": ("-a", "--args"),
    "kubectl": ("--",),
    "oc": ("--",),
    "gcc": ("-wrapper",),
}
SHORT = 2


def judge_running(call: Invocation) -> Iterator[Opinion]:
    """The command is attached to the option, or is the next word, or all the words after it."""
    for place, text in enumerate(call.texts):
        for name in RUNNING[call.program]:
            inside = _value(text, name)
            if inside is None:
                continue
            yield ask("option_changes", program=call.program, option=text)
            after = call.arguments[place + 1 :]
            while after and after[0].text.startswith("-"):
                after = after[1:]
            if inside:
                yield RunsText(inside.removeprefix("exec="))
            elif after:
                yield RunsText(after[0].text)
                yield Runs(after)
            break


def _value(text: str, name: str) -> str | None:
    """What stands in the same word as the option; empty when it comes after, None when this is another word."""
    if text == name:
        return ""
    if text.startswith(f"{name}="):
        return text[len(name) + 1 :]
    if len(name) == SHORT and not text.startswith("--"):
        if text.startswith(name) and name != "--":
            return text[SHORT:]
        if re.fullmatch(rf"-[a-zA-Z]*{re.escape(name[1])}", text):
            return ""
    return None


def judge_java(call: Invocation) -> Iterator[Opinion]:
    """A jar is a program like any other."""
    yield ask("runs_code", program=call.program)
    if "-jar" in call.texts[:-1]:
        place = call.texts.index("-jar") + 1
        name = call.texts[place].rpartition("/")[2].removesuffix(".jar")
        yield Runs((Word(name), *call.arguments[place + 1 :]))
