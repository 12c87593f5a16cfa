"""One request, assembled: stable text first, then the conversation, volatile text last."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from duckflow.prompts.body import plain_body
from duckflow.prompts.offer import Profile, offered
from duckflow.prompts.template import descriptions, render
from duckflow.state.action import Action
from duckflow.state.agent import AgentState
from duckflow.state.evidence import recorded
from duckflow.state.job import ENDED
from duckflow.state.message import Message
from duckflow.state.noun import shorten
from duckflow.state.operation import Operation
from duckflow.state.phase import Phase
from duckflow.state.progress import job_line, plan_line
from duckflow.state.prompt import PromptMessage

LANGUAGE_NAMES = {"en": {"en": "English", "ja": "Japanese"}, "ja": {"en": "英語", "ja": "日本語"}}
REQUEST_LENGTH = 2000


@dataclass(frozen=True)
class Moment:
    """What the prompt says of this loop, and to what size of model."""

    profile: Profile = "full"
    limit: int = 15
    note: str = ""
    corrections: Sequence[PromptMessage] = field(default_factory=tuple)
    evidence: str = ""


def nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Project:
    """What is said of the work folder: its rules, what earlier sessions tell, and what was learned."""

    agents_md: str = ""
    known: Callable[[], str] = nothing
    lessons: Callable[[], str] = nothing
    there: Callable[[str], bool] = bool
    """Whether a file is there."""


@dataclass(frozen=True)
class BodyMoment:
    """For whom a text is asked, what stands in the file now, and the request where it is not the user's last word."""

    profile: Profile = "full"
    current: str = ""
    request: str = ""


class Compiler:
    """Turns state and conversation into the messages of a request."""

    def __init__(self, operations: Sequence[Operation], project: Project | None = None) -> None:
        self._operations = tuple(operations)
        self._project = project or Project()
        # Once a session: what comes first in a request must not change, or a provider's cache is lost.
        self._known = self._project.known()

    def main(self, state: AgentState, history: Iterable[Message], moment: Moment) -> tuple[PromptMessage, ...]:
        """The request for the next Decision."""
        history = list(history)
        volatile = PromptMessage("user", self._volatile(state, history, moment))
        stable = self._stable(state, moment.profile)
        return alternate([stable, *map(spoken, history), volatile, *moment.corrections])

    def body(
        self, state: AgentState, history: Sequence[Message], action: Action, kind: str, moment: BodyMoment
    ) -> tuple[PromptMessage, ...]:
        """The request for the raw text that an action needs: on the same cached prefix, or all by itself."""
        path, request = str(action.args.get("path", "")), moment.request or asked(history)[:REQUEST_LENGTH]
        profile = moment.profile
        if profile == "compact" and kind == "content":
            return plain_body(state.language, path, moment.current, request, action.reasoning, history)
        wish = render(state.language, f"body_{kind}", path=path, why=action.reasoning, request=request)
        return alternate([self._stable(state, profile), *map(spoken, history), PromptMessage("user", wish)])

    def correction(self, language: str, reply: str, reason: str) -> tuple[PromptMessage, PromptMessage]:
        """A reply that could not be used, and why."""
        told = render(language, "correction", reason=reason)
        return PromptMessage("assistant", reply or "…"), PromptMessage("user", told)

    def summary(self, language: str, material: str) -> tuple[PromptMessage, ...]:
        """The request for a summary of what left the context."""
        base = render(language, "base", language_name=LANGUAGE_NAMES[language][language])
        return PromptMessage("system", base), PromptMessage("user", render(language, "summary", material=material))

    def go_on(self, language: str, text: str) -> tuple[PromptMessage, PromptMessage]:
        """A body that was cut off, to be continued."""
        return PromptMessage("assistant", text), PromptMessage("user", render(language, "continue_body"))

    def mend(self, language: str, text: str, path: str, fault: str) -> tuple[PromptMessage, PromptMessage]:
        """A body with a mistake that can be seen without running it."""
        told = render(language, "mend_body", path=path, fault=fault)
        return PromptMessage("assistant", text), PromptMessage("user", told)

    def try_out(self, language: str, text: str, path: str) -> tuple[PromptMessage, PromptMessage]:
        """A script that calls what was just written."""
        module = path.rpartition("/")[2].removesuffix(".py")
        told = render(language, "body_try", module=module)
        return PromptMessage("assistant", f"```\n{text}```"), PromptMessage("user", told)

    def _stable(self, state: AgentState, profile: Profile) -> PromptMessage:
        language = state.language
        base = render(language, "base", language_name=LANGUAGE_NAMES[language][language])
        session = render(language, "session", folder=state.folder, known=self._known, agents_md=self._project.agents_md)
        # The part that is the same in every session comes first: a cache can keep it from one session to the next.
        return PromptMessage("system", "\n\n".join((base, self._format(state, profile), session)))

    def _format(self, state: AgentState, profile: Profile) -> str:
        language, operations = state.language, offered(self._operations, profile, state)
        with_body = ", ".join(operation.name for operation in operations if operation.body)
        return render(
            language,
            "format" if profile == "full" else "format_compact",
            body_rule=render(language, "body_rule", body_operations=with_body) if with_body else "",
            operations="\n".join(f"- {signature(one)}: {descriptions(language)[one.name]}" for one in operations),
        )

    def _volatile(self, state: AgentState, history: Sequence[Message], moment: Moment) -> str:
        five = state.five
        values = {
            "goal": five.goal,
            "constraints": "; ".join(five.constraints),
            "note": moment.note,
            **plan_line(state.plan),
            "evidence": moment.evidence,
            "lessons": self._project.lessons(),
        }
        if moment.profile == "compact":
            done = "; ".join(
                gist(message) for message in history if message.role == "tool" and message.turn == state.turn
            )
            return render(state.language, "main_compact", request=shorten(asked(history), 500), done=done, **values)
        return render(
            state.language,
            "main",
            step=state.phase,
            status=state.status,
            loop=str(state.loop),
            limit=str(moment.limit),
            why_now=five.why_now,
            plan_brief="; ".join(five.plan_brief),
            open_questions="; ".join(five.open_questions),
            decisions="; ".join(state.decision_log[-3:]),
            files_changed=", ".join(state.files_changed[-8:]),
            shown=self._shown(state),
            jobs="; ".join(job_line(state, job) for job in state.jobs.values() if job.status not in ENDED),
            **values,
        )

    def _shown(self, state: AgentState) -> str:
        """What a review goes by; also told where a plan is carried out and something was run."""
        carried_out = state.plan is not None and state.plan.status == "in_progress"
        if state.phase is not Phase.REVIEW and not (carried_out and state.evidence):
            return ""
        return recorded(state.evidence, state.files_changed[-8:], self._project.there)


def asked(history: Sequence[Message]) -> str:
    """The user's latest message."""
    return next((message.text for message in reversed(history) if message.role == "user"), "")


def gist(message: Message) -> str:
    """A result in one short line."""
    return shorten(f"{message.operation}: {message.text.partition(chr(10))[0]}", 100)


def signature(operation: Operation) -> str:
    """`file_ops.read_file(path, start_line?, end_line?)`; what travels outside the JSON is left out."""
    required: list[str] = operation.parameters.get("required", [])
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    names = [name if name in required else f"{name}?" for name in properties if name != operation.body]
    return f"{operation.name}({', '.join(names)})"


def spoken(message: Message) -> PromptMessage:
    """How a message of the conversation reads in a request."""
    match message.role:
        case "assistant":
            return PromptMessage("assistant", message.text)
        case "tool":
            return PromptMessage("user", f"[result of {message.operation}]\n{message.text}")
        case "system":
            return PromptMessage("user", f"[duckflow]\n{message.text}")
        case "user":
            return PromptMessage("user", message.text)


def alternate(messages: Iterable[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Join neighbours of the same role: endpoints want user and assistant to take turns."""
    joined: list[PromptMessage] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            joined[-1] = PromptMessage(message.role, f"{joined[-1].text}\n\n{message.text}")
        else:
            joined.append(message)
    return tuple(joined)
