"""Turns events into items. This is the only place that interprets events for people."""

from collections.abc import Iterable, Iterator
from typing import Any

from duckflow.events import talking
from duckflow.events import types as happened
from duckflow.events.types import ActionFinished, DecisionMade, Event, TextStreamed, ThoughtKept
from duckflow.events.work import WorkEvent
from duckflow.state.action import DUCK_CALL, EXIT, RESPOND, Action, Decision, wire_name
from duckflow.state.agent import AgentState
from duckflow.state.data import ELLIPSIS, Phrase, say
from duckflow.state.message import Usage
from duckflow.view.deeds import DeedsView, Workers
from duckflow.view.items import (
    About,
    AgentItem,
    ChosenItem,
    CommandItem,
    Item,
    NoticeItem,
    NowItem,
    PlanItem,
    ReasonItem,
    ReportItem,
    RequestItem,
    TextItem,
    TurnItem,
    VitalsItem,
)

TALKING = (RESPOND, DUCK_CALL, EXIT)
TEXTS = ("text", "question")
"""The names that models give to the argument with the words for the user."""
NOTHING = "-"
"""The sign that stands for a missing rationale."""


class ReplyView:
    """Makes items from the words of one call of the model. Streamed words have the same ids as journaled ones."""

    def __init__(self) -> None:
        self._loop = 0
        self._text: TextItem | None = None
        self._thought: TextItem | None = None
        self._streamed = self._thoughts = ""
        self._said = False

    def begin(self, number: int) -> list[Item]:
        """Begins a loop. Text that remains from the previous loop was not an answer."""
        leftovers = self.end()
        self._loop, self._streamed, self._thoughts, self._said = number, "", "", False
        return leftovers

    def end(self) -> list[Item]:
        """Ends the loop: nothing more will be written in it."""
        items: list[Item] = [item._replace(state="passed", piece="") for item in (self._thought, self._text) if item]
        self._text = self._thought = None
        return items

    def stream(self, event: TextStreamed) -> list[Item]:
        if event.channel == "think":
            thought_item = self._thought or TextItem(f"thought-{self._loop}", 0, event.at, "thought", "", "streaming")
            self._thoughts += event.text
            self._thought = thought_item._replace(text=thought_item.text + event.text, piece=event.text)
            return [self._thought]
        items: list[Item] = []
        if self._thought:
            items.append(self._thought._replace(state="whole", piece=""))
            self._thought = None
        if event.channel == "body":
            return [*items, TextItem(f"body-{self._loop}", 0, event.at, "body", "", "streaming", event.text)]
        text = self._text or TextItem(f"text-{self._loop}", 0, event.at, "model", "", "streaming")
        self._streamed += event.text
        self._text = text._replace(text=text.text + event.text, piece=event.text)
        return [*items, self._text]

    def think(self, event: ThoughtKept) -> list[Item]:
        """Stores the thoughts for a front end that did not hear them stream in."""
        self._thoughts = event.text
        return []

    def reset(self) -> list[Item]:
        """Takes back the streamed text, if there was any."""
        text, self._text, self._streamed = self._text, None, ""
        return [text._replace(state="reset", text="", piece="")] if text else []

    def decide(self, number: int, event: DecisionMade) -> list[Item]:
        """Returns the Decision's reason. Streamed words that no action says belong to the reason."""
        decision, items = event.decision, list[Item]()
        answers = [text for action in decision.actions if (text := _answer(action))]
        if self._text and not any(text in self._streamed for text in answers):
            items.append(self._text._replace(state="passed", piece=""))
            self._text = None
        rationale = "" if _says_nothing(decision, answers) else decision.rationale
        is_streamed = rationale.removesuffix(ELLIPSIS) in self._streamed
        return [
            *items,
            ReasonItem(
                f"reason-{number}",
                number,
                event.at,
                rationale,
                decision.confidence,
                decision.task_profile,
                decision.alternative or "",
                "" if is_streamed else rationale,
                self._thoughts,
            ),
        ]

    def say(self, number: int, event: ActionFinished, text: str) -> list[Item]:
        """Returns the text that was said to the user. The first text of a loop has the id of the streamed text."""
        says_more = self._said or bool(event.job) or not self._loop
        name = f"text-{event.result.action_id}" if says_more else f"text-{self._loop}"
        new_piece = "" if text in self._streamed and not event.job else text
        is_duck_call = event.result.operation == DUCK_CALL
        items: list[Item] = [TextItem(name, number, event.at, "model", text, piece=new_piece, duck=is_duck_call)]
        if not event.job:
            if self._text and self._text.id != name:
                items.insert(0, self._text._replace(state="passed", piece=""))
            self._said, self._text = True, None
        return items


def _answer(action: Action) -> str:
    """Returns the words that an action says to the user; empty if the action does not talk."""
    if action.operation not in TALKING:
        return ""
    return next((text for name in TEXTS if isinstance(text := action.args.get(name), str)), "")


def _says_nothing(decision: Decision, answers: list[str]) -> bool:
    """Says whether a rationale is empty, only the beginning of the answer, or only the names of the called tools."""
    rationale_start = decision.rationale.removesuffix(ELLIPSIS)
    names = {name for action in decision.actions for name in (action.operation, wire_name(action.operation))}
    return (
        rationale_start in ("", NOTHING)
        or any(text.startswith(rationale_start) for text in answers)
        or all(part in names for part in rationale_start.split("; "))
    )


RETRY = "model.retry."
"""A wait is shown to people as a retry if the key of its reason begins with this."""
ASKS_MODEL = "wait.model"
EXPLAINED = frozenset(("gate.explained", "gate.not_explained"))
AGENTS_WORK, ASKS = say("wait.agents"), say("wait.you")


class View:
    """Hears the events of one session in their order, and returns the items that each of them makes or changes.

    The view remembers only items that can still change. A caller that wants all items keeps them by their ids."""

    def __init__(self, state: AgentState | None = None) -> None:
        """`state` is the session's state so far, for a view that does not hear the session from its beginning."""
        state = state or AgentState.model_construct()
        self._workers = Workers(state)
        self._reply = ReplyView()
        self._deeds = DeedsView(self._workers)
        self._turn = TurnItem("", 0, 0.0, state.turn)
        self._commands: dict[int, CommandItem] = {}
        self._asked_at: list[float] = []
        """The times of the requests that have no answer yet."""
        self.now = NowItem("now", 0, 0.0)
        self.chosen = ChosenItem("chosen", 0, 0.0, state.model, 0, state.mode)

    def hear(self, number: int, event: Event) -> list[Item]:
        """Returns new and changed items. `number` is the event's number in the journal; 0 if it is not stored."""
        match event:
            case happened.TextStreamed():
                return self._reply.stream(event)
            case happened.ThoughtKept():
                return self._reply.think(event)
            case happened.OutputStreamed():
                return [self._deeds.print(event)]
            case happened.TurnBegan() | happened.LoopBegan() | happened.TurnEnded():
                return self._pace(number, event)
            case happened.MessageAdded():
                return self._message(number, event)
            case happened.DecisionMade():
                self._deeds.decide(event.decision.actions)
                return self._reply.decide(number, event)
            case happened.StreamReset() | happened.ReplyRejected():
                return self._write_again(number, event)
            case happened.ActionStarted():
                return self._start(number, event)
            case happened.ActionFinished():
                items = self._deeds.finish(number, event, self._turn.turn)
                text = event.result.said
                return items if text is None else [*items, *self._reply.say(number, event, text)]
            case happened.QuestionAsked():
                now_items = [] if event.question.job else self._change_now(doing=ASKS)
                return [*now_items, *self._deeds.ask(number, event, self._turn.turn)]
            case happened.QuestionClosed():
                return self._deeds.close(number, event, self._turn.turn)
            case happened.PlanChanged():
                return [PlanItem(f"plan-{number}", number, event.at, event.plan, event.active)]
            case happened.VitalsChanged():
                return [VitalsItem("vitals", number, event.at, event.vitals, self._turn.turn)]
            case happened.UsageReported():
                return self._use(number, event)
            case WorkEvent():
                return self._work(number, event)
            case happened.SessionOpened() | happened.ModelChosen() | happened.ModeChosen() | happened.LanguageChosen():
                return self._choose(number, event)
            case talking.NowChanged() | talking.CommandStarted() | talking.CommandFinished():
                return self._command(event)
            case _:
                return self._note(number, event)

    def _pace(self, number: int, event: happened.TurnBegan | happened.LoopBegan | happened.TurnEnded) -> list[Item]:
        match event:
            case happened.TurnBegan():
                self._turn = TurnItem(f"turn-{event.turn}", number, event.at, event.turn)
                return [*self._change_now(turn_usage=Usage()), self._turn]
            case happened.LoopBegan():
                now_items = self._change_now(loop=event.loop, work=event.profile)
                return [*self._reply.begin(number), *now_items]
            case happened.TurnEnded():
                items = [*self._reply.end(), *self._deeds.leave(""), *self._change_now(doing=None, work="")]
                end_fields = {"outcome": event.outcome, "why": event.why, "waits": event.waits}
                self._turn = self._turn._replace(id=f"turn-{event.turn}", turn=event.turn, **end_fields)
                if event.why:
                    items.append(self._notice(number, event, "ended", event.why)._replace(outcome=event.outcome))
                return [*items, self._turn]

    def _message(self, number: int, event: happened.MessageAdded) -> list[Item]:
        """Shows the user's messages and all pictures. Other messages are shown by other events."""
        message, items = event.message, list[Item]()
        if event.title:
            items += self._change_chosen(title=event.title)
        by_user = message.role == "user" and not message.job
        if by_user or message.pictures:
            items.append(
                TextItem(
                    message.message_id,
                    number,
                    event.at,
                    "user" if by_user else "tool",
                    message.text if by_user else "",
                    meanwhile=message.meanwhile,
                    pictures=message.pictures,
                )
            )
        return items

    def _write_again(self, number: int, event: happened.StreamReset | happened.ReplyRejected) -> list[Item]:
        """Shows that a reply is written again, with the reason if it was rejected."""
        reset_items = self._reply.reset()
        if isinstance(event, happened.ReplyRejected):
            reason = say("reply.rejected", reason=event.reason)
            return [*reset_items, self._notice(number, event, "rejected", reason)]
        return [*reset_items, self._notice(number, event, "again", say("stream.again"))] if reset_items else []

    def _start(self, number: int, event: happened.ActionStarted) -> list[Item]:
        now_items: list[Item] = []
        if event.doing and not event.job:
            now_items = self._change_now(doing=event.doing)
        elif event.job in self._workers.agents:
            now_items = self._change_now(doing=AGENTS_WORK)
        return [*now_items, self._deeds.start(number, event, self._turn.turn)]

    def _use(self, number: int, event: happened.UsageReported) -> list[Item]:
        """Pairs an answer with its request. Requests overlap: the first one sent counts as the first answered."""
        usage, asked_at = event.usage, self._asked_at.pop(0) if self._asked_at else event.at
        request = RequestItem(f"request-{number}", number, asked_at, event.model, usage, event.job)
        return [*self._change_now(turn_usage=self.now.turn_usage.plus(usage)), request]

    def _work(self, number: int, event: WorkEvent) -> list[Item]:
        match event:
            case happened.JobStarted():
                self._workers.names[event.job.job_id] = event.job.name
                return [self._job_notice(number, event, event.job.job_id, "started")]
            case happened.JobChanged():
                status = "resumed" if event.status == "running" else event.status
                job_items = self._deeds.leave(event.job_id) if status == "interrupted" else []
                return [*job_items, self._job_notice(number, event, event.job_id, status)]
            case happened.JobEnded():
                name = self._workers.name(event.job_id)
                report = ReportItem(
                    f"report-{number}", number, event.at, event.job_id, name, event.status, event.report
                )
                return [*self._deeds.leave(event.job_id), report]
            case happened.AgentStarted(agent=agent):
                agent_item = AgentItem(f"agent-{agent.agent_id}", number, event.at, agent.agent_id, agent.kind)
                self._workers.agents[agent.agent_id] = agent_item
                return [agent_item]
            case happened.AgentEnded():
                agent_item = self._workers.agents.get(event.agent_id)
                ended_items = [agent_item._replace(status=event.status, report=event.report)] if agent_item else []
                return [*self._deeds.leave(event.agent_id), *ended_items]
            case happened.StepTold(by_call=False):
                phrase = say("step.told", step=event.step, text=event.words)
                return [self._notice(number, event, "noticed", phrase)]
            case happened.StepChanged():
                return [self._notice(number, event, "step", None, event.step_id)]
            case _:
                return []

    def _choose(
        self,
        number: int,
        event: happened.SessionOpened | happened.ModelChosen | happened.ModeChosen | happened.LanguageChosen,
    ) -> list[Item]:
        match event:
            case happened.SessionOpened():
                self.chosen = self.chosen._replace(number=number, at=event.at)
                return self._change_chosen(language=event.language)
            case happened.LanguageChosen():
                return self._change_chosen(language=event.language)
            case happened.ModelChosen():
                chosen_items = self._change_chosen(model=event.model, window=event.window)
                return [*chosen_items, self._notice(number, event, "model", event.why, subject=event.model)]
            case happened.ModeChosen():
                phrase = say("mode.now", mode=event.mode)
                return [*self._change_chosen(mode=event.mode), self._notice(number, event, "mode", phrase, event.mode)]

    def _command(self, event: talking.NowChanged | talking.CommandStarted | talking.CommandFinished) -> list[Item]:
        match event:
            case talking.NowChanged():
                return [self.now]
            case talking.CommandStarted():
                command = CommandItem(f"command-{event.at}", 0, event.at, event.line)
                self._commands[event.command_id] = command
                return [command]
            case talking.CommandFinished():
                command = self._commands.pop(event.command_id, None)
                command = command or CommandItem(f"command-{event.at}", 0, event.at, "")
                return [command._replace(text=event.text, problem=event.problem, over=True)]

    def _note(self, number: int, event: Event) -> list[Item]:
        match event:
            case happened.Noticed():
                # The user's question about a Gate is answered, so the Gate waits again.
                now_items = self._change_now(doing=ASKS) if event.what.key in EXPLAINED else []
                return [*now_items, self._notice(number, event, "noticed", event.what)]
            case happened.Waiting():
                self._asked_at += [event.at] if event.why.key == ASKS_MODEL else []
                is_retry = event.why.key.startswith(RETRY)
                notice = [self._notice(number, event, "retry", event.why)] if is_retry else []
                return [*self._change_now(doing=event.why), *notice]
            case happened.Intervened():
                notice = self._notice(number, event, "intervened", event.what[-1], subject=event.how)
                return [notice._replace(details=event.what, severity=event.severity)]
            case happened.ProofTried():
                return [self._notice(number, event, "proof", None)._replace(proof=event.proof)]
            case happened.Reviewed():
                return [self._notice(number, event, "reviewed", None)._replace(review=event.review)]
            case happened.ContextPruned():
                return [self._notice(number, event, "pruned", say("notice.pruned"))]
            case happened.TurnUndone():
                files = ", ".join(event.changed) or "–"
                phrase_key = f"undo.{'done' if event.back else 'redone'}{'_named' if event.name else ''}"
                phrase = say(phrase_key, turn=event.turn, name=event.name, files=files)
                notice = self._notice(number, event, "undone", phrase, subject="back" if event.back else "")
                return [notice._replace(turn=0 if event.name else event.turn, paths=event.changed)]
            case happened.PermissionGiven():
                return [self._notice(number, event, "allowed", event.rule)]
            case happened.PastForgotten() if event.words:
                return [self._notice(number, event, "forgotten", None, event.words)]
            case happened.JournalSalvaged():
                phrase = say("journal.salvaged" if event.saved else "journal.lost", kept=event.saved, aside=event.aside)
                return [self._notice(number, event, "noticed", phrase)]
            case happened.SessionTitled():
                return self._change_chosen(title=event.title)
            case talking.LineTaken():
                return [self._notice(0, event, "typed", None, event.text)]
            case talking.LineOffered():
                return [self._notice(0, event, "offered", None, event.text)]
            case talking.ConversationLeft():
                return [self._notice(0, event, "left", None, event.where)]
            case _:
                return []

    def _notice(self, number: int, event: Event, about: About, what: Phrase | None, subject: str = "") -> NoticeItem:
        return NoticeItem(f"notice-{number or event.at}", number, event.at, about, what, subject, turn=self._turn.turn)

    def _job_notice(self, number: int, event: Event, job: str, status: str) -> NoticeItem:
        name = self._workers.name(job)
        phrase = say(f"export.job_{status}", job=name)
        return self._notice(number, event, "job", phrase, subject=status)._replace(job=job, job_name=name)

    def _change_now(self, **changed: Any) -> list[Item]:
        self.now = self.now._replace(**changed)
        return [self.now]

    def _change_chosen(self, **changed: Any) -> list[Item]:
        self.chosen = self.chosen._replace(**changed)
        return [self.chosen]


def items_of(record: Iterable[tuple[int, Event]]) -> Iterator[Item]:
    """Returns every item of a record in its final state, in the order in which they began."""
    view, items = View(), dict[str, Item]()
    for number, event in record:
        items |= {item.id: item for item in view.hear(number, event)}
    yield from items.values()
