"""Running one hook: told on stdin, heard on stdout and stderr, ended with all it started when it takes too long."""

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from duckflow.extensions.hook_files import FOLDER_NAMES, Hook
from duckflow.programs.find import find_program
from duckflow.programs.process import Pipe
from duckflow.safety.environment import looks_secret
from duckflow.state.noun import shorten
from duckflow.state.phrase import Phrase, say

MOST_PRINTED = 1_000_000
LONGEST_TEXT = 10_000
DRAINED_SECONDS = 0.5
REFUSED = 2
SHOWN = 120
SPEAKING = ("UserPromptSubmit", "SessionStart")
"""Events whose hooks may print plain text for the model."""
Decision = Literal["", "allow", "ask", "deny"]
DECISIONS: dict[str, Decision] = {
    "allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny", "block": "deny",
}  # fmt: skip


class HookReply(NamedTuple):
    """What a hook wants. `problem`: it did not do as hooks do, and nothing follows from it."""

    decision: Decision = ""
    reason: str = ""
    context: str = ""
    message: str = ""
    """For the user."""
    updated: dict[str, Any] | None = None
    stops: bool = False
    problem: Phrase | None = None


class Printed(NamedTuple):
    code: int
    out: str
    err: str


class FloodError(Exception):
    """It printed more than anybody reads."""


def hook_environment(given: Mapping[str, str], also: tuple[str, ...], folder: Path) -> dict[str, str]:
    """The user's own, without what looks like a secret."""
    seen = {name: value for name, value in given.items() if name in also or not looks_secret(name, value)}
    return seen | dict.fromkeys(FOLDER_NAMES, str(folder))


async def run_hook(hook: Hook, told: Mapping[str, Any], environment: Mapping[str, str]) -> HookReply:
    """Never raises but when it is cancelled: then everything it started is ended as well."""
    name = shorten(hook.shown, SHOWN)
    try:
        async with asyncio.timeout(hook.seconds):
            about = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            printed = await _printed(hook, about, environment)
    except TimeoutError:
        return HookReply(problem=say("hook.too_slow", command=name, seconds=hook.seconds))
    except FloodError:
        return HookReply(problem=say("hook.flood", command=name))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", "") or str(problem)
        return HookReply(problem=say("hook.not_started", command=name, reason=reason))
    return read_reply(hook.event, name, printed)


def read_reply(event: str, name: str, printed: Printed) -> HookReply:
    """2 refuses, with what stands on stderr as the reason; 0 counts with what stdout says; all else is a failure."""
    out, err = printed.out.strip(), printed.err.strip()
    if printed.code == REFUSED:
        return HookReply("deny", (err or name)[:LONGEST_TEXT])
    if printed.code:
        reason = shorten(err or out, SHOWN)
        return HookReply(problem=say("hook.failed", command=name, code=printed.code, reason=reason))
    if not out.startswith("{"):
        return HookReply(context=out[:LONGEST_TEXT] if event in SPEAKING else "")
    try:
        given: Any = json.loads(out)
    except (ValueError, RecursionError):
        return HookReply(problem=say("hook.garbage", command=name, text=shorten(out, SHOWN)))
    return _from_json(event, name, cast("dict[str, Any]", given))


def _from_json(event: str, name: str, given: dict[str, Any]) -> HookReply:
    specific: Any = given.get("hookSpecificOutput")
    inner = cast("dict[str, Any]", specific) if isinstance(specific, dict) else {}
    wanted, reason = inner.get("permissionDecision"), inner.get("permissionDecisionReason")
    if event != "PreToolUse" or wanted is None:
        wanted, reason = given.get("decision"), given.get("reason")
    decision = DECISIONS.get(str(wanted), "")
    if event != "PreToolUse" and decision != "deny":
        decision = ""
    updated: Any = inner.get("updatedInput")
    stops = given.get("continue") is False
    return HookReply(
        decision,
        _text(reason) or (_text(given.get("stopReason")) if stops else "") or (name if decision or stops else ""),
        _text(inner.get("additionalContext")) or _text(given.get("additionalContext")),
        _text(given.get("systemMessage")),
        cast("dict[str, Any]", updated) if isinstance(updated, dict) else None,
        stops,
    )


def _text(value: Any) -> str:
    return value.strip()[:LONGEST_TEXT] if isinstance(value, str) else ""


async def _printed(hook: Hook, told: bytes, environment: Mapping[str, str]) -> Printed:
    shell = find_program("bash", hook.folder) or "/bin/sh"
    argv = (hook.command, *hook.arguments) if hook.arguments is not None else (shell, "-c", hook.command)
    out, err, flooded = bytearray(), bytearray(), asyncio.Event()
    # Pipes of our own: asyncio would wait for whatever still holds its pipes after the program has ended.
    pipes = [Pipe(partial(_take, into, flooded)) for into in (out, err)]
    try:
        child = await _start(argv, told, hook.folder, environment, pipes)
        ended = asyncio.create_task(child.wait())
        too_much = asyncio.create_task(flooded.wait())
        try:
            await asyncio.wait([ended, too_much], return_when=asyncio.FIRST_COMPLETED)
            if flooded.is_set():
                raise FloodError
            code = await ended
            for pipe in pipes:
                await pipe.drained(DRAINED_SECONDS)
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
            too_much.cancel()
            await asyncio.gather(ended, too_much, return_exceptions=True)
    finally:
        for pipe in pipes:
            pipe.close()
    return Printed(128 - code if code < 0 else code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


async def _start(
    argv: Sequence[str], told: bytes, folder: Path, environment: Mapping[str, str], pipes: Sequence[Pipe]
) -> asyncio.subprocess.Process:
    with tempfile.TemporaryFile() as given:
        given.write(told)
        given.seek(0)
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=given,
            stdout=pipes[0].end,
            stderr=pipes[1].end,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
    for pipe in pipes:
        pipe.started()
    return child


def _take(into: bytearray, flooded: asyncio.Event, piece: bytes) -> None:
    """What comes after too much is read and dropped, so that nobody waits at a full pipe."""
    if len(into) <= MOST_PRINTED:
        into += piece
    else:
        flooded.set()
