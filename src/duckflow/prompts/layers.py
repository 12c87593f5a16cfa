"""The layers of a prompt: Base, Main, Specialized, and the project's own rules; each within its budget."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duckflow.prompts.budget import Count, fitted
from duckflow.prompts.quoted import mark_for, one_line, quoted
from duckflow.prompts.settings import PromptSettings
from duckflow.prompts.surroundings import NearRules, Surroundings
from duckflow.prompts.template import render
from duckflow.prompts.wording import listed
from duckflow.state.action import PROPOSE_PLAN, READ_SKILL, Operation, wire_name
from duckflow.state.agent import AgentState, kind_of_ref
from duckflow.state.phase import Phase
from duckflow.state.profile import ANY_MODEL, ModelProfile

LANGUAGE_NAMES = {"en": {"en": "English", "ja": "Japanese"}, "ja": {"en": "英語", "ja": "日本語"}}
CHARACTERS = 5
"""More than a token has, so that the room is used."""
PROCEDURES = {Phase.PLANNING: "planning", Phase.EXECUTION: "execution", Phase.REVIEW: "review"}
OUTSIDE = ("results", "failed", "files", "files_changed")
"""What procedures are told that others may have written: results, and names of files."""


class Layer(NamedTuple):
    """A part of a request; without a budget of its own it has 0."""

    name: str
    tokens: int
    budget: int = 0


class Layers:
    """Writes each layer from the state."""

    def __init__(self, surroundings: Surroundings, settings: PromptSettings, count: Count) -> None:
        self.surroundings = surroundings
        self.settings = settings
        self.count = count

    def base(self, state: AgentState, profile: ModelProfile = ANY_MODEL) -> str:
        """Who it is. The same in every session, so that a cache can keep it from one to the next."""
        language = state.language
        name = "base_compact" if profile.compact else "base"
        return render(language, name, language_name=LANGUAGE_NAMES[language][language])

    def session(self, state: AgentState, profile: ModelProfile = ANY_MODEL) -> str:
        """The rest of Base: where it works and what is known there."""
        who = self.base(state, profile)
        values = {"folder": one_line(state.folder), "session": "", "facts": "", "known": "", "agents_md": ""}
        if not profile.compact:
            # A small model takes every name it reads for a part of what it was asked.
            around = self.surroundings
            values |= {"session": state.session_id, "facts": around.facts(), "known": around.known()}

        def written(kept: Mapping[str, str]) -> str:
            return render(state.language, "session", **_marked(kept, state.language))

        budget = self.settings.base_tokens - self.count(who)
        kept = fitted(values, budget, written, self.count)
        return written({**kept, "agents_md": self.rules(state.language)})

    def lessons(self, language: str) -> str:
        text = self.surroundings.lessons()
        return render(language, "lessons", **_marked({"lessons": text}, language)) if text else ""

    def rules(self, language: str) -> str:
        text = self.surroundings.rules()
        return render(language, "rules", source="AGENTS.md", mark=mark_for(text), text=text) if text else ""

    def skills(self, language: str, profile: ModelProfile) -> str:
        """The skills there are, in a small share of the window; nothing where there are none."""
        budget = int(profile.window * self.settings.skills_share)
        room = budget * CHARACTERS
        tool = wire_name(READ_SKILL) if profile.native_tools else READ_SKILL
        while skills := self.surroundings.skills(room):
            text = render(language, "skills", tool=tool, skills="\n".join(map(_skill_line, skills)))
            if self.count(text) <= budget or room < 1:
                return text
            room = room * 3 // 4
        return ""

    def rules_near(self, state: AgentState) -> str:
        near = self.surroundings.rules_near([ref for ref in state.context_refs if not kind_of_ref(ref)])
        return "\n\n".join(_near(rules, state.language) for rules in near)

    def format(self, language: str, operations: Sequence[Operation], profile: ModelProfile) -> str:
        """How to answer, and with which operations."""
        if profile.native_tools:
            return render(language, "format_native")
        with_body = ", ".join(operation.name for operation in operations if operation.body)
        rule = "body_rule" if profile.bodies == "asked" else "body_inline"
        return render(
            language,
            "format_compact" if profile.compact else "format",
            body_rule=render(language, rule, body_operations=with_body) if with_body else "",
            operations=listed(operations, language, not profile.compact, profile.bodies == "inline"),
        )

    def main(self, state: AgentState, profile: ModelProfile, values: Mapping[str, str]) -> str:
        """Working memory: what is told of the state, within the budget it shares with the output format."""
        template = "main_compact" if profile.compact else "main"
        budget = self.settings.main_tokens - self.count(self.format(state.language, (), profile))

        def written(kept: Mapping[str, str]) -> str:
            return render(state.language, template, **_marked(kept, state.language))

        return written(fitted(values, budget, written, self.count))

    def procedure(self, state: AgentState, offered: Sequence[Operation]) -> str:
        """The procedure of the step, when the model asked for it."""
        name = PROCEDURES.get(state.phase, "")
        if state.prompt_pattern != "base_main_specialized" or not name:
            return ""
        proposes = any(operation.name == PROPOSE_PLAN for operation in offered)
        values = {
            "propose": PROPOSE_PLAN if proposes else "",
            "tests": self.surroundings.tests(),
            "files_changed": ", ".join(map(one_line, state.files_changed[-8:])),
            "results": "; ".join(one_line(found.text) for found in state.evidence[-4:]),
        }
        return self.specialized(state.language, name, values)

    def specialized(self, language: str, name: str, values: Mapping[str, str]) -> str:
        """A procedure with its material, within its budget."""

        def written(kept: Mapping[str, str]) -> str:
            told = {part: text if part not in OUTSIDE else one_line(text) for part, text in kept.items()}
            if name == "report":
                told["results"] = quoted(language, "tasks", kept["results"])
            return render(language, name, **told)

        return written(fitted(values, self.settings.specialized_tokens, written, self.count))


def lasting(operations: Sequence[Operation], profile: ModelProfile) -> tuple[Operation, ...]:
    """The operations that are offered whatever happens: they stand in the prefix. What is offered about plans changes
    as a plan goes on, and told in the prefix it would spoil the cache of all that follows. A small model has little
    history to read again, and does better with one list."""
    return tuple(one for one in operations if profile.compact or not one.when)


def _marked(values: Mapping[str, str], language: str) -> dict[str, str]:
    """What was kept from elsewhere and earlier stands between marks: here after the cutting, so that none is lost."""
    marked = {name: quoted(language, "memory", values[name]) for name in ("known", "evidence") if values.get(name)}
    if text := values.get("lessons"):
        marked["lessons"] = render(language, "rules", source="lessons", mark=mark_for(text), text=text)
    return {**values, **marked}


def _skill_line(skill: tuple[str, str]) -> str:
    return f"- {one_line(': '.join(filter(None, skill)))}"


def _near(rules: NearRules, language: str) -> str:
    return render(
        language,
        "rules_near",
        source=one_line(f"{rules.folder}/AGENTS.md"),
        folder=one_line(f"{rules.folder}/"),
        mark=mark_for(rules.text),
        text=rules.text,
    )
