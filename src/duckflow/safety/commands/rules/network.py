"""Connections that hand the machine, or its secrets, to somebody else."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.rules.http import judge_sending
from duckflow.safety.commands.verdict import CommandFinding, danger

EXECUTES = re.compile(r"^(?:-[a-z]*[ec]|--exec|--sh-exec|--lua-exec)$")
SOCAT = re.compile(r"\b(?:EXEC|SYSTEM|SHELL):", re.IGNORECASE)
SOCKET = re.compile(r"/dev/(?:tcp|udp)/")


def judge_netcat(call: Invocation) -> Iterator[CommandFinding]:
    if any(EXECUTES.match(text) for text in call.texts):
        yield danger("remote_shell", program=call.program)
    yield from judge_sending(call)


def judge_socat(call: Invocation) -> Iterator[CommandFinding]:
    if any(SOCAT.search(text) for text in call.texts):
        yield danger("remote_shell", program=call.program)


def judge_sockets(call: Invocation) -> Iterator[CommandFinding]:
    """Bash opens connections by file name."""
    for redirect in call.redirects:
        if SOCKET.search(redirect.target.text):
            yield danger("remote_shell", program=call.program if call.words else "")
    if any(SOCKET.search(text) for text in call.texts):
        yield danger("remote_shell", program=call.program)
