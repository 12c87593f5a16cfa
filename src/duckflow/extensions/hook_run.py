"""Runs one hook: it gets the event on stdin and replies on stdout and stderr. If it takes too long, it is ended with
everything that it started."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.extensions.hook_files import Hook
from duckflow.programs.find import find_shell, worked_in
from duckflow.programs.launch import Launch
from duckflow.programs.run import FloodError, Printed, collect
from duckflow.safety.brought.launch import FOLDER_NAMES, CannotRunError, without_folder
from duckflow.safety.environment import looks_secret
from duckflow.state.data import Phrase, as_table, as_text, say, shorten
from duckflow.state.message import Message
from duckflow.whole_file import make_private
from duckflow.whole_text import read_json

AS_OTHERS: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
"""The options for JSON in the exact form that other assistants write. Some hooks search this text for words."""


class HookTranscript:
    """A file with messages for hooks to read. It is brought up to date before a hook gets its path, and holds only
    messages since this session began."""

    def __init__(self, path: Path, session_id: str, folder: str) -> None:
        self.path = path
        self._about = {"sessionId": session_id, "cwd": folder}
        self._written: int | None = None

    def write(self, messages: Sequence[Message]) -> str:
        """Adds the new messages to the file and returns its path; an empty text if the file cannot be written."""
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
    """Returns the text of the message for the user; if it has none, the model's reason for its actions."""
    return message.text or (message.decision.rationale if message.decision else "")


def _entry(message: Message) -> dict[str, Any]:
    timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(message.at))
    if message.role == "assistant":
        content: list[dict[str, Any]] = [{"type": "text", "text": said_by(message)}]
    elif message.role == "tool":
        content = [{"type": "tool_result", "tool_use_id": message.answers, "content": message.text}]
    else:
        content = [{"type": "text", "text": message.text}]
    role = "assistant" if message.role == "assistant" else "user"
    kind = "system" if message.role == "system" else role
    return {
        "type": kind,
        "timestamp": timestamp,
        "uuid": message.message_id,
        "message": {"role": role, "content": content},
    }


MOST_PRINTED = 1_000_000
LONGEST_TEXT = 10_000
REFUSED = 2
SHOWN = 120
LONGEST_REASON = 600
SPEAKING = ("UserPromptSubmit", "SessionStart")
"""Events whose hooks may print plain text for the model."""
DECIDING = ("PreToolUse", "PermissionRequest")
"""Events whose hooks may also allow an action without a question to the user."""
Decision = Literal["", "allow", "ask", "deny"]
DECISIONS: dict[str, Decision] = {
    "allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny", "block": "deny",
}  # fmt: skip


class HookReply(NamedTuple):
    """The reply of a hook. `problem` says how it failed."""

    decision: Decision = ""
    reason: str = ""
    context: str = ""
    message: str = ""
    """A message for the user."""
    updated: dict[str, Any] | None = None
    output: str | None = None
    """The text that the model sees in place of the action's result."""
    stops: bool = False
    problem: Phrase | None = None


def hook_environment(environment: Mapping[str, str], named: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Returns the user's own environment, without variables that look like secrets. Variables that are `named` stay."""
    visible_variables = {
        name: value for name, value in environment.items() if name in named or not looks_secret(name, value)
    }
    return visible_variables | dict.fromkeys(FOLDER_NAMES, str(folder))


def own_launch(hook: Hook, environment: Mapping[str, str]) -> Launch:
    """Returns the launch of a hook of the user's own, with the user's rights. Processes that it leaves in the
    background, such as a sound that is played, go on."""
    line = (find_shell(hook.folder), "-c", hook.command)
    argv = line if hook.arguments is None else (hook.command, *hook.arguments)
    for top in worked_in(hook.folder):
        environment = without_folder(environment, top, hook.shown)
    return Launch(argv, hook.folder, environment, leaves_rest=True)


async def run_hook(hook: Hook, told: Mapping[str, Any], launch: Callable[[], Awaitable[Launch]]) -> HookReply:
    """Runs a hook and returns its reply. A failing hook never raises. If the call is cancelled, everything that the
    hook started is ended as well."""
    name = shorten(hook.shown, SHOWN)
    try:
        input_json = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        hook_output = await collect(await launch(), input_json, hook.seconds, MOST_PRINTED)
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
        reply = read_reply(hook.event, name, hook_output)
    # A hook that guards something and fails must not count as absent: otherwise breaking it would disarm it.
    return reply._replace(decision="ask") if reply.problem and hook.event == "PreToolUse" else reply


def read_reply(event: str, name: str, printed: Printed) -> HookReply:
    """Reads a hook's reply. The exit code 2 means a refusal, with stderr as the reason; with 0 the reply is in stdout;
    any other code means that the hook has failed."""
    out_text, err_text = (stream.decode("utf-8", "replace").strip() for stream in (printed.out, printed.err))
    if printed.code == REFUSED:
        return HookReply("deny", (err_text or name)[:LONGEST_TEXT])
    if printed.code:
        reason = shorten(err_text or out_text, LONGEST_REASON)
        return HookReply(problem=say("hook.failed", command=name, code=printed.code, reason=reason))
    if not out_text.startswith("{"):
        return HookReply(context=out_text[:LONGEST_TEXT] if event in SPEAKING else "")
    fields = read_json(out_text)
    if fields is None:
        return HookReply(problem=say("hook.garbage", command=name, text=shorten(out_text, SHOWN)))
    return _from_json(event, name, fields)


def _from_json(event: str, name: str, fields: dict[str, Any]) -> HookReply:
    specific_output = as_table(fields.get("hookSpecificOutput"))
    answer = as_table(specific_output.get("decision"))
    wanted_decision = specific_output.get("permissionDecision") or answer.get("behavior")
    reason = specific_output.get("permissionDecisionReason") or answer.get("message")
    if event not in DECIDING or wanted_decision is None:
        wanted_decision, reason = fields.get("decision"), fields.get("reason")
    decision = DECISIONS.get(str(wanted_decision), "")
    if event not in DECIDING and decision != "deny":
        decision = ""
    updated_input: Any = specific_output.get("updatedInput", answer.get("updatedInput"))
    stops = fields.get("continue") is False or answer.get("interrupt") is True
    return HookReply(
        decision,
        _text(reason) or (_text(fields.get("stopReason")) if stops else "") or (name if decision or stops else ""),
        _text(specific_output.get("additionalContext")) or _text(fields.get("additionalContext")),
        _text(fields.get("systemMessage")),
        as_table(updated_input) if isinstance(updated_input, dict) else None,
        _output(specific_output.get("updatedToolOutput", specific_output.get("updatedMCPToolOutput"))),
        stops,
    )


def _output(output: Any) -> str | None:
    """Returns the replaced output: a text, the parts of a result in the shape in which hooks get results, or any other
    JSON as it is."""
    if output is None or isinstance(output, str):
        return output
    texts = [as_text(value) for key, value in as_table(output).items() if key in ("stdout", "stderr", "content")]
    return "\n".join(filter(None, texts)) if texts else as_text(output) or json.dumps(output, ensure_ascii=False)


def _text(value: Any) -> str:
    return value.strip()[:LONGEST_TEXT] if isinstance(value, str) else ""
