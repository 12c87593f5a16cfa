"""The layers of a prompt (Base, Main, Specialized, and the project's own rules), each within its budget, and the lines
they are made of."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from duckflow.forms.form import GIVEN_BY_USER
from duckflow.i18n.answer_words import TELLS_GOAL, answers_only
from duckflow.i18n.template import mark_for, note, one_line, quoted, render
from duckflow.i18n.words import facts_of
from duckflow.prompts.settings import PromptSettings
from duckflow.state.agent import A_WHILE, ENDED, AgentState, Job, kind_of_ref
from duckflow.state.data import shorten
from duckflow.state.message import Message, PromptMessage, last_request
from duckflow.state.phase import Phase
from duckflow.state.progress import progress


class NearRules(NamedTuple):
    """An AGENTS.md in a folder below the work folder. It holds for the files in that folder and below."""

    folder: str
    text: str


class Surroundings(Protocol):
    """The project around a conversation. An unknown fact is an empty text, and no fact is looked up before it is asked
    for."""

    def rules(self) -> str:
        """Returns the text of AGENTS.md in the work folder."""
        ...

    def rules_near(self, paths: Sequence[str]) -> list[NearRules]:
        """Returns the AGENTS.md files that apply to these paths, the nearest last."""
        ...

    def facts(self) -> str:
        """Returns the project's languages and layout. The text stays the same for a session."""
        ...

    def known(self) -> str:
        """Returns the knowledge from earlier sessions. The text stays the same for a session."""
        ...

    def lessons(self) -> str:
        """Returns lessons learned in this project that concern the present request."""
        ...

    def tests(self) -> str:
        """Returns the command that runs the project's tests."""
        ...

    def skills(self, room: int, /) -> list[tuple[str, str]]:
        """Returns names of skills with their purpose, in about `room` characters. They stay the same for a session."""
        ...

    def limits(self, language: str, /) -> str:
        """Returns one line that says what commands can reach and when the user is asked. It stays the same until the
        mode changes."""
        ...

    def branch(self) -> str:
        """Returns the git branch, and the git operation (such as a merge) that is under way."""
        ...


def last_update(history: Sequence[Message], turn: int) -> str:
    """Returns the time of the last message before this turn, if that is long ago."""
    time_before = next((message.at for message in reversed(history) if message.turn < turn and message.at), 0.0)
    turn_time = next((message.at for message in history if message.turn == turn and message.at), time_before)
    return (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(time_before))
        if time_before and turn_time - time_before > A_WHILE
        else ""
    )


def done_so_far(history: Sequence[Message], turn: int) -> str:
    """Returns the results of the actions in a turn, each in one short line."""
    results = (message for message in history if message.role == "tool" and message.turn == turn)
    return "; ".join(gist(result) for result in results if not result.operation.startswith(GIVEN_BY_USER))


def gist(message: Message) -> str:
    """Returns a result in one short line. Its text is quoted as in JSON, so nothing in it can end the quotation."""
    first_line = shorten(message.text.partition("\n")[0], 100)
    return f"{one_line(message.operation)}: {json.dumps(first_line, ensure_ascii=False)}"


def without_pictures(message: PromptMessage, language: str, key: str, left_out: Collection[str]) -> PromptMessage:
    """Returns the message without the pictures of these digests. A note says that they are not shown."""
    removed_pictures = [picture for picture in message.pictures if picture.digest in left_out]
    if not removed_pictures:
        return message
    remark = note(language, key, names=one_line(", ".join(picture.name for picture in removed_pictures)))
    shown_pictures = tuple(picture for picture in message.pictures if picture.digest not in left_out)
    return message._replace(text=f"{message.text}\n\n[duckflow]\n{remark}", pictures=shown_pictures)


def alternate(messages: Iterable[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Joins neighbouring messages of the same role, because endpoints want user and assistant to take turns."""
    joined_messages: list[PromptMessage] = []
    for message in messages:
        if (
            joined_messages
            and joined_messages[-1].role == message.role
            and not (joined_messages[-1].calls or message.calls or message.answers)
        ):
            last_message = joined_messages[-1]
            pictures = (*last_message.pictures, *message.pictures)
            joined_messages[-1] = PromptMessage(
                message.role, f"{last_message.text}\n\n{message.text}", pictures=pictures
            )
        else:
            joined_messages.append(message)
    return tuple(joined_messages)


def plan_line(state: AgentState) -> dict[str, str]:
    """Returns the values for the line about the plan that stands in every prompt."""
    plan = state.plan
    if plan is None or plan.is_over:
        return {"plan_name": "", "plan_done": "", "plan_total": "", "plan_now": ""}
    step = plan.next_step()
    if plan.status == "draft":
        current_step = note(state.language, "plan_drafted")
    else:
        current_step = f"{step.name} ({step.step_id}, {step.status})" if step else "-"
    return {
        "plan_name": plan.name,
        "plan_done": str(plan.done()),
        "plan_total": str(len(plan.steps)),
        "plan_now": current_step,
    }


def job_line(state: AgentState, job: Job) -> str:
    """Describes a job in one line."""
    job_progress = progress(state, job)
    return note(
        state.language,
        "job_line_asking" if job.question else "job_line",
        job=f"{job.job_id} {job.name!r}: {job.status}",
        steps_done=str(job_progress.steps_done),
        steps=str(job_progress.steps),
        done=str(job_progress.done),
        doing=job_progress.doing or "-",
    )


def record_line(state: AgentState, most: int, exists: Callable[[str], bool]) -> str:
    """Returns one line with the recorded evidence, and the latest changed files: which still exist, which are gone."""
    files, language = state.files_changed[-most:], state.language
    present_files = [path for path in files if exists(path)]
    missing_files = [path for path in files if path not in present_files]
    lines = [fact.text for fact in state.evidence] or [note(language, "record_empty")]
    lines += [note(language, "record_there", files=", ".join(present_files))] if present_files else []
    lines += [note(language, "record_gone", files=", ".join(missing_files))] if missing_files else []
    return "; ".join(lines)


Count = Callable[[str], int]
"""A function that counts the tokens of a text."""

FOUND = ("evidence", "lessons", "results", "failed", "files", "files_changed", "decisions", "done")
EVIDENCE = ("refs", "last_delta", *FOUND)
SUMMARIES = ("known", "conversation", "before")
CUTTING_ORDER = (*EVIDENCE, *SUMMARIES, "open_questions", "plan_brief", "why_now")
"""The order in which values are cut: evidence first, then earlier conversation, then open questions, then the plan. The
user's request, the rules and the goal are never cut."""
WORTH_KEEPING = 8
ROUNDING = 2
"""The number of tokens by which the count of a text by itself may differ from its count as a part of another text."""


def fitted(
    values: Mapping[str, str], budget: int, written: Callable[[Mapping[str, str]], str], count: Count
) -> dict[str, str]:
    """Returns the values, shortened so far that the layer which `written` makes of them is within its budget."""
    cut_values = dict(values)
    for name in CUTTING_ORDER:
        if not cut_values.get(name):
            continue
        excess = count(written(cut_values)) - budget
        if excess <= 0:
            return cut_values
        cut_values[name] = shorter(cut_values[name], count(cut_values[name]) - excess - ROUNDING, count)
        if cut_values[name] and count(written(cut_values)) > budget:
            cut_values[name] = ""
    return cut_values


def shorter(text: str, tokens: int, count: Count) -> str:
    """Returns the first lines of a text, or the beginning of its only line; empty if hardly anything would be left."""
    if tokens < WORTH_KEEPING:
        return ""
    lines = text.split("\n")
    if len(lines) == 1:
        return shorten(text, max(2, len(text) * tokens // max(1, count(text))))
    while lines and count("\n".join(lines)) > tokens:
        lines.pop()
    return "\n".join(lines)


CHARACTERS = 5
"""The assumed number of characters in a token. The figure is higher than the real one, so that all room is used."""
PROCEDURES = {Phase.PLANNING: "planning", Phase.EXECUTION: "execution", Phase.REVIEW: "review"}
OUTSIDE = ("results", "failed", "files", "files_changed")
"""The values of procedures that may hold texts from outside: results, and names of files."""


class Layers:
    """Writes the text of each layer of a prompt from the state."""

    base_template = "base"
    main_template = "main"

    def __init__(self, surroundings: Surroundings, settings: PromptSettings, count: Count) -> None:
        self.surroundings = surroundings
        self.settings = settings
        self.count = count

    def base(self, state: AgentState) -> str:
        """Returns the text that tells the model its role. The text is the same in every session, so that a cache can
        keep it."""
        return render(state.language, self.base_template, language_name=facts_of(state.language).name)

    def session(self, state: AgentState) -> str:
        """Returns the second part of the layer Base: the folder, and the facts about it."""
        base_text = self.base(state)
        values = {"folder": one_line(state.folder), "agents_md": "", **self.known(state)}

        def written(cut: Mapping[str, str]) -> str:
            return render(state.language, "session", **_marked(cut, state.language))

        budget = self.settings.base_tokens - self.count(base_text)
        fitted_values = fitted(values, budget, written, self.count)
        return written({**fitted_values, "agents_md": self.rules(state.language)})

    def known(self, state: AgentState) -> dict[str, str]:
        """Returns the facts about the project and the session."""
        surroundings = self.surroundings
        limits = surroundings.limits(state.language)
        return {
            "session": state.session_id,
            "limits": limits,
            "facts": surroundings.facts(),
            "known": surroundings.known(),
        }

    def lessons(self, language: str) -> str:
        text = self.surroundings.lessons()
        return render(language, "lessons", **_marked({"lessons": text}, language)) if text else ""

    def rules(self, language: str) -> str:
        text = self.surroundings.rules()
        return render(language, "rules", source="AGENTS.md", mark=mark_for(text), text=text) if text else ""

    def skills(self, language: str, window: int, tool: str) -> str:
        """Returns the list of skills, within a small share of the window; empty if there are none. `tool` names the
        tool that reads skills."""
        budget = int(window * self.settings.skills_share)
        characters = budget * CHARACTERS
        while skills := self.surroundings.skills(characters):
            text = render(language, "skills", tool=tool, skills="\n".join(map(_skill_line, skills)))
            if self.count(text) <= budget or characters < 1:
                return text
            characters = characters * 3 // 4
        return ""

    def rules_near(self, state: AgentState) -> str:
        nearby_rules = self.surroundings.rules_near([ref for ref in state.context_refs if not kind_of_ref(ref)])
        return "\n\n".join(_near(rules, state.language) for rules in nearby_rules)

    def main(self, state: AgentState, values: Mapping[str, str], instructions: str) -> str:
        """Returns the working memory: the state, within the budget that the state shares with the instructions."""
        budget = self.settings.main_tokens - self.count(instructions)

        def written(cut: Mapping[str, str]) -> str:
            return render(state.language, self.main_template, **_marked(cut, state.language))

        return written(fitted(values, budget, written, self.count))

    def values(
        self, state: AgentState, history: Sequence[Message], shared: Mapping[str, str], about: Mapping[str, str]
    ) -> dict[str, str]:
        """Returns the values of the layer Main: the values of every prompt (`shared`), the state, and the values that
        concern this request (`about`)."""
        five_facts = state.five
        repeats_goal = _stands_in(history, five_facts.goal, state.language)
        refs = [ref for ref in state.context_refs if kind_of_ref(ref)]
        return {
            **shared,
            **about,
            "goal": "" if repeats_goal else five_facts.goal,
            "step": state.phase,
            "status": state.status,
            "loop": str(state.loop),
            "why_now": five_facts.why_now,
            "plan_brief": "; ".join(five_facts.plan_brief),
            "open_questions": "; ".join(five_facts.open_questions),
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
        """Returns a whole request for a file's text if it is made without the conversation; here always None."""
        return None

    def procedure(self, state: AgentState, propose: str) -> str:
        """Returns the procedure of the phase, if the model asked for it. `propose` names the tool that drafts plans, if
        the model has it."""
        name = PROCEDURES.get(state.phase, "")
        if state.prompt_pattern != "base_main_specialized" or not name:
            return ""
        values = {
            "propose": propose,
            "tests": self.surroundings.tests(),
            "files_changed": ", ".join(map(one_line, state.files_changed[-8:])),
            "results": "; ".join(one_line(fact.text) for fact in state.evidence[-4:]),
        }
        return self.specialized(state.language, name, values)

    def specialized(self, language: str, name: str, values: Mapping[str, str]) -> str:
        """Returns a procedure with its material, cut to its budget of tokens."""

        def written(cut: Mapping[str, str]) -> str:
            lines = {part: text if part not in OUTSIDE else one_line(text) for part, text in cut.items()}
            if name == "report":
                lines["results"] = quoted(language, "tasks", cut["results"])
            return render(language, name, **lines)

        return written(fitted(values, self.settings.specialized_tokens, written, self.count))


def _marked(values: Mapping[str, str], language: str) -> dict[str, str]:
    """Puts texts from earlier sessions, and lessons, between marks. This comes after cutting, so that no mark is
    lost."""
    marked_values = {
        name: quoted(language, "memory", values[name]) for name in ("known", "evidence") if values.get(name)
    }
    if text := values.get("lessons"):
        marked_values["lessons"] = render(language, "rules", source="lessons", mark=mark_for(text), text=text)
    return {**values, **marked_values}


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


def _stands_in(history: Sequence[Message], goal: str, language: str) -> bool:
    """Says whether a goal only repeats the beginning of a message that is in the request anyway. That is the user's
    newest message or, if this is a mere reply (such as `yes`), any message of the user."""
    newest_request = last_request(history)
    replies = len(newest_request) < TELLS_GOAL or answers_only(newest_request, language)
    texts = [newest_request] if replies else [message.text for message in history if message.role == "user"]
    beginning = goal.rstrip("… ")
    return any(" ".join(text.split()).startswith(beginning) for text in texts)
