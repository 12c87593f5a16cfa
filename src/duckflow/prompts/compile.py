"""Compiles requests: stable text first, volatile text last."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from duckflow.forms.form import Form, renamed
from duckflow.forms.schema import timely
from duckflow.i18n.template import quoted, render
from duckflow.prompts.compact import CompactLayers
from duckflow.prompts.layers import Count, Layer, Layers, alternate, plan_line, without_pictures
from duckflow.state.action import PROPOSE_PLAN, READ_SKILL, RECALL, Action, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import Message, PromptMessage, last_request
from duckflow.state.profile import ANY_MODEL, ModelProfile

REQUEST_LENGTH = 2000


class Moment(NamedTuple):
    """What the prompt says of this loop, and to what kind of model."""

    form: Form
    profile: ModelProfile = ANY_MODEL
    limit: int = 15
    note: str = ""
    corrections: Sequence[PromptMessage] = ()
    evidence: str = ""


class BodyMoment(NamedTuple):
    """For whom a text is asked, what stands in the file now, and the request where it is not the user's last word."""

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
        """For somebody who may do only some of it, and maybe something that others are not told of."""
        return Compiler(lambda: [*(one for one in self.operations() if keep(one)), *adds], self._full)

    def offered(self, state: AgentState, form: Form) -> tuple[Operation, ...]:
        """What a model may do now, as it is told of it."""
        return form.offered(self.operations(), state)

    def main(self, state: AgentState, history: Iterable[Message], moment: Moment) -> tuple[PromptMessage, ...]:
        """The request for the next Decision."""
        history = list(history)
        offered = self.offered(state, moment.form)
        volatile = self._volatile(state, history, moment, offered).values()
        told = PromptMessage("user", "\n\n".join(filter(None, volatile)))
        stable = self._stable(state, moment.profile, moment.form, offered)
        return alternate([stable, *self._spoken(state, history, moment), told, *moment.corrections])

    def body(
        self, state: AgentState, history: Sequence[Message], action: Action, kind: str, moment: BodyMoment
    ) -> tuple[PromptMessage, ...]:
        """The request for the raw text that an action needs: on the same cached prefix, or all by itself."""
        path, request = str(action.args.get("path", "")), moment.request or last_request(history)[:REQUEST_LENGTH]
        layers, why = self._layers(moment.profile), action.reasoning
        if kind == "content" and (alone := layers.body(state.language, path, moment.current, request, why, history)):
            return alone
        wish = render(state.language, f"body_{kind}", path=path, why=why, request=request)
        stable = self._stable(state, moment.profile, moment.form, self.offered(state, moment.form))
        spoken = self._spoken(state, history, Moment(moment.form, moment.profile))
        return alternate([stable, *spoken, PromptMessage("user", wish)])

    def procedure(
        self, state: AgentState, name: str, values: dict[str, str], failures: Sequence[tuple[str, str]] = ()
    ) -> tuple[PromptMessage, ...]:
        """A specialised request: who it is, the project, and one procedure. Its `material`, if any, stands before it,
        whole. `failures` are replies that could not be used, each with the reason."""
        layers = self._full
        known = (layers.base(state), layers.session(state), layers.lessons(state.language))
        messages = [
            PromptMessage("system", "\n\n".join(filter(None, known))),
            PromptMessage("user", values.pop("material", "")),
            PromptMessage("user", layers.specialized(state.language, name, values)),
        ]
        for reply, reason in failures:
            messages.append(PromptMessage("assistant", reply or "…"))
            messages.append(PromptMessage("user", render(state.language, "mend", reason=reason)))
        return alternate(messages)

    def correction(self, language: str, reply: str, reason: str, form: str) -> tuple[PromptMessage, PromptMessage]:
        """A reply that could not be used, and why."""
        told = render(language, "correction", reason=reason, form=form)
        return PromptMessage("assistant", reply or "…"), PromptMessage("user", told)

    def summary(self, state: AgentState, material: str) -> tuple[PromptMessage, ...]:
        """The request for a summary of what left the context."""
        told = quoted(state.language, "conversation", material)
        wish = render(state.language, "summary", material=told)
        return PromptMessage("system", self._full.base(state)), PromptMessage("user", wish)

    def go_on(self, language: str, text: str) -> tuple[PromptMessage, PromptMessage]:
        """A body that was cut off, to be continued."""
        return PromptMessage("assistant", text), PromptMessage("user", render(language, "continue_body"))

    def mend(self, language: str, text: str, path: str, fault: str) -> tuple[PromptMessage, PromptMessage]:
        """A body with a mistake that can be seen without running it."""
        told = render(language, "mend_body", path=path, fault=fault)
        return PromptMessage("assistant", text), PromptMessage("user", told)

    def weighed(self, state: AgentState, history: Sequence[Message], moment: Moment) -> tuple[Layer, ...]:
        """The parts of the next request with their tokens."""
        layers, language, form = self._layers(moment.profile), state.language, moment.form
        count, settings = layers.count, layers.settings
        operations, told = self.offered(state, form), self._spoken(state, history, moment)
        pictures = sum(picture.tokens for message in told for picture in message.pictures)
        volatile = self._volatile(state, history, moment, operations)
        rules = [layers.rules(language), volatile["rules"]]
        base = f"{layers.base(state)}\n\n{layers.session(state)}".replace(rules[0], "")
        instructions = form.instructions(language, ())
        skills = self._skills(state, moment.profile, form)
        return (
            Layer("base", count(base), settings.base_tokens),
            Layer("main", count(instructions) + count(volatile["main"]), settings.main_tokens),
            Layer("specialized", _tokens(count, volatile["procedure"]), settings.specialized_tokens),
            Layer("operations", count(form.listed(operations, language))),
            Layer("rules", _tokens(count, *rules)),
            *((Layer("skills", count(skills)),) if skills else ()),
            Layer("conversation", _tokens(count, *(message.whole for message in told)) + pictures),
        )

    def _layers(self, profile: ModelProfile) -> Layers:
        return self._compact if profile.led else self._full

    def _spoken(self, state: AgentState, history: Sequence[Message], moment: Moment) -> list[PromptMessage]:
        told = moment.form.spoken(history, self.operations(), state.language)
        if moment.profile.images:
            return told
        unseen = {picture.digest for message in history for picture in message.pictures}
        return [without_pictures(one, state.language, "picture_blind", unseen) for one in told] if unseen else told

    def _stable(
        self, state: AgentState, profile: ModelProfile, form: Form, offered: Sequence[Operation]
    ) -> PromptMessage:
        """The part that is the same in every session comes first: a cache can keep it from one session to the next."""
        layers = self._layers(profile)
        answering = form.instructions(state.language, form.told_first(offered))
        parts = (layers.base(state), answering, layers.session(state), self._skills(state, profile, form))
        return PromptMessage("system", "\n\n".join(filter(None, parts)))

    def _skills(self, state: AgentState, profile: ModelProfile, form: Form) -> str:
        return self._layers(profile).skills(state.language, profile.window, form.name(READ_SKILL))

    def _volatile(
        self, state: AgentState, history: Sequence[Message], moment: Moment, operations: Sequence[Operation]
    ) -> dict[str, str]:
        """What changes from call to call, by its part: nearer rules, operations of the plan, procedure, state."""
        layers, form = self._layers(moment.profile), moment.form
        first = form.told_first(operations)
        proposes = next((form.name(one.name) for one in operations if one.name == PROPOSE_PLAN), "")
        later = timely([one for one in operations if one.when and one not in first], state)
        return {
            "rules": layers.rules_near(state),
            "operations": render(state.language, "operations_now", operations=form.listed(later, state.language)),
            "procedure": layers.procedure(state, proposes),
            "main": layers.main(state, self._values(state, history, moment), form.instructions(state.language, ())),
        }

    def _values(self, state: AgentState, history: Sequence[Message], moment: Moment) -> dict[str, str]:
        form, layers = moment.form, self._layers(moment.profile)
        shared = {
            "constraints": "; ".join(state.five.constraints),
            "note": renamed(moment.note, self.operations(), form.name),
            **plan_line(state),
            "evidence": moment.evidence,
            "lessons": layers.surroundings.lessons(),
        }
        about = {"form": form.format_name, "limit": str(moment.limit), "recall": form.name(RECALL)}
        return layers.values(state, history, shared, about)


def _tokens(count: Count, *texts: str) -> int:
    return sum(count(text) for text in texts if text)
