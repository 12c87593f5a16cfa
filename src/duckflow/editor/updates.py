"""What happens in a conversation, as the updates of an editor's session."""

from collections.abc import Callable
from pathlib import Path

from duckflow.commands.plan_tree import job_summary, plan_tree
from duckflow.editor.questions import question_text
from duckflow.editor.tool_calls import ToolCalls, Update, fenced
from duckflow.events import types as happened
from duckflow.events.ports import Conversation
from duckflow.events.work import WorkEvent
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.outcome import OUTCOMES
from duckflow.state.phrase import Phrase

RETRY = "model.retry."
"""Endings that the editor is told as an error."""
PLAN_STATUS = {"pending": "pending", "in_progress": "in_progress", "completed": "completed", "failed": "pending"}


class Messages:
    """What is said, in chunks; those of one message have one id."""

    def __init__(self) -> None:
        self._number = 0
        self._last = "", ""

    def next(self) -> None:
        """What is said from now on is another message."""
        self._number += 1

    def interrupted(self) -> None:
        """Something else was shown in between."""
        self._last = "", ""

    def own(self, text: str) -> list[Update]:
        """A message for itself."""
        self.next()
        return self.say(text)

    def think(self, text: str) -> list[Update]:
        return self.say(text, "agent_thought_chunk")

    def say(self, text: str, kind: str = "agent_message_chunk") -> list[Update]:
        if not text:
            return []
        message, (last_kind, last) = f"{kind.split('_')[-2]}-{self._number}", self._last
        # Not every editor looks at the ids of messages.
        apart = "\n\n" if last_kind == kind and last != message else ""
        self._last = kind, message
        return [{"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": apart + text}}]


class Updates:
    """Hears the events of one conversation in their order; `options` are the settings that the editor may change."""

    def __init__(
        self, conversation: Conversation, words: Words, root: Path, options: Callable[[], list[Update]]
    ) -> None:
        self._conversation = conversation
        self._words = words
        self._options = options
        self._calls = ToolCalls(root, words)
        self._calls.know(conversation.state.jobs.values())
        self._messages = Messages()
        self._streamed: list[str] = []
        self._plan: list[Update] = []
        self._window = 0
        self._faces = self._health().values
        self._worked = False

    def of(self, event: happened.Event, live: bool = True) -> list[Update]:
        """Of the past, all that was said and done; what is shown while it happens, only `live`."""
        match event:
            case happened.LoopBegan():
                self._streamed = []
                self._messages.next()
                return []
            case happened.TextStreamed():
                return self._stream(event)
            case happened.StreamReset():
                return self._reset()
            case happened.MessageAdded():
                return self._heard(event, live)
            case happened.DecisionMade():
                self._calls.decided(event.decision.actions)
                rationale = event.decision.rationale
                return [] if rationale in "".join(self._streamed) else self._messages.think(rationale)
            case happened.QuestionAsked() if not event.journaled:
                return []
            case happened.QuestionAsked() if event.question.gate:
                return self._calls.asked(event.question.gate, event.question.job)
            case happened.QuestionAsked():
                return self._messages.own(question_text(event.question, self._words))
            case happened.ActionStarted():
                return self._calls.started(event, live)
            case happened.OutputStreamed():
                return self._calls.output(event)
            case happened.ActionFinished():
                return self._finished(event)
            case WorkEvent() | happened.PlanChanged():
                return self._work(event, live)
            case happened.TurnEnded():
                return self._end(event, live)
            case _:
                return self._note(event) if live else self._remember(event)

    def at_rest(self) -> list[Update]:
        """How things stand once the past has been told."""
        return [*self._entries(), *self._used(0)]

    def say(self, text: str) -> list[Update]:
        """Words of Duckflow's own."""
        return self._messages.own(text)

    def own_command(self, command: str) -> list[Update]:
        return self._calls.own_command(command)

    def _tell(self, phrase: Phrase) -> list[Update]:
        """A line at the edge: what the terminal shows dimmed."""
        self._messages.next()
        return self._messages.think(plain(self._words.phrase(phrase)))

    def _stream(self, event: happened.TextStreamed) -> list[Update]:
        if event.channel == "body":
            return []
        if event.channel == "think":
            return self._messages.think(event.text)
        self._streamed.append(event.text)
        return self._messages.say(event.text)

    def _reset(self) -> list[Update]:
        """What was sent cannot be taken back."""
        if not self._streamed:
            return []
        self._streamed = []
        self._messages.next()
        return self._messages.think(self._words("stream.again"))

    def _heard(self, event: happened.MessageAdded, live: bool) -> list[Update]:
        """What the user says the editor has shown itself; a session's title may come with it."""
        message, told = event.message, list[Update]()
        if message.role == "user" and not message.job and not live:
            self._messages.next()
            told += self._messages.say(message.text, "user_message_chunk")
        if event.title:
            told.append({"sessionUpdate": "session_info_update", "title": event.title})
        return told

    def _finished(self, event: happened.ActionFinished) -> list[Update]:
        said = event.result.said
        if said is None:
            self._worked = True
            self._messages.interrupted()
            return self._calls.finished(event) or self._tell(event.result.for_user)
        return [] if said in "".join(self._streamed) else self._messages.own(said)

    def _work(self, event: WorkEvent | happened.PlanChanged, live: bool) -> list[Update]:
        told = self._entries() if live else []
        match event:
            case happened.PlanChanged() if event.active and event.plan.status == "draft":
                told += self._messages.own(fenced(plan_tree(event.plan, self._words)))
            case happened.JobStarted():
                told += self._calls.job_started(event.job)
            case happened.JobEnded():
                name = self._calls.job_name(event.job_id)
                summary = job_summary(name, event.status, event.report, self._words)
                told += self._calls.job_ended(event.job_id, event.status == "completed", summary)
                told += self._messages.own(summary)
            case _:
                pass
        return told

    def _entries(self) -> list[Update]:
        """The plan, when it is another than the editor knows."""
        plan = self._conversation.state.plan
        entries = [
            {
                "content": f"✗ {step.name}" if step.status == "failed" else step.name,
                "priority": "medium",
                "status": PLAN_STATUS[step.status],
            }
            for step in (plan.steps if plan else ())
        ]
        if entries == self._plan:
            return []
        self._plan = entries
        return [{"sessionUpdate": "plan", "entries": entries}]

    def _end(self, event: happened.TurnEnded, live: bool) -> list[Update]:
        told = self._calls.turn_ended()
        if event.why and event.outcome != "interrupted" and not (live and OUTCOMES[event.outcome].kind == "failed"):
            told += self._messages.own(plain(self._words.phrase(event.why)))
        bar, worked, self._worked = self._health(), self._worked, False
        changed = any(bar.values[name] != value for name, value in self._faces.items() if name.endswith("_face"))
        self._faces = bar.values
        return told + (self._messages.own(self._words.phrase(bar)) if live and (worked or changed) else [])

    def _health(self) -> Phrase:
        return self._conversation.health_bar()

    def _note(self, event: happened.Event) -> list[Update]:
        match event:
            case happened.UsageReported():
                return self._used(event.usage.prompt_tokens + event.usage.completion_tokens)
            case happened.ModelChosen():
                self._remember(event)
                why = self._words.phrase(event.why)
                self._messages.next()
                return [*self._messages.think(plain(f"{event.model}: {why}")), *self._choices()]
            case happened.ModeChosen():
                return [{"sessionUpdate": "current_mode_update", "currentModeId": event.mode}, *self._choices()]
            case happened.LanguageChosen():
                self._words.language = event.language
                return self._choices()
            case happened.SessionTitled():
                return [{"sessionUpdate": "session_info_update", "title": event.title}]
            case happened.Waiting() if event.why.key.startswith(RETRY):
                return self._tell(event.why)
            case happened.ReplyRejected():
                # That it is asked again is told once.
                self._streamed = []
                return self._tell(Phrase(key="reply.rejected", values={"reason": event.reason}))
            case happened.Noticed():
                return self._tell(event.what)
            case _:
                return []

    def _remember(self, event: happened.Event) -> list[Update]:
        if isinstance(event, happened.ModelChosen):
            self._window = event.window
        return []

    def _used(self, tokens: int) -> list[Update]:
        """Nothing before the size of the model's window is known."""
        state = self._conversation.state
        if not self._window:
            return []
        used: Update = {"sessionUpdate": "usage_update", "used": tokens, "size": self._window}
        if state.usage.cost_usd:
            used["cost"] = {"amount": state.usage.cost_usd, "currency": "USD"}
        return [used | {"_meta": {"duckflow": {"vitals": state.vitals.model_dump()}}}]

    def _choices(self) -> list[Update]:
        return [{"sessionUpdate": "config_option_update", "configOptions": self._options()}]
