"""One request, assembled: stable text first, then the conversation, volatile text last."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from duckflow.prompts.template import descriptions, render
from duckflow.state.action import Action
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.operation import Operation
from duckflow.state.prompt import PromptMessage

LANGUAGE_NAMES = {"en": {"en": "English", "ja": "Japanese"}, "ja": {"en": "英語", "ja": "日本語"}}
REQUEST_LENGTH = 2000


@dataclass(frozen=True)
class Moment:
    """What the prompt says of this loop."""

    limit: int = 15
    note: str = ""
    corrections: Sequence[PromptMessage] = field(default_factory=tuple)


class Compiler:
    """Turns state and conversation into the messages of a request."""

    def __init__(self, operations: Sequence[Operation], agents_md: str = "") -> None:
        self._operations = tuple(operations)
        self._agents_md = agents_md

    def main(self, state: AgentState, history: Iterable[Message], moment: Moment) -> tuple[PromptMessage, ...]:
        """The request for the next Decision."""
        volatile = PromptMessage("user", self._volatile(state, moment))
        return alternate([self._stable(state), *map(spoken, history), volatile, *moment.corrections])

    def body(
        self, state: AgentState, history: Sequence[Message], action: Action, operation: Operation
    ) -> tuple[PromptMessage, ...]:
        """The request for the raw text that an action needs, on the same cached prefix."""
        request = next((message.text for message in reversed(history) if message.role == "user"), "")
        wish = render(
            state.language,
            f"body_{operation.body}",
            path=str(action.args.get("path", "")),
            why=action.reasoning,
            request=request[:REQUEST_LENGTH],
        )
        return alternate([self._stable(state), *map(spoken, history), PromptMessage("user", wish)])

    def correction(self, language: str, reply: str, reason: str) -> tuple[PromptMessage, PromptMessage]:
        """A reply that could not be used, and why."""
        told = render(language, "correction", reason=reason)
        return PromptMessage("assistant", reply or "…"), PromptMessage("user", told)

    def go_on(self, language: str, text: str) -> tuple[PromptMessage, PromptMessage]:
        """A body that was cut off, to be continued."""
        return PromptMessage("assistant", text), PromptMessage("user", render(language, "continue_body"))

    def _stable(self, state: AgentState) -> PromptMessage:
        language = state.language
        base = render(language, "base", language_name=LANGUAGE_NAMES[language][language])
        session = render(language, "session", folder=state.folder, agents_md=self._agents_md)
        # The part that is the same in every session comes first: a cache can keep it from one session to the next.
        return PromptMessage("system", "\n\n".join((base, self._format(language), session)))

    def _format(self, language: str) -> str:
        with_body = ", ".join(operation.name for operation in self._operations if operation.body)
        return render(
            language,
            "format",
            body_rule=render(language, "body_rule", body_operations=with_body) if with_body else "",
            operations="\n".join(f"- {signature(one)}: {descriptions(language)[one.name]}" for one in self._operations),
        )

    def _volatile(self, state: AgentState, moment: Moment) -> str:
        five = state.five
        return render(
            state.language,
            "main",
            step=state.phase,
            status=state.status,
            loop=str(state.loop),
            limit=str(moment.limit),
            goal=five.goal,
            why_now=five.why_now,
            constraints="; ".join(five.constraints),
            plan_brief="; ".join(five.plan_brief),
            open_questions="; ".join(five.open_questions),
            decisions="; ".join(state.decision_log[-3:]),
            files_changed=", ".join(state.files_changed[-8:]),
            note=moment.note,
        )


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
