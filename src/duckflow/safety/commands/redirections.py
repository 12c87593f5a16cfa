"""Where output goes: nowhere, into a file, over something that matters."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.rules.deleting import judge_written
from duckflow.safety.commands.secret_names import is_secret
from duckflow.safety.commands.targets import is_outside
from duckflow.safety.commands.verdict import CommandFinding, ask

NOWHERE = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))


def judge_redirects(call: Invocation) -> Iterator[CommandFinding]:
    for redirect in call.redirects:
        target = redirect.target
        if not target.plain:
            yield ask("expands", word=target.text)
        if redirect.writes and target.text not in NOWHERE:
            yield ask("writes_file", path=target.text)
            if is_outside(target, call.scene):
                yield ask("writes_outside", path=target.text)
            yield from judge_written(call, target)
        elif redirect.operator == "<" and is_secret(target.text):
            yield ask("reads_secret", path=target.text)
