"""Signatures of texts. Two texts that differ only in times, addresses or temporary paths have the same signature.

They are computed from a sample of the text, so that a step costs microseconds however long its result is. Signatures
are valid within one process only; after a resume they are computed again from the journal.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.language import contains, joined
from duckflow.state.action import Action, ActionResult, StepKind, succeeded

HEAD, TAIL = 1500, 500
SHORT = 300
LABEL = 80

CLOCK = r"[0-9]++(?::[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?|(?:\.[0-9]++)?+ ?+(?:[nuµm]?s|secs?|seconds?|mins?|minutes?)\b)"
ADDRESS = r"0x[0-9a-fA-F]{4,}"
TEMPORARY = (
    r"(?<=/tmp/)(?:tmp[._]?\w{6,12}|pytest-of-[^/\s]+/pytest-[0-9]+|[\w.-]*[0-9]{4,}[\w.-]*)|/var/folders/[^\s'\"]+"
)
QUOTED = r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|「[^」\n]*」"
NUMBER = r"[0-9]+"
TAG = r"</?[A-Za-z_][\w-]*>"
WORD = r"\w"
NEVER_RAN = ("command not found", "not recognized as", "no such file or directory", "permission denied")


def take_sample(text: str) -> str:
    if len(text) <= HEAD + TAIL:
        return text
    return f"{text[:HEAD]}\n{text.count(chr(10))}\n{text[-TAIL:]}"


def strip_changing(text: str) -> str:
    """Returns the text without parts that change by themselves, such as times and addresses."""
    if "0x" in text:
        text = re.sub(ADDRESS, "#", text)
    if "/tmp/" in text or "/var/folders/" in text:
        text = re.sub(TEMPORARY, "#", text)
    return re.sub(CLOCK, "#", text)


def plain_line(line: str) -> str:
    """Returns a line of output without anything that may change by itself, including numbers."""
    return re.sub(NUMBER, "#", strip_changing(line)).strip()


def call_signature(name: str, args: Mapping[str, Any] | str) -> int:
    """Returns a signature of a call that does not depend on the order of arguments. Long texts are not stripped."""
    text = canonical(args)
    return hash((name, strip_changing(text) if len(text) <= SHORT else text))


def canonical(args: Mapping[str, Any] | str) -> str:
    if isinstance(args, str):
        return args
    try:
        return json.dumps(args, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return repr(args)


def without_echo(text: str, args: Mapping[str, Any] | str) -> str:
    """Removes the arguments of the call from a short result, because an echo of the call is not new."""
    if len(text) < SHORT:
        for value in [args] if isinstance(args, str) else args.values():
            if isinstance(value, str) and len(value) > 2:
                text = text.replace(value, "·")
    return text


def result_signature(text: str, *, printed: bool) -> int:
    """Returns a signature of a result. Only printed output is stripped; the text of a file is compared as it is."""
    text = take_sample(text.strip())
    return hash(strip_changing(text) if printed else text)


def error_signature(text: str) -> int:
    """Returns a signature of an error's beginning without numbers and quotes; for a traceback, of its last line."""
    lines = [line for line in re.sub(TAG, "", take_sample(text)).split("\n") if re.search(WORD, line)]
    traced = bool(lines) and lines[0].lstrip().startswith("Traceback")
    telling = lines[-1] if traced else "\n".join(lines)[:SHORT]
    return hash(re.sub(NUMBER, "#", re.sub(QUOTED, "'", telling)).strip())


def is_empty(text: str) -> bool:
    """Says whether the text has nothing but spaces, brackets or tags."""
    return not text or (len(text) < LABEL and not re.search(WORD, re.sub(TAG, "", text)))


def says_nothing_found(text: str) -> bool:
    return len(text) < SHORT and contains("output.found_nothing", text)


def never_ran(text: str) -> bool:
    """Says whether a command could not be started, as opposed to one that ran and failed."""
    return len(text) < SHORT and any(phrase in text.lower() for phrase in NEVER_RAN)


def failures_in(text: str) -> int | None:
    """Returns the number of failures that the output itself states, in the last line that does."""
    failures = re.compile(rf"(?i){joined('output.failures', text)}")
    counts = failures.findall(text[-HEAD:]) or failures.findall(text[:HEAD])
    return int(next(filter(None, counts[-1]))) if counts else None


def name_call(name: str, args: Mapping[str, Any] | str) -> str:
    """Returns the name of a call for people: the operation and its first argument."""
    first = args if isinstance(args, str) else next((str(value) for value in args.values()), "")
    return f"{name} {' '.join(first[:LABEL].split())}".strip()


SEARCHED = r"(?m)^<{5,} ?SEARCH.*\n((?:.*\n)*?)={5,}$"


class LoopStep(NamedTuple):
    """One action with its result. `text` is the message of a step that talks; `tokens` is the usage of its loop."""

    name: str
    args: Mapping[str, Any] | str = ""
    result: str = ""
    is_error: bool = False
    kind: StepKind = "other"
    text: str = ""
    tokens: int = 0
    changed: tuple[str, ...] = ()
    """The files it changed."""
    error: str = ""
    """The kind of error, where the tool states it."""
    about: str = ""
    """The subject of the call, where the tool states it."""
    language: str = DEFAULT_LANGUAGE
    """The user's language."""
    tests: int = 0
    """Number of tests that ran, where a run of tests states it."""
    waits: bool = False
    """A command runs in the background, so looking again is waiting and not going in circles."""

    @property
    def subject(self) -> str:
        """The argument that says most about the call: the one that the tool names, else the first."""
        first = self.args if isinstance(self.args, str) else next((str(value) for value in self.args.values()), "")
        return self.about or first


def user_spoke(text: str = "", about: str = "", language: str = DEFAULT_LANGUAGE) -> LoopStep:
    """Makes a step for a message of the user, which resets all counts. `about` holds the goal and the plan."""
    return LoopStep("user", about, kind="user", text=text, language=language)


def decided_nothing(tokens: int = 0) -> LoopStep:
    """Makes a step for a Decision without any action."""
    return LoopStep("nothing", kind="talk", tokens=tokens)


def step_of(action: Action, result: ActionResult, tokens: int = 0) -> LoopStep:
    """Makes a step from a finished action. A tool that changed files counts as an edit, but a command as a run."""
    failed = not succeeded(result)
    kind = "edit" if result.changed and not failed and result.effect != "run" else result.kind
    text = str(action.args.get("text", "")) if kind == "talk" else ""
    error = "" if result.ok else result.for_user.key
    return LoopStep(
        action.operation,
        action.args,
        result.for_model,
        failed,
        kind,
        text,
        tokens,
        result.changed,
        error,
        action.about,
        tests=result.check.tests if result.check else 0,
    )


def replaced_texts(args: Mapping[str, Any] | str) -> list[str]:
    """Returns the texts that an edit replaces, as far as its arguments show them."""
    if isinstance(args, str):
        return []
    edits: Any = args.get("edits") or [args]
    if isinstance(edits, str):
        return re.findall(SEARCHED, edits)
    pairs = [cast("Mapping[str, Any]", edit) for edit in edits if isinstance(edit, Mapping)]
    return [str(pair["old"]) for pair in pairs if pair.get("old")]
