"""Turns the items of a conversation into updates of an editor's session."""

from collections.abc import Callable
from pathlib import Path

from duckflow.commands.plan_tree import job_summary, plan_tree
from duckflow.editor.questions import question_text
from duckflow.editor.tool_calls import ToolCalls, Update, fenced
from duckflow.errors import OUTCOMES
from duckflow.events.ports import Conversation
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.data import Phrase
from duckflow.view.items import (
    About,
    ActionItem,
    ChosenItem,
    Item,
    NoticeItem,
    OutputItem,
    PlanItem,
    QuestionItem,
    ReasonItem,
    ReportItem,
    RequestItem,
    TextItem,
    TurnItem,
    notice_line,
)
from duckflow.view.view import View

TOLD: frozenset[About] = frozenset(("noticed", "retry", "rejected", "again", "model"))
IN_EDITOR = {
    "model.none_found": "editor.no_model",
    "model.key_missing_alone": "editor.key_missing",
    "model.key_refused_alone": "editor.key_refused",
}
"""The sentences on a missing model or key that say something else in an editor than in a terminal."""
PLAN_STATUS = {"pending": "pending", "in_progress": "in_progress", "completed": "completed", "failed": "pending"}


def in_editor(phrase: Phrase) -> Phrase:
    """Returns the sentence as it is true in an editor."""
    return phrase.model_copy(update={"key": IN_EDITOR.get(phrase.key, phrase.key)})


class Messages:
    """Makes chunks of messages. All chunks of one message have the same id."""

    def __init__(self) -> None:
        self._number = 0
        self._last = "", ""

    def interrupted(self) -> None:
        """Notes that another kind of update was shown after the last message."""
        self._last = "", ""

    def think(self, text: str, name: str = "") -> list[Update]:
        return self.say(text, name, "agent_thought_chunk")

    def say(self, text: str, name: str = "", kind: str = "agent_message_chunk") -> list[Update]:
        """Returns a chunk. Without a name, the chunk is a message of its own."""
        if not text:
            return []
        self._number += not name
        message, (last_kind, last_message) = name or f"told-{self._number}", self._last
        # Some editors ignore the ids of messages, so an empty line separates them.
        separator = "\n\n" if last_kind == kind and last_message != message else ""
        self._last = kind, message
        return [{"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": separator + text}}]


class Updates:
    """Turns the items of one conversation into updates for an editor. `options` are the settings that the editor may
    change."""

    def __init__(
        self, conversation: Conversation, words: Words, root: Path, options: Callable[[], list[Update]]
    ) -> None:
        self._conversation = conversation
        self._words = words
        self._options = options
        self._calls = ToolCalls(root, words)
        self._messages = Messages()
        self._plan: list[Update] = []
        self._chosen = View(conversation.state).chosen
        self._faces = self._health().values
        self._worked = False

    def of(self, item: Item, live: bool = True) -> list[Update]:
        """Returns the updates for an item. For an item of the past these are only words and actions, no passing
        states."""
        match item:
            case TextItem():
                return self._text(item, live)
            case ReasonItem():
                return self._messages.think(item.piece, item.id)
            case ActionItem():
                return self._act(item, live)
            case OutputItem():
                return self._calls.output(item)
            case QuestionItem(closed=False, question=question) if question and question.on_record:
                if question.gate:
                    return self._calls.wait_for_yes(question.gate)
                return self._messages.say(question_text(question, self._words))
            case PlanItem() | ReportItem() | NoticeItem(about="job" | "step"):
                return self._work(item, live)
            case NoticeItem():
                return self._note(item, live)
            case TurnItem(outcome=outcome) if outcome and live:
                return self._end()
            case ChosenItem():
                return self._choose(item, live)
            case RequestItem(usage=usage) if live:
                return self._used(usage.prompt_tokens + usage.completion_tokens)
            case _:
                return []

    def at_rest(self) -> list[Update]:
        """Returns the current state, after the past has been shown."""
        return [*self._entries(), *self._used(0)]

    def say(self, text: str) -> list[Update]:
        """Returns a message from Duckflow itself."""
        return self._messages.say(text)

    def own_command(self, command: str) -> list[Update]:
        return self._calls.own_command(command)

    def _text(self, item: TextItem, live: bool) -> list[Update]:
        """Returns text as chunks. The user's own live messages are left out, because the editor has shown them
        already."""
        match item.by:
            case "user":
                return [] if live else self._messages.say(item.text, item.id, "user_message_chunk")
            case "thought":
                return self._messages.think(item.piece, item.id)
            case "model":
                # A whole text that differs from what was streamed is a message of its own.
                name = item.id if item.state == "streaming" else ""
                return self._messages.say(item.piece, name)
            case _:
                return []

    def _act(self, item: ActionItem, live: bool) -> list[Update]:
        updates = self._calls.draw(item, live)
        if item.result is None or item.result.said is not None:
            return updates
        self._worked = True
        self._messages.interrupted()
        return updates or self._messages.think(plain(self._words.phrase(item.result.for_user)))

    def _work(self, item: PlanItem | ReportItem | NoticeItem, live: bool) -> list[Update]:
        updates = self._entries() if live else []
        match item:
            case PlanItem(active=True, plan=plan) if plan.status == "draft":
                updates += self._messages.say(fenced(plan_tree(plan, self._words)))
            case NoticeItem(about="job", subject="started"):
                updates += self._calls.job_started(item.job, item.job_name)
            case ReportItem():
                summary = job_summary(item.job_name, item.status, item.report, self._words)
                updates += self._calls.job_ended(item.job, item.status == "completed", summary)
                updates += self._messages.say(summary)
            case _:
                pass
        return updates

    def _entries(self) -> list[Update]:
        """Returns the plan if it differs from the plan that the editor knows. A withdrawn plan has no entries."""
        plan = self._conversation.state.plan
        entries = [
            {
                "content": f"✗ {step.name}" if step.status == "failed" else step.name,
                "priority": "medium",
                "status": PLAN_STATUS[step.status],
            }
            for step in (plan.steps if plan and not plan.given_up else ())
        ]
        if entries == self._plan:
            return []
        self._plan = entries
        return [{"sessionUpdate": "plan", "entries": entries}]

    def _note(self, item: NoticeItem, live: bool) -> list[Update]:
        """Returns a notice. A notice that the terminal shows dimmed becomes a thought. A live failure is left out,
        because it is sent as an error."""
        if item.what and item.outcome and item.outcome != "interrupted":
            has_failed = live and OUTCOMES[item.outcome].kind == "failed"
            return [] if has_failed else self._messages.say(plain(self._words.phrase(item.what)))
        if not live or item.about not in TOLD:
            return []
        if item.what and item.what.key in IN_EDITOR:
            return self._messages.say(plain(self._words.phrase(in_editor(item.what))))
        return self._messages.think(plain(notice_line(item, self._words)))

    def _end(self) -> list[Update]:
        bar, has_worked, self._worked = self._health(), self._worked, False
        faces_changed = any(bar.values[name] != value for name, value in self._faces.items() if name.endswith("_face"))
        self._faces = bar.values
        return self._messages.say(self._words.phrase(bar)) if has_worked or faces_changed else []

    def _health(self) -> Phrase:
        return self._conversation.health_bar()

    def _choose(self, item: ChosenItem, live: bool) -> list[Update]:
        chosen_before, self._chosen = self._chosen, item
        updates: list[Update] = []
        if item.title != chosen_before.title:
            updates.append({"sessionUpdate": "session_info_update", "title": item.title})
        if not live:
            return updates
        if item.mode != chosen_before.mode:
            updates.append({"sessionUpdate": "current_mode_update", "currentModeId": item.mode})
        if item.language:
            self._words.language = item.language
        return updates if item._replace(title=chosen_before.title) == chosen_before else [*updates, *self._choices()]

    def _used(self, tokens: int) -> list[Update]:
        """Returns the usage of the model's window, once its size is known."""
        state = self._conversation.state
        if not self._chosen.window:
            return []
        usage_update: Update = {"sessionUpdate": "usage_update", "used": tokens, "size": self._chosen.window}
        if state.usage.cost_usd:
            usage_update["cost"] = {"amount": state.usage.cost_usd, "currency": "USD"}
        return [usage_update | {"_meta": {"duckflow": {"vitals": state.vitals.model_dump()}}}]

    def _choices(self) -> list[Update]:
        return [{"sessionUpdate": "config_option_update", "configOptions": self._options()}]
