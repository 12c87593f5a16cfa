"""The layers of a prompt: Base, Main, Specialized, and the project's own rules; each within its budget."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duckflow.i18n.quoted import mark_for, one_line, quoted
from duckflow.i18n.template import render
from duckflow.prompts.budget import Count, fitted
from duckflow.prompts.settings import PromptSettings
from duckflow.prompts.surroundings import NearRules, Surroundings
from duckflow.prompts.wording import job_line, last_update
from duckflow.state.action import PROPOSE_PLAN, Operation
from duckflow.state.agent import AgentState, kind_of_ref
from duckflow.state.job import ENDED
from duckflow.state.message import Message, PromptMessage, last_request
from duckflow.state.phase import Phase

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

    base_template = "base"
    main_template = "main"

    def __init__(self, surroundings: Surroundings, settings: PromptSettings, count: Count) -> None:
        self.surroundings = surroundings
        self.settings = settings
        self.count = count

    def base(self, state: AgentState) -> str:
        """Who it is. The same in every session, so that a cache can keep it from one to the next."""
        language = state.language
        return render(language, self.base_template, language_name=LANGUAGE_NAMES[language][language])

    def session(self, state: AgentState) -> str:
        """The rest of Base: where it works and what is known there."""
        who = self.base(state)
        values = {"folder": one_line(state.folder), "agents_md": "", **self.known(state)}

        def written(kept: Mapping[str, str]) -> str:
            return render(state.language, "session", **_marked(kept, state.language))

        budget = self.settings.base_tokens - self.count(who)
        kept = fitted(values, budget, written, self.count)
        return written({**kept, "agents_md": self.rules(state.language)})

    def known(self, state: AgentState) -> dict[str, str]:
        """What is known of the project and the session."""
        around = self.surroundings
        return {"session": state.session_id, "facts": around.facts(), "known": around.known()}

    def lessons(self, language: str) -> str:
        text = self.surroundings.lessons()
        return render(language, "lessons", **_marked({"lessons": text}, language)) if text else ""

    def rules(self, language: str) -> str:
        text = self.surroundings.rules()
        return render(language, "rules", source="AGENTS.md", mark=mark_for(text), text=text) if text else ""

    def skills(self, language: str, window: int, tool: str) -> str:
        """The skills there are, in a small share of the window; nothing where there are none. `tool` reads them."""
        budget = int(window * self.settings.skills_share)
        room = budget * CHARACTERS
        while skills := self.surroundings.skills(room):
            text = render(language, "skills", tool=tool, skills="\n".join(map(_skill_line, skills)))
            if self.count(text) <= budget or room < 1:
                return text
            room = room * 3 // 4
        return ""

    def rules_near(self, state: AgentState) -> str:
        near = self.surroundings.rules_near([ref for ref in state.context_refs if not kind_of_ref(ref)])
        return "\n\n".join(_near(rules, state.language) for rules in near)

    def main(self, state: AgentState, values: Mapping[str, str], instructions: str) -> str:
        """Working memory: what is told of the state, within the budget it shares with the instructions."""
        budget = self.settings.main_tokens - self.count(instructions)

        def written(kept: Mapping[str, str]) -> str:
            return render(state.language, self.main_template, **_marked(kept, state.language))

        return written(fitted(values, budget, written, self.count))

    def values(
        self, state: AgentState, history: Sequence[Message], shared: Mapping[str, str], about: Mapping[str, str]
    ) -> dict[str, str]:
        """What Main tells: what every prompt does (`shared`), the state, and what is `about` this request."""
        five = state.five
        # A goal that is only the beginning of the request says nothing beside it.
        repeated = " ".join(last_request(history).split()).startswith(five.goal.rstrip("… "))
        refs = [ref for ref in state.context_refs if kind_of_ref(ref)]
        return {
            **shared,
            **about,
            "goal": "" if repeated else five.goal,
            "step": state.phase,
            "status": state.status,
            "loop": str(state.loop),
            "why_now": five.why_now,
            "plan_brief": "; ".join(five.plan_brief),
            "open_questions": "; ".join(five.open_questions),
            "decisions": "; ".join(state.decision_log[-3:]),
            "files_changed": ", ".join(map(one_line, state.files_changed[-8:])),
            "branch": self.surroundings.branch(),
            "recall": about["recall"] if refs else "",
            "refs": ", ".join(refs),
            "last_delta": one_line(state.last_delta),
            "updated": last_update(history, state.turn),
            "jobs": "; ".join(job_line(state, job) for job in state.jobs.values() if job.status not in ENDED),
        }

    def body(
        self, language: str, path: str, current: str, request: str, why: str, history: Sequence[Message]
    ) -> tuple[PromptMessage, ...] | None:
        """A whole request for a file's text, where that does not stand on the conversation's own prefix."""
        return None

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
