"""Compiles requests: text that stays the same comes first, text that changes comes last."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from duckflow.events.views import ContextPart
from duckflow.forms.calls import renamed, timely
from duckflow.forms.form import Form
from duckflow.i18n.template import one_line, quoted, render
from duckflow.i18n.words import languages_in
from duckflow.prompts.compact import CompactLayers
from duckflow.prompts.layers import Count, Layers, plan_line, without_pictures
from duckflow.state.action import PROPOSE_PLAN, READ_SKILL, RECALL, Action, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import Message, PromptMessage, last_request
from duckflow.state.profile import ANY_MODEL, ModelProfile

REQUEST_LENGTH = 2000


class Moment(NamedTuple):
    """The facts that the prompt of one loop (one call of the model) needs: the form of the reply, the model, its limit,
    notes and evidence."""

    form: Form
    profile: ModelProfile = ANY_MODEL
    limit: int = 15
    note: str = ""
    corrections: Sequence[PromptMessage] = ()
    evidence: str = ""


class BodyMoment(NamedTuple):
    """The facts for a request for a file's text: the model, the present content of the file, and the request if it is
    not the user's last message."""

    form: Form
    profile: ModelProfile = ANY_MODEL
    current: str = ""
    request: str = ""


class Compiler:
    """Turns state and conversation into the messages of a request."""

    def __init__(self, operations: Callable[[], Sequence[Operation]], layers: Layers) -> None:
        self.operations = operations
        self._full = layers
        self._compact = CompactLayers(layers.surroundings, layers.settings, layers.count)

    def narrowed(self, keep: Callable[[Operation], bool], adds: Sequence[Operation] = ()) -> "Compiler":
        """Makes a compiler for an agent that has only some operations, and maybe additional ones of its own."""
        return Compiler(lambda: [*(operation for operation in self.operations() if keep(operation)), *adds], self._full)

    def offered(self, state: AgentState, form: Form) -> tuple[Operation, ...]:
        """Returns the operations that the model is told of now, which depends on the form of its replies."""
        return form.offered(self.operations(), state)

    def main(self, state: AgentState, history: Iterable[Message], moment: Moment) -> tuple[PromptMessage, ...]:
        """Makes the request for the next Decision."""
        history = list(history)
        operations = self.offered(state, moment.form)
        volatile_texts = self._volatile(state, history, moment, operations).values()
        last_message = PromptMessage("user", "\n\n".join(filter(None, volatile_texts)), open_texts=_open_texts(history))
        first_message = self._stable(state, moment.profile, moment.form, operations)
        return (first_message, *self._spoken(state, history, moment), last_message, *moment.corrections)

    def body(
        self, state: AgentState, history: Sequence[Message], action: Action, kind: str, moment: BodyMoment
    ) -> tuple[PromptMessage, ...]:
        """Makes the request for the raw text that an action needs. It begins with the same cached prefix as other
        requests, or leaves the conversation out."""
        path, request = str(action.args.get("path", "")), moment.request or last_request(history)[:REQUEST_LENGTH]
        layers, reasoning = self._layers(moment.profile), action.reasoning
        if kind == "content" and (
            messages := layers.body(state.language, path, moment.current, request, reasoning, history)
        ):
            return tuple(message._replace(open_texts=_open_texts(history)) for message in messages)
        instruction = render(state.language, f"body_{kind}", path=path, why=reasoning, request=request)
        first_message = self._stable(state, moment.profile, moment.form, self.offered(state, moment.form))
        spoken_messages = self._spoken(state, history, Moment(moment.form, moment.profile))
        return (first_message, *spoken_messages, PromptMessage("user", instruction, open_texts=_open_texts(history)))

    def procedure(
        self, state: AgentState, name: str, values: dict[str, str], failures: Sequence[tuple[str, str]] = ()
    ) -> tuple[PromptMessage, ...]:
        """Makes a specialised request: the model's role, the project, and one procedure. The value `material`, if any,
        stands uncut before the procedure. `failures` are replies that could not be used, each with the reason."""
        layers = self._full
        known_texts = (layers.base(state), layers.session(state), layers.lessons(state.language))
        messages = [
            PromptMessage("system", "\n\n".join(filter(None, known_texts))),
            PromptMessage("user", values.pop("material", "")),
            PromptMessage(
                "user", layers.specialized(state.language, name, values), open_texts=_open_texts(state.messages)
            ),
        ]
        for reply, reason in failures:
            messages.append(PromptMessage("assistant", reply or "…"))
            messages.append(PromptMessage("user", render(state.language, "mend", reason=reason)))
        return tuple(message for message in messages if message.text)

    def correction(self, language: str, reply: str, reason: str, form: str) -> tuple[PromptMessage, PromptMessage]:
        """Returns a reply that could not be used, and the message that says why."""
        correction_text = render(language, "correction", reason=reason, form=form)
        return PromptMessage("assistant", reply or "…"), PromptMessage("user", correction_text)

    def summary(self, state: AgentState, material: str) -> tuple[PromptMessage, ...]:
        """Makes the request for a summary of the messages that left the context."""
        conversation = quoted(state.language, "conversation", material)
        instruction = render(state.language, "summary", material=conversation)
        return PromptMessage("system", self._full.base(state)), PromptMessage("user", instruction)

    def go_on(self, language: str, text: str) -> tuple[PromptMessage, PromptMessage]:
        """Returns two messages: a body (the text of a file) that was cut off, and the request to continue it."""
        return PromptMessage("assistant", text), PromptMessage("user", render(language, "continue_body"))

    def mend(self, language: str, text: str, path: str, fault: str) -> tuple[PromptMessage, PromptMessage]:
        """Returns two messages: a body (the text of a file) with a mistake that is visible without running it, and the
        request to mend it."""
        instruction = render(language, "mend_body", path=path, fault=fault)
        return PromptMessage("assistant", text), PromptMessage("user", instruction)

    def weighed(self, state: AgentState, history: Sequence[Message], moment: Moment) -> tuple[ContextPart, ...]:
        """Returns the parts of the next request with their tokens."""
        layers, language, form = self._layers(moment.profile), state.language, moment.form
        count, settings = layers.count, layers.settings
        operations, spoken_messages = self.offered(state, form), self._spoken(state, history, moment)
        picture_tokens = sum(picture.tokens for message in spoken_messages for picture in message.pictures)
        volatile_texts = self._volatile(state, history, moment, operations)
        rules = [layers.rules(language), volatile_texts["rules"]]
        base_text = f"{layers.base(state)}\n\n{layers.session(state)}".replace(rules[0], "")
        instructions = form.instructions(language, ())
        skills = self._skills(state, moment.profile, form)
        return (
            ContextPart("base", count(base_text), settings.base_tokens),
            ContextPart("main", count(instructions) + count(volatile_texts["main"]), settings.main_tokens),
            ContextPart("specialized", _tokens(count, volatile_texts["procedure"]), settings.specialized_tokens),
            ContextPart("operations", count(form.listed(operations, language))),
            ContextPart("rules", _tokens(count, *rules)),
            *((ContextPart("skills", count(skills)),) if skills else ()),
            ContextPart(
                "conversation", _tokens(count, *(message.whole for message in spoken_messages)) + picture_tokens
            ),
        )

    def _layers(self, profile: ModelProfile) -> Layers:
        return self._compact if profile.led else self._full

    def _spoken(self, state: AgentState, history: Sequence[Message], moment: Moment) -> list[PromptMessage]:
        spoken_messages = moment.form.spoken(history, self.operations(), state.language)
        if moment.profile.images:
            return spoken_messages
        unseen_digests = {picture.digest for message in history for picture in message.pictures}
        return (
            [without_pictures(message, state.language, "picture_blind", unseen_digests) for message in spoken_messages]
            if unseen_digests
            else spoken_messages
        )

    def _stable(
        self, state: AgentState, profile: ModelProfile, form: Form, offered: Sequence[Operation]
    ) -> PromptMessage:
        """Makes the first message. The part that is the same in every session comes first, so that a cache can keep it
        between sessions."""
        layers = self._layers(profile)
        answer_instructions = form.instructions(state.language, form.told_first(offered))
        texts = (layers.base(state), answer_instructions, layers.session(state), self._skills(state, profile, form))
        return PromptMessage("system", "\n\n".join(filter(None, texts)))

    def _skills(self, state: AgentState, profile: ModelProfile, form: Form) -> str:
        return self._layers(profile).skills(state.language, profile.window, form.name(READ_SKILL))

    def _volatile(
        self, state: AgentState, history: Sequence[Message], moment: Moment, operations: Sequence[Operation]
    ) -> dict[str, str]:
        """Returns the parts that change from call to call: the rules of nearer folders, operations of the plan,
        procedure, state."""
        layers, form = self._layers(moment.profile), moment.form
        first_operations = form.told_first(operations)
        plan_operation = next(
            (form.name(operation.name) for operation in operations if operation.name == PROPOSE_PLAN), ""
        )
        later_operations = timely(
            [operation for operation in operations if operation.when and operation not in first_operations], state
        )
        return {
            "rules": layers.rules_near(state),
            "operations": render(
                state.language, "operations_now", operations=form.listed(later_operations, state.language)
            ),
            "procedure": layers.procedure(state, plan_operation),
            "main": layers.main(state, self._values(state, history, moment), form.instructions(state.language, ())),
        }

    def _values(self, state: AgentState, history: Sequence[Message], moment: Moment) -> dict[str, str]:
        form, layers = moment.form, self._layers(moment.profile)
        shared_values = {
            "constraints": "; ".join(state.five.constraints),
            "said_last": one_line(state.said_last) if _is_in_another_language(state, history) else "",
            "note": renamed(moment.note, self.operations(), form.name),
            **plan_line(state),
            "evidence": moment.evidence,
            "lessons": layers.surroundings.lessons(),
        }
        answer_values = {"form": form.format_name, "limit": str(moment.limit), "recall": form.name(RECALL)}
        return layers.values(state, history, shared_values, answer_values)


def _tokens(count: Count, *texts: str) -> int:
    return sum(count(text) for text in texts if text)


def _open_texts(history: Iterable[Message]) -> tuple[str, ...]:
    """Returns the messages that the user typed or lets the model see. Other texts of a request may quote them."""
    return tuple(message.text for message in history if message.is_open)


def _is_in_another_language(state: AgentState, history: Sequence[Message]) -> bool:
    """Says whether the user's answer at a question is in another language than their latest message."""
    words, language = state.said_last, state.language
    return bool(words) and languages_in(words, language) != languages_in(last_request(history), language)
