"""Running one hook: told on stdin, heard on stdout and stderr, ended with all it started when it takes too long."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.extensions.hook_files import Hook
from duckflow.programs.find import find_shell
from duckflow.programs.launch import Launch
from duckflow.programs.run import FloodError, Printed, collect
from duckflow.safety.brought.launch import FOLDER_NAMES, CannotRunError, without_folder
from duckflow.safety.environment import looks_secret
from duckflow.state.message import Message
from duckflow.state.noun import as_table, as_text, shorten
from duckflow.state.phrase import Phrase, say
from duckflow.store.paths import make_private
from duckflow.whole_text import read_json

AS_OTHERS: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
"""Some hooks look for words in it as others write them: without spaces."""


class HookTranscript:
    """Written on as far as it goes before a hook is told of it; only this session's messages since it began."""

    def __init__(self, path: Path, session_id: str, folder: str) -> None:
        self.path = path
        self._about = {"sessionId": session_id, "cwd": folder}
        self._written: int | None = None

    def write(self, messages: Sequence[Message]) -> str:
        """Where it is; nothing where it cannot be written."""
        try:
            if self._written is None:
                self.path.unlink(missing_ok=True)
                make_private(self.path)
                self._written = 0
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                for message in messages[self._written :]:
                    file.write(json.dumps({**self._about, **_entry(message)}, **AS_OTHERS) + "\n")
        except OSError:
            return ""
        self._written = len(messages)
        return str(self.path)


def said_by(message: Message) -> str:
    """What the model has said to the user in it, or why it acted."""
    return message.text or (message.decision.rationale if message.decision else "")


def _entry(message: Message) -> dict[str, Any]:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(message.at))
    if message.role == "assistant":
        content: list[dict[str, Any]] = [{"type": "text", "text": said_by(message)}]
    elif message.role == "tool":
        content = [{"type": "tool_result", "tool_use_id": message.answers, "content": message.text}]
    else:
        content = [{"type": "text", "text": message.text}]
    role = "assistant" if message.role == "assistant" else "user"
    kind = "system" if message.role == "system" else role
    return {"type": kind, "timestamp": when, "uuid": message.message_id, "message": {"role": role, "content": content}}


MOST_PRINTED = 1_000_000
LONGEST_TEXT = 10_000
REFUSED = 2
SHOWN = 120
LONGEST_REASON = 600
SPEAKING = ("UserPromptSubmit", "SessionStart")
"""Events whose hooks may print plain text for the model."""
DECIDING = ("PreToolUse", "PermissionRequest")
"""Events whose hooks may also say yes."""
Decision = Literal["", "allow", "ask", "deny"]
DECISIONS: dict[str, Decision] = {
    "allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny", "block": "deny",
}  # fmt: skip


class HookReply(NamedTuple):
    """What a hook wants. `problem`: it did not do as hooks do."""

    decision: Decision = ""
    reason: str = ""
    context: str = ""
    message: str = ""
    """For the user."""
    updated: dict[str, Any] | None = None
    output: str | None = None
    """What the model is to see in place of a result."""
    stops: bool = False
    problem: Phrase | None = None


def hook_environment(given: Mapping[str, str], also: tuple[str, ...], folder: Path) -> dict[str, str]:
    """The user's own, without what looks like a secret."""
    seen = {name: value for name, value in given.items() if name in also or not looks_secret(name, value)}
    return seen | dict.fromkeys(FOLDER_NAMES, str(folder))


def own_launch(hook: Hook, environment: Mapping[str, str]) -> Launch:
    """A hook of the user's own, with the user's rights. What it leaves in the background, such as a sound that is
    played, goes on."""
    line = (find_shell(hook.folder), "-c", hook.command)
    argv = line if hook.arguments is None else (hook.command, *hook.arguments)
    return Launch(argv, hook.folder, without_folder(environment, hook.folder, hook.shown), leaves_rest=True)


async def run_hook(hook: Hook, told: Mapping[str, Any], launch: Callable[[], Awaitable[Launch]]) -> HookReply:
    """Never raises but when it is cancelled: then everything it started is ended as well."""
    name = shorten(hook.shown, SHOWN)
    try:
        about = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        printed = await collect(await launch(), about, hook.seconds, MOST_PRINTED)
    except TimeoutError:
        reply = HookReply(problem=say("hook.too_slow", command=name, seconds=hook.seconds))
    except FloodError:
        reply = HookReply(problem=say("hook.flood", command=name))
    except CannotRunError as problem:
        reply = HookReply(problem=say(problem.key, command=name))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", "") or str(problem)
        reply = HookReply(problem=say("hook.not_started", command=name, reason=reason))
    else:
        reply = read_reply(hook.event, name, printed)
    # A guard that cannot do its work must not count as not there: breaking it would disarm it.
    return reply._replace(decision="ask") if reply.problem and hook.event == "PreToolUse" else reply


def read_reply(event: str, name: str, printed: Printed) -> HookReply:
    """2 refuses, with what stands on stderr as the reason; 0 counts with what stdout says; all else is a failure."""
    out, err = (stream.decode("utf-8", "replace").strip() for stream in (printed.out, printed.err))
    if printed.code == REFUSED:
        return HookReply("deny", (err or name)[:LONGEST_TEXT])
    if printed.code:
        reason = shorten(err or out, LONGEST_REASON)
        return HookReply(problem=say("hook.failed", command=name, code=printed.code, reason=reason))
    if not out.startswith("{"):
        return HookReply(context=out[:LONGEST_TEXT] if event in SPEAKING else "")
    given = read_json(out)
    if given is None:
        return HookReply(problem=say("hook.garbage", command=name, text=shorten(out, SHOWN)))
    return _from_json(event, name, given)


def _from_json(event: str, name: str, given: dict[str, Any]) -> HookReply:
    inner = as_table(given.get("hookSpecificOutput"))
    answer = as_table(inner.get("decision"))
    wanted = inner.get("permissionDecision") or answer.get("behavior")
    reason = inner.get("permissionDecisionReason") or answer.get("message")
    if event not in DECIDING or wanted is None:
        wanted, reason = given.get("decision"), given.get("reason")
    decision = DECISIONS.get(str(wanted), "")
    if event not in DECIDING and decision != "deny":
        decision = ""
    updated: Any = inner.get("updatedInput", answer.get("updatedInput"))
    stops = given.get("continue") is False or answer.get("interrupt") is True
    return HookReply(
        decision,
        _text(reason) or (_text(given.get("stopReason")) if stops else "") or (name if decision or stops else ""),
        _text(inner.get("additionalContext")) or _text(given.get("additionalContext")),
        _text(given.get("systemMessage")),
        as_table(updated) if isinstance(updated, dict) else None,
        _output(inner.get("updatedToolOutput", inner.get("updatedMCPToolOutput"))),
        stops,
    )


def _output(given: Any) -> str | None:
    """A text, the parts of a result in the shape in which hooks are told of it, or any other JSON as it is."""
    if given is None or isinstance(given, str):
        return given
    texts = [as_text(value) for key, value in as_table(given).items() if key in ("stdout", "stderr", "content")]
    return "\n".join(filter(None, texts)) if texts else as_text(given) or json.dumps(given, ensure_ascii=False)


def _text(value: Any) -> str:
    return value.strip()[:LONGEST_TEXT] if isinstance(value, str) else ""
