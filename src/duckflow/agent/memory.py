"""The memory of an agent and of the conversation: what goes into the prompt, what is archived, what is found again."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from duckflow.agent.session import Session
from duckflow.events.talking import LineOffered
from duckflow.events.types import (
    ActionFinished,
    ContextPruned,
    ContextReferred,
    Event,
    MessageAdded,
    MessagesSetAside,
    ModelChosen,
    Noticed,
    PastSummarised,
    TurnEnded,
)
from duckflow.events.work import JobEnded, StepChanged, TaskChanged
from duckflow.i18n.words import facts_of
from duckflow.llm.provider import Request
from duckflow.memory.archive_hit import NEAR, WIDE, ArchiveHit, Reach
from duckflow.memory.bubble import Bubble, Pruned
from duckflow.memory.castle import Castle, ProjectFacts
from duckflow.memory.gravel import Gravel
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import LEAST_BUDGET, MESSAGE_OVERHEAD, Tokens, clip, estimate
from duckflow.prompts.layers import alternate
from duckflow.state.agent import AgentState, Receipt
from duckflow.state.data import Phrase, say
from duckflow.state.message import Message, last_request

if TYPE_CHECKING:
    from duckflow.agent.forgetting import Forgetting


LEAST_LEARNED = 2000
"""Least size of a request that corrects the estimate of tokens. In a shorter one the provider's own additions weigh too
much."""


class AgentHistory:
    """Selects the messages of a state that go into the prompt. It stores no copy of them."""

    def __init__(self, state: AgentState, settings: MemorySettings) -> None:
        self._state = state
        self._settings = settings
        self._bubble = Bubble(settings)
        self._tokens = Tokens()
        self._tokens.use(state.model)
        self._budget = settings.budget_tokens or LEAST_BUDGET
        self._sent = 0.0
        self._estimate = lru_cache(maxsize=1024)(estimate)

    async def history(self, budget: int) -> list[Message]:
        """Returns the messages for the next prompt. When they nearly fill the context, it is pruned first."""
        self._budget = budget
        self._follow()
        if self._bubble.is_full(self._room()):
            await self._before_pruning()
            self._follow()
        self._took(self._bubble.fit(self._room()))
        return self._bubble.view(self._room())

    def shown(self, budget: int) -> list[Message]:
        """Returns the messages that the model saw for its last Decision (a reply with actions), and newer ones. Nothing
        is pruned, so that the follow-up requests see the same messages. Messages that would not fit at all are cut."""
        self._follow()
        return self._bubble.view(budget / self._tokens.factor / self._settings.full_at)

    def history_of_step(self, own: Sequence[Message], budget: int) -> list[Message]:
        """Returns the messages of one step, as far as they fit. Nothing is pruned, because the context belongs to the
        conversation."""
        step_bubble = Bubble(self._settings)
        step_bubble.follow(own)
        return step_bubble.view(budget / self._tokens.factor)

    def evidence(self) -> str:
        """Returns quotations of messages that are no longer in the context. An agent has none."""
        return ""

    def sent(self, request: Request) -> None:
        """Notes the estimated size of a request that is being sent. The reply will say how large it really was."""
        texts = [message.whole for message in alternate(request.messages)] + [str(tool) for tool in request.tools]
        pictures = sum(picture.tokens for message in request.messages for picture in message.pictures)
        self._sent = pictures + sum(self._estimate(text) + MESSAGE_OVERHEAD for text in texts)

    def learn(self, prompt_tokens: int) -> None:
        """Corrects the estimate by the tokens that a request really took; 0 means that the provider did not report it,
        so that nothing is corrected."""
        if self._sent >= LEAST_LEARNED and prompt_tokens:
            self._tokens.learn(self._sent, prompt_tokens)

    def _follow(self) -> None:
        state = self._state
        self._bubble.follow(state.messages, state.aside, state.context.forgotten)

    async def _before_pruning(self) -> None:
        """Is called when something is about to leave the context."""

    def _took(self, pruned: Pruned | None, announce: bool = True) -> None:
        """Is called when something has left the context."""

    def _room(self) -> float:
        return self._budget / self._tokens.factor


RECALLED = 5
RECALL_TOKENS = 1500
PruningHooks = Callable[[Literal["auto", "manual"], str], Awaitable[str]]
"""A function that tells hooks that the context will be pruned, and with which focus. It returns the reason if a hook
does not want that."""


class ConversationMemory(AgentHistory):
    """The memory of the conversation. The thinker gets the history from it; tools and commands use it to look up the
    past."""

    def __init__(
        self,
        session: Session,
        settings: MemorySettings,
        gravel: Gravel,
        castle: Castle,
        facts: ProjectFacts,
        hooks: Callable[[], PruningHooks],
    ) -> None:
        super().__init__(session.state, settings)
        self._session = session
        self._gravel = gravel
        self._castle = castle
        self._facts = facts
        self._hooks = hooks
        self._evidence: tuple[int, str] = (-1, "")
        state = session.state
        if state.context.upto:
            self._bubble.restore(state.messages, state.context, state.aside)
            self._bubble.summarise([summary.cited() for summary in state.context.summaries])
        if state.messages:
            self.forgetting.follow(gravel.catch_up(state.session_id, state.messages))
        session.subscribe(self._hear)

    @property
    def forgetting(self) -> "Forgetting":
        from duckflow.agent.forgetting import Forgetting

        return Forgetting(self._session, self._gravel, self._castle, self._facts, self._look_again)

    def evidence(self) -> str:
        """Returns quotations of earlier messages that the user's message refers to and that are no longer in the
        context. They are looked up once a turn."""
        state = self._session.state
        if self._evidence[0] != state.turn:
            self._evidence = (state.turn, self._quoted(self._asked()))
        return self._evidence[1]

    def lessons(self) -> str:
        """Returns the lessons that have most to do with the user's last message."""
        lines = [lesson.line() for lesson in self._castle.relevant(self._asked(), self._settings.lessons)]
        return clip("\n".join(lines), self._settings.lesson_tokens)

    def known(self) -> str:
        """Returns what is known of the project from earlier sessions."""
        state, limits = self._session.state, self._settings.known_bytes
        return self._facts.text(state.session_id, limits.get(state.language, facts_of(state.language).known_bytes))

    def find(self, question: str, in_context: bool = False) -> tuple[int, str]:
        """Returns the number of messages that were found, and their quotations. Those in the context are included only
        on request."""
        from duckflow.memory.archive_hit import of_turn, quote_hits

        state = self._session.state
        hits = of_turn(question, state.messages, state.session_id)
        hits = hits or self._found(question, RECALLED, WIDE, in_context)
        self._refer(hits)
        return len(hits), quote_hits(hits, RECALL_TOKENS)

    def report(self) -> tuple[Phrase, ...]:
        """Returns lines for the user: what is in the context and why, what was dropped, and a note of each pruning."""
        state, bubble = self._session.state, self._bubble
        self._follow()
        tokens = round(bubble.tokens * self._tokens.factor)
        shown_count = len(bubble.entries)
        lines = [
            say("memory.context", tokens=tokens, budget=self._budget, shown=shown_count, messages=len(state.messages)),
            say("memory.pinned", recent=min(self._settings.recent_messages, shown_count)),
            say("memory.archive", messages=self._gravel.count(), lessons=len(self._castle.lessons())),
        ]
        if (success_counts := self._facts.successes())["tasks"]:
            lines.append(say("memory.successes", **success_counts))
        lines += [say("memory.summary", text=summary.cited()) for summary in state.context.summaries]
        return (*lines, *(receipt_phrase(receipt) for receipt in state.context.receipts))

    async def compact(self, focus: str) -> Phrase:
        """Prunes the context now, and keeps above all the messages that have to do with the focus."""
        state = self._session.state
        if reason := await self._hooks()("manual", focus):
            return say("hook.keeps_context", reason=reason)
        self._follow()
        pruned = self._bubble.prune(self._room(), self._settings.compact_to, focus)
        self._took(pruned, announce=False)
        return receipt_phrase(state.context.receipts[-1]) if pruned else say("memory.compact_enough")

    def own_messages(self) -> list[Message]:
        ids_set_aside = self._set_aside()
        user_messages = [
            message
            for message in self._session.state.messages
            if message.role == "user" and message.message_id not in ids_set_aside
        ]
        return [message for message in user_messages if not message.meanwhile]

    def go_back(self, message: Message) -> None:
        messages = self._session.state.messages
        self._session.emit(MessagesSetAside(first=messages.index(message), last=len(messages)))
        self._session.emit(LineOffered(text=message.text))

    async def aclose(self) -> None:
        self._gravel.close()

    def _set_aside(self) -> set[str]:
        state = self._session.state
        return {message.message_id for first, last in state.aside for message in state.messages[first:last]}

    def _asked(self) -> str:
        return last_request(self._session.state.messages)

    def _look_again(self) -> None:
        """Drops the results of earlier searches, because something was forgotten since."""
        self._evidence = (-1, "")
        self._bubble.summarise([summary.cited() for summary in self._session.state.context.summaries])

    def _quoted(self, asked: str) -> str:
        self._follow()
        if self._gravel.is_new and len(self._bubble.entries) == len(self._session.state.messages):
            # Everything that was ever said is in the prompt.
            return ""
        from duckflow.memory.archive_hit import quote_hits, select_relevant

        ids_set_aside, state = self._set_aside(), self._session.state
        near_hits = self._found(asked, self._settings.evidence_hits, NEAR)
        relevant_hits = select_relevant(near_hits, asked, state.session_id, state.language)
        # Messages that the user went back from do not come back by themselves.
        hits = [hit for hit in relevant_hits if hit.message_id not in ids_set_aside]
        self._refer(hits)
        return quote_hits(hits, self._settings.evidence_tokens)

    def _refer(self, hits: Sequence[ArchiveHit]) -> None:
        """Reports the conversations that the found messages come from: turns of this session by their numbers, other
        sessions by their names."""
        if not hits:
            return
        wanted_ids = {hit.message_id for hit in hits}
        messages = [message for message in self._session.state.messages if message.message_id in wanted_ids]
        turns = {message.message_id: str(message.turn) for message in messages}
        if names := tuple(dict.fromkeys(turns.get(hit.message_id, hit.session) for hit in hits)):
            self._session.emit(ContextReferred(conversations=names))

    def _found(self, question: str, limit: int, reach: Reach, in_context: bool = False) -> list[ArchiveHit]:
        self._follow()
        shown_ids = {entry.message.message_id for entry in self._bubble.entries if entry.cut is None and not in_context}
        return self._gravel.search(question, limit, shown_ids, reach)

    async def _before_pruning(self) -> None:
        """Tells hooks that the context will be pruned. Messages that do not fit must leave even if a hook objects; they
        are archived, so nothing is lost."""
        if reason := await self._hooks()("auto", ""):
            self._session.emit(Noticed(what=say("hook.context_full", reason=reason)))

    def _took(self, pruned: Pruned | None, announce: bool = True) -> None:
        if pruned is None:
            return
        receipt = Receipt(
            dropped=len(pruned.dropped),
            kept=len(pruned.kept),
            cut=len(pruned.cut),
            tokens_before=pruned.tokens_before,
            tokens_after=pruned.tokens_after,
            turn=self._session.state.turn,
        )
        self._session.emit(
            ContextPruned(kept=pruned.kept, cut=pruned.cut, upto=pruned.upto, receipt=receipt, dropped=pruned.dropped)
        )
        if announce:
            self._session.emit(Noticed(what=receipt_phrase(receipt)))

    def _hear(self, event: Event) -> None:
        state = self._session.state
        match event:
            case MessageAdded() if event.message.job in state.agents or (
                event.message.job and event.message.role == "user"
            ):
                # Messages of an agent quote files as they were then, and messages to a job are not the user's own. Of
                # an agent only its report is archived.
                pass
            case MessageAdded():
                self._gravel.add(state.session_id, event.message)
            case ActionFinished() if event.result.ok:
                self._facts.saw(event.result.operation, event.result.changed)
            case TaskChanged(status="completed" | "failed" as status):
                self._facts.task_ended(status)
            case StepChanged() if (plan := state.plans.get(event.plan_id)) and plan.status == "completed":
                self._facts.plan_ended(plan.plan_id, plan.status)
            case JobEnded(status="completed" | "failed" as status) if job := state.jobs.get(event.job_id):
                if status == "failed":
                    self._facts.plan_ended(job.plan_id, status)
                self._facts.save(state.session_id, state.title)
            case PastSummarised():
                self._bubble.summarise([summary.cited() for summary in state.context.summaries])
            case ModelChosen():
                self._tokens.use(event.model)
            case TurnEnded():
                self._facts.save(state.session_id, state.title)
            case _:
                pass


def receipt_phrase(receipt: Receipt) -> Phrase:
    return say(
        "memory.receipt",
        dropped=receipt.dropped,
        kept=receipt.kept,
        cut=receipt.cut,
        before=receipt.tokens_before,
        after=receipt.tokens_after,
    )
