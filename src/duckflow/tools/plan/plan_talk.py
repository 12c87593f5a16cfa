"""Finds the part of the conversation that a plan is about: the wish that it was drafted from, what the user said about
it until a job began, and what they said to the job since."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from duckflow.i18n.template import note
from duckflow.i18n.terms import telling, terms
from duckflow.state.action import PROPOSE_PLAN, RESPOND, REVISE_PLAN
from duckflow.state.agent import AgentState
from duckflow.state.data import same_words, shorten
from duckflow.state.message import AT_GATE, Message
from duckflow.state.plan import Plan, Step

FOUND_TOLD = 400
ANSWERS_TOLD = 3
WISHES_TOLD = 60
LEAST_WISH = 80
LEAST_TELLING = 0.8
SHARED_WORDS = 2
"""The number of words that a wish must share with the plan's steps to stand by itself. A wish such as "make a plan for
it" shares fewer: the plan is then about what was said before, too."""


class PlanTalk(NamedTuple):
    """The messages that a plan is about, from the user's wish on."""

    before_job: tuple[Message, ...]
    after_job: tuple[Message, ...]
    """The messages since the step's job began, which may be about anything else."""

    @property
    def first_turn(self) -> int:
        """Returns the turn in which the plan was wished for. What was read since then was read for the plan."""
        return next((message.turn for message in self.before_job if message.role == "user"), 0)

    @property
    def turns_of_plan(self) -> set[int]:
        """Returns the turns in which the plan was proposed or changed."""
        return {message.turn for message in self.before_job if _calls(message, PROPOSE_PLAN, REVISE_PLAN)}


def talk_of(state: AgentState, plan: Plan, step: Step) -> PlanTalk:
    """Returns the talk about a plan, as it concerns one step."""
    messages = _since_other_plans(state, plan)
    messages = messages[_start(messages, state, plan) :]
    step_jobs = [job for job in state.jobs.values() if step.step_id in job.step_ids]
    count = step_jobs[-1].messages_before if step_jobs else None
    later_ids = {message.message_id for message in state.messages[len(state.messages) if count is None else count :]}
    return PlanTalk(
        tuple(message for message in messages if message.message_id not in later_ids),
        tuple(message for message in messages if message.message_id in later_ids),
    )


def wishes(talk: PlanTalk, room: int, all_later: bool = False) -> str:
    """Returns the user's wish and corrections in order. Of what was said since the job began, these are the words that
    changed the plan or were said at one of the job's questions; with `all_later` all words count. Short messages are
    quoted whole; long messages share the room."""
    turns_of_change = {message.turn for message in talk.after_job if _calls(message, REVISE_PLAN)}
    later_messages = [
        message
        for message in talk.after_job
        if all_later or message.operation == AT_GATE or message.turn in turns_of_change
    ]
    texts = [
        " ".join(message.text.split())
        for message in (*talk.before_job, *later_messages)
        if message.role == "user" or message.operation == AT_GATE
    ]
    texts = texts if len(texts) <= WISHES_TOLD else [texts[0], *texts[1 - WISHES_TOLD :]]
    return " / ".join(_in_room(texts, room))


def said_to_job(plan: Plan, step: Step, language: str, room: int) -> str:
    """Returns what the user said to the running job. The step's own open words are left out, as are those of completed
    steps: they stand elsewhere in the request."""
    names = {other.step_id: other.name for other in plan.steps}
    told_elsewhere = {words for other in plan.steps if other.status == "completed" for words in other.open_words}
    told_elsewhere.update(step.open_words)
    heading_values: list[dict[str, str]] = []
    texts: list[str] = []
    for said in plan.said:
        if said.words not in told_elsewhere:
            steps, over = (", ".join(names[key] for key in keys if key in names) for keys in (said.to, said.after))
            heading_values.append({"steps": steps, "over": note(language, "said_after", steps=over) if over else ""})
            texts.append(" ".join(said.words.split()))
    quoted_texts = _in_room(texts, room)
    return "; ".join(
        note(language, "said_to_job", words=words, **values)
        for words, values in zip(quoted_texts, heading_values, strict=True)
    )


def findings(talk: PlanTalk) -> str:
    """Returns the model's latest answers from before the plan was proposed: later ones are about the plan itself. A
    line that only goes with calls is no answer."""
    turn_of_plan = min(talk.turns_of_plan, default=math.inf)
    answers = [
        answer
        for message in talk.before_job
        if message.decision and message.turn < turn_of_plan
        for answer in message.decision.said()
        if answer.strip() and all(action.operation == RESPOND for action in message.decision.actions)
    ]
    return " / ".join(shorten(answer, FOUND_TOLD) for answer in answers[-ANSWERS_TOLD:])


def _since_other_plans(state: AgentState, plan: Plan) -> list[Message]:
    """Returns the messages of the conversation since the latest proposal of another plan that was approved."""
    other_goals = {
        other.goal for other in state.plans.values() if other.plan_id != plan.plan_id and other.status != "draft"
    }
    forgotten = set(state.context.forgotten)
    messages = [m for number, m in enumerate(state.messages) if not m.job and number not in forgotten]
    numbers = (number for number, message in enumerate(messages) if not other_goals.isdisjoint(_goals(message)))
    return messages[max(numbers, default=-1) + 1 :]


def _start(messages: list[Message], state: AgentState, plan: Plan) -> int:
    """Returns the number of the message with which the plan's matter begins: the wish, if it stands by itself, else the
    first message since files were last changed."""
    proposals = [message for message in messages if _calls(message, PROPOSE_PLAN)]
    proposal = next((message for message in proposals if plan.goal in _goals(message)), next(iter(proposals), None))
    if proposal is None:
        return 0
    wish = [message for message in messages if message.turn == proposal.turn and message.role == "user"]
    earlier_changes = [turn for turns in state.changed_in.values() for turn in turns if turn < proposal.turn]
    first_turn = max(earlier_changes, default=-1) + 1
    if wish and _stands_alone(" ".join(message.text for message in wish), plan):
        first_turn = proposal.turn
    return next((number for number, message in enumerate(messages) if message.turn >= first_turn), 0)


def _stands_alone(wish: str, plan: Plan) -> bool:
    own_goal = "" if same_words(plan.goal, wish) else plan.goal
    plan_terms = terms(" ".join((own_goal, *(step.text for step in plan.steps))))
    return sum(telling(term) >= LEAST_TELLING for term in terms(wish) & plan_terms) >= SHARED_WORDS


def _in_room(texts: list[str], room: int) -> list[str]:
    """Shortens the longest texts, so that all together fit the room."""
    fitted = list(texts)
    for shortened_count, number in enumerate(sorted(range(len(texts)), key=lambda number: len(texts[number]))):
        fitted[number] = shorten(texts[number], max(LEAST_WISH, room // (len(texts) - shortened_count)))
        room -= len(fitted[number])
    return fitted


def _calls(message: Message, *operations: str) -> bool:
    return any(action.operation in operations for action in (message.decision.actions if message.decision else ()))


def _goals(message: Message) -> Iterator[str]:
    """Yields the goals of the plans that a reply proposes."""
    for action in message.decision.actions if message.decision else ():
        if action.operation == PROPOSE_PLAN:
            yield str(action.args.get("text") or action.args.get("goal"))
