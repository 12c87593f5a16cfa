"""The history of one agent: what of its messages goes into the next prompt, within a budget of its own."""

from collections.abc import Sequence
from functools import lru_cache

from duckflow.llm.provider import Request
from duckflow.llm.usage import estimate_request
from duckflow.memory.bubble import Bubble, Pruned
from duckflow.memory.settings import LEAST_BUDGET, MemorySettings
from duckflow.memory.tokens import MESSAGE_OVERHEAD, Tokens, estimate
from duckflow.state.agent import AgentState
from duckflow.state.message import Message

LEAST_LEARNED = 2000
"""A shorter request says little of the estimate: what the provider adds of its own weighs too much."""


class AgentHistory:
    """Follows the messages of a state; nothing of them is kept elsewhere."""

    def __init__(self, state: AgentState, settings: MemorySettings) -> None:
        self._state = state
        self._settings = settings
        self._bubble = Bubble(settings)
        self._tokens = Tokens()
        self._tokens.use(state.model)
        self._budget = settings.budget_tokens or LEAST_BUDGET
        self._sent = 0.0
        self._estimate = lru_cache(maxsize=1024)(estimate)
        self._guessed = 0

    def history(self, budget: int) -> list[Message]:
        """The messages for the next prompt; prunes when they are nearly too many."""
        self._budget = budget
        self._follow()
        self._took(self._bubble.fit(self._room()))
        return self._bubble.view(self._room())

    def shown(self, budget: int) -> list[Message]:
        """As the last Decision saw them, and what came since: between a Decision and what belongs to it nothing is
        pruned. What would not fit at all is cut."""
        self._follow()
        return self._bubble.view(budget / self._tokens.factor / self._settings.full_at)

    def history_of_step(self, own: Sequence[Message], budget: int) -> list[Message]:
        """A step's own messages, as far as they fit. Nothing is pruned: the context belongs to the conversation."""
        working = Bubble(self._settings)
        working.follow(own)
        return working.view(budget / self._tokens.factor)

    def evidence(self) -> str:
        """What is quoted from elsewhere: nothing."""
        return ""

    def sent(self, request: Request) -> None:
        """What is sent now; what it really took is learned with the reply."""
        texts = [message.whole for message in request.messages] + [str(tool) for tool in request.tools]
        pictures = sum(picture.tokens for message in request.messages for picture in message.pictures)
        self._sent = pictures + sum(self._estimate(text) + MESSAGE_OVERHEAD for text in texts)
        self._guessed = estimate_request(request)

    def learn(self, prompt_tokens: int) -> None:
        """What the request took. A provider that reports nothing is guessed for elsewhere; a guess teaches nothing."""
        if self._sent >= LEAST_LEARNED and prompt_tokens != self._guessed:
            self._tokens.learn(self._sent, prompt_tokens)

    def _follow(self) -> None:
        state = self._state
        self._bubble.follow(state.messages, state.aside, state.context.forgotten)

    def _took(self, pruned: Pruned | None, told: bool = True) -> None:
        """Something has left the context."""

    def _room(self) -> float:
        return self._budget / self._tokens.factor
