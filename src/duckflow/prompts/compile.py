"""Compiles requests: stable text first, volatile text last."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from duckflow.prompts.body import plain_body
from duckflow.prompts.budget import Count
from duckflow.prompts.layers import Layer, Layers, lasting
from duckflow.prompts.native import as_called, as_calls, tools
from duckflow.prompts.offer import offered
from duckflow.prompts.quoted import one_line, quoted
from duckflow.prompts.template import render
from duckflow.prompts.wording import (
    alternate,
    done_so_far,
    job_line,
    last_update,
    listed,
    plan_line,
    spoken,
    without_pictures,
)
from duckflow.state.action import RECALL, Action, Operation, wire_name
from duckflow.state.agent import AgentState, kind_of_ref
from duckflow.state.job import ENDED
from duckflow.state.message import Message, PromptMessage, ToolSpec, last_request
from duckflow.state.noun import shorten
from duckflow.state.profile import ANY_MODEL, ModelProfile


def brief(operation: Operation) -> Operation:
    """Only what must be given. Operations that then take the same share one shape of the schema."""
    required: list[str] = operation.parameters.get("required", [])
    told: dict[str, Any] = operation.parameters.get("properties", {})
    properties = {name: told[name] for name in told if name in required}
    parameters = {**operation.parameters, "properties": properties}
    return operation.model_copy(update={"parameters": parameters, "told": operation.brief_told or operation.told})


def _as_tools(offered: Iterable[ToolSpec]) -> str:
    """As they travel beside the messages."""
    return json.dumps([one._asdict() for one in offered], ensure_ascii=False)


REQUEST_LENGTH = 2000


class Moment(NamedTuple):
    """What the prompt says of this loop, and to what kind of model."""

    profile: ModelProfile = ANY_MODEL
    limit: int = 15
    note: str = ""
    corrections: Sequence[PromptMessage] = ()
    evidence: str = ""


class BodyMoment(NamedTuple):
    """For whom a text is asked, what stands in the file now, and the request where it is not the user's last word."""

    profile: ModelProfile = ANY_MODEL
    current: str = ""
    request: str = ""


class Compiler:
    """Turns state and conversation into the messages of a request."""

    def __init__(self, operations: Callable[[], Sequence[Operation]], layers: Layers) -> None:
        self.operations = operations
        self._layers = layers

    def narrowed(self, keep: Callable[[Operation], bool]) -> "Compiler":
        """For somebody who may do only some of it."""
        return Compiler(lambda: [one for one in self.operations() if keep(one)], self._layers)

    def offered(self, state: AgentState, profile: ModelProfile) -> tuple[Operation, ...]:
        """What a model of this size may do now."""
        if profile.native_tools:
            # Always the same: the tools stand before everything else that an endpoint's cache keeps.
            return tuple(self.operations())
        found = offered(self.operations(), profile, state)
        return tuple(map(brief, found)) if profile.compact else found

    def tools(self, language: str) -> tuple[ToolSpec, ...]:
        """The operations for a model that calls tools."""
        return tools(self.operations(), language)

    def main(self, state: AgentState, history: Iterable[Message], moment: Moment) -> tuple[PromptMessage, ...]:
        """The request for the next Decision."""
        history = list(history)
        volatile = PromptMessage("user", "\n\n".join(filter(None, self._volatile(state, history, moment).values())))
        stable = self._stable(state, moment.profile)
        return alternate([stable, *self._spoken(state, history, moment.profile), volatile, *moment.corrections])

    def body(
        self, state: AgentState, history: Sequence[Message], action: Action, kind: str, moment: BodyMoment
    ) -> tuple[PromptMessage, ...]:
        """The request for the raw text that an action needs: on the same cached prefix, or all by itself."""
        path, request = str(action.args.get("path", "")), moment.request or last_request(history)[:REQUEST_LENGTH]
        profile = moment.profile
        if profile.compact and kind == "content":
            return plain_body(state.language, path, moment.current, request, action.reasoning, history)
        wish = render(state.language, f"body_{kind}", path=path, why=action.reasoning, request=request)
        plain = profile._replace(native_tools=False)
        return alternate(
            [self._stable(state, plain), *self._spoken(state, history, plain), PromptMessage("user", wish)]
        )

    def procedure(
        self, state: AgentState, name: str, values: dict[str, str], failures: Sequence[tuple[str, str]] = ()
    ) -> tuple[PromptMessage, ...]:
        """A specialised request: who it is, the project, and one procedure. Its `material`, if any, stands before it,
        whole. `failures` are replies that could not be used, each with the reason."""
        layers = self._layers
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
        return PromptMessage("system", self._layers.base(state)), PromptMessage("user", wish)

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

    def weighed(self, state: AgentState, history: Sequence[Message], moment: Moment) -> tuple[Layer, ...]:
        """The parts of the next request with their tokens."""
        layers, language, profile = self._layers, state.language, moment.profile
        count, settings = layers.count, layers.settings
        operations, told = self.offered(state, profile), self._spoken(state, history, profile)
        pictures = sum(picture.tokens for one in told for picture in one.pictures)
        volatile = self._volatile(state, history, moment)
        rules = [layers.rules(language), volatile["rules"]]
        base = f"{layers.base(state, profile)}\n\n{layers.session(state, profile)}".replace(rules[0], "")
        return (
            Layer("base", count(base), settings.base_tokens),
            Layer("main", count(layers.format(language, (), profile)) + count(volatile["main"]), settings.main_tokens),
            Layer("specialized", _tokens(count, volatile["procedure"]), settings.specialized_tokens),
            Layer(
                "operations",
                count(_as_tools(self.tools(language)) if profile.native_tools else listed(operations, language)),
            ),
            Layer("rules", _tokens(count, *rules)),
            *((Layer("skills", count(skills)),) if (skills := layers.skills(language, profile)) else ()),
            Layer("conversation", _tokens(count, *(one.whole for one in told)) + pictures),
        )

    def _spoken(self, state: AgentState, history: Sequence[Message], profile: ModelProfile) -> list[PromptMessage]:
        if profile.native_tools:
            told = as_calls(history, state.language)
        else:
            bodies = () if profile.bodies == "inline" else tuple(one.body for one in self.operations() if one.body)
            told = [spoken(message, state.language, bodies) for message in history]
        if profile.images:
            return told
        unseen = {picture.digest for message in history for picture in message.pictures}
        return [without_pictures(one, state.language, "picture_blind", unseen) for one in told] if unseen else told

    def _stable(self, state: AgentState, profile: ModelProfile) -> PromptMessage:
        layers = self._layers
        answering = layers.format(state.language, lasting(self.offered(state, profile), profile), profile)
        # The part that is the same in every session comes first: a cache can keep it from one session to the next.
        parts = (layers.base(state, profile), answering, layers.session(state, profile))
        return PromptMessage("system", "\n\n".join(filter(None, (*parts, layers.skills(state.language, profile)))))

    def _volatile(self, state: AgentState, history: Sequence[Message], moment: Moment) -> dict[str, str]:
        """What changes from call to call, by its part: nearer rules, operations of the plan, procedure, state."""
        layers, profile = self._layers, moment.profile
        operations = self.offered(state, profile)
        # Tools are told of elsewhere, all of them.
        kept = operations if profile.native_tools else lasting(operations, profile)
        timely = listed((one for one in operations if one not in kept), state.language)
        return {
            "rules": layers.rules_near(state),
            "operations": render(state.language, "operations_now", operations=timely),
            "procedure": layers.procedure(state, operations),
            "main": layers.main(state, profile, self._values(state, history, moment)),
        }

    def _values(self, state: AgentState, history: Sequence[Message], moment: Moment) -> dict[str, str]:
        five, native = state.five, moment.profile.native_tools
        # A goal that is only the beginning of the request says nothing beside it.
        repeated = " ".join(last_request(history).split()).startswith(five.goal.rstrip("… "))
        values = {
            "goal": "" if repeated and not moment.profile.compact else five.goal,
            "constraints": "; ".join(five.constraints),
            "note": as_called(moment.note, self.operations()) if native else moment.note,
            **plan_line(state),
            "evidence": moment.evidence,
            "lessons": self._layers.surroundings.lessons(),
        }
        if moment.profile.compact:
            return values | {"request": shorten(last_request(history), 500), "done": done_so_far(history, state.turn)}
        refs = [ref for ref in state.context_refs if kind_of_ref(ref)]
        recall = wire_name(RECALL) if native else RECALL
        return values | {
            "form": "" if native else "JSON",
            "step": state.phase,
            "status": state.status,
            "loop": str(state.loop),
            "limit": str(moment.limit),
            "why_now": five.why_now,
            "plan_brief": "; ".join(five.plan_brief),
            "open_questions": "; ".join(five.open_questions),
            "decisions": "; ".join(state.decision_log[-3:]),
            "files_changed": ", ".join(map(one_line, state.files_changed[-8:])),
            "branch": self._layers.surroundings.branch(),
            "recall": recall if refs else "",
            "refs": ", ".join(refs),
            "last_delta": one_line(state.last_delta),
            "updated": last_update(history, state.turn),
            "jobs": "; ".join(job_line(state, job) for job in state.jobs.values() if job.status not in ENDED),
        }


def _tokens(count: Count, *texts: str) -> int:
    return sum(count(text) for text in texts if text)
