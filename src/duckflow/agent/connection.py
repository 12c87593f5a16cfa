"""The connection to the model: what it is like, and calls to it, streamed, counted and told to whoever watches."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from typing import Literal, NamedTuple, Protocol

from duckflow.agent.pictures import ConversationPictures
from duckflow.agent.session import StateOwner
from duckflow.allowance import LIKELY_REPLY, CallPermit, CallUsed, CallWanted
from duckflow.errors import BudgetSpent, DuckflowError, ModelError
from duckflow.events.types import (
    Event,
    ModelChosen,
    Noticed,
    StreamReset,
    TextStreamed,
    ThoughtKept,
    UsageReported,
    Waiting,
)
from duckflow.forms.form import Form
from duckflow.llm.provider import (
    CallDelta,
    Chunk,
    Delta,
    Finished,
    Provider,
    Remark,
    Reply,
    Request,
    Retrying,
    Thought,
    estimate_request,
)
from duckflow.memory.settings import LEAST_BUDGET
from duckflow.prompts.settings import PromptSettings
from duckflow.state.message import Usage
from duckflow.state.phrase import Phrase, say
from duckflow.state.profile import ANY_MODEL, ModelProfile

EMBEDDED = "local:"
LONGEST_REPLY = 1_000_000
"""Letters of a reply, its thoughts and calls; one that goes on is cut off there."""
LETTERS_OF_TOKEN = 4
BILLIONS = r"(?i)(?<![\d.a-z])(\d+(?:\.\d+)?)b(?![a-z\d])"


def make_profile(
    name: str, window: int, settings: PromptSettings, takes_tools: bool = False, sees: bool = False
) -> ModelProfile:
    """What a model is like. The only place that looks at names and sizes."""
    small = settings.profile == "compact" if settings.profile else _is_small(name, window, settings)
    return ModelProfile(
        name=name,
        window=window,
        native_tools=takes_tools and not small,
        images=sees,
        led=small,
        local=name.startswith(EMBEDDED),
        most_history=min(LEAST_BUDGET, window // 2) if small else 0,
    )


def _is_small(name: str, window: int, settings: PromptSettings) -> bool:
    if window <= settings.small_window:
        return True
    # A mixture names its whole first and its active part after it: the whole counts.
    sizes = [float(size) for size in re.findall(BILLIONS, name)]
    return bool(sizes) and max(sizes) <= settings.small_billions


def form_of(profile: ModelProfile) -> Form:
    """Tools where the endpoint has them. A small model is worse at calling tools than at JSON that it is held to. Each
    form is loaded when it is needed: a start counts its imports."""
    if profile.native_tools:
        from duckflow.forms.native import NativeForm

        return NativeForm()
    from duckflow.forms.json_form import CompactJsonForm, JsonForm

    return CompactJsonForm() if profile.led else JsonForm()


class Connected(NamedTuple):
    """A model that is there, and why it was chosen."""

    provider: Provider
    why: Phrase


class Model(NamedTuple):
    """A model that is connected: how it is reached, what it is like, and how Decisions travel to it and back."""

    provider: Provider
    profile: ModelProfile
    form: Form


Connect = Callable[[], Awaitable[Connected]]
Find = Callable[[str], Awaitable[Connected]]
"""Finds the model of a name that the user gives."""


class Shown(Protocol):
    """Picks from the stream what a person may see already."""

    def feed(self, delta: str) -> str: ...

    def end(self) -> str:
        """What was held back and may be seen after all."""
        ...


class ModelConnection:
    """The way to the model, connected when it is first needed: the prompt does not wait for it."""

    def __init__(
        self,
        session: StateOwner,
        connect: Connect,
        find: Find,
        settings: PromptSettings,
        pictures: ConversationPictures,
        max_budget_usd: float = 0.0,
        max_tokens: int = 0,
        allowance: str = "",
    ) -> None:
        """`allowance`: the address of who grants calls."""
        self._session = session
        self.allowance = allowance
        self._model: Model | None = None
        self._looked_at: tuple[str, bool, bool] | None = None
        self.connect = connect
        self.find = find
        self.settings = settings
        self.pictures = pictures
        self.budget_usd = max_budget_usd
        """What all models together may cost; 0 without a limit."""
        self._max_tokens = max_tokens
        self._factor = 1.0
        """What the estimate of a request is multiplied by: as the last one has turned out."""
        self._connecting: asyncio.Task[Connected] | None = None
        self._left: list[asyncio.Task[Connected]] = []
        self.chosen = ""
        """What the user has asked for while it ran."""

    @property
    def profile(self) -> ModelProfile:
        """What the model is like that was connected last."""
        return self._model.profile if self._model else ANY_MODEL

    async def ready(self) -> Model:
        """The model. Whoever asks while it is being connected waits for the same one; a failure is tried again."""
        if self._connecting is None or _failed(self._connecting):
            self._connecting = asyncio.create_task(self._connected())
        return self._known_as((await asyncio.shield(self._connecting)).provider)

    def _known_as(self, provider: Provider) -> Model:
        """Looked at once; and again when it takes no tools or pictures after all, or another model has taken over."""
        sees, takes_tools = provider.takes_pictures is not False, provider.takes_tools
        looks = provider.model, sees, takes_tools
        if self._model is None or self._model.provider is not provider or self._looked_at != looks:
            self._looked_at = looks
            profile = make_profile(provider.model, provider.window, self.settings, takes_tools, sees)
            self._model = Model(provider, profile, form_of(profile))
        return self._model

    async def ready_profile(self) -> ModelProfile:
        """What the model is like; it is connected if need be."""
        return (await self.ready()).profile

    async def _connected(self) -> Connected:
        self._session.emit(Waiting(why=say("wait.connect")))
        return await self._announced(await self.connect())

    async def _announced(self, connected: Connected) -> Connected:
        provider = connected.provider
        self._session.emit(ModelChosen(model=provider.model, why=connected.why, window=provider.window))
        return connected

    def switch(self, connect: Connect) -> None:
        """From the next call on, another model."""
        if self._connecting:
            self._left.append(self._connecting)
        self.connect, self._connecting, self._factor = connect, None, 1.0

    async def change(self, name: str) -> str:
        """From the next call on, the model of this name. Gives its full name; one that cannot be used raises, and the
        old one stays."""
        connected, self.chosen = await self.find(name), name

        async def same() -> Connected:
            return connected

        self.switch(same)
        self._connecting = asyncio.create_task(self._announced(connected))
        await self._connecting
        state = self._session.state
        if not state.turn_open and not state.live_jobs():
            await self._close_left()
        return connected.provider.model

    async def _close_left(self) -> None:
        """Let go of the models that were switched away from."""
        left, self._left = self._left, []
        for connecting in left:
            await _leave(connecting)

    async def aclose(self) -> None:
        """Leave every model, also one that is still being connected."""
        if self._connecting:
            self._left.append(self._connecting)
        await self._close_left()

    def check_budget(self, prompt: int, dollars: float) -> None:
        """BudgetSpent when the money or the tokens are gone, or what a request of so many tokens costs at least would
        be more than is left."""
        used = self._session.state.usage
        spent, tokens = used.cost_usd, used.prompt_tokens + used.completion_tokens
        if self.budget_usd and spent >= self.budget_usd:
            raise BudgetSpent("budget.spent", limit=self.budget_usd)
        if self.budget_usd and spent + dollars > self.budget_usd:
            told = {"used": f"{spent:.2g}", "next": f"{dollars:.2g}"}
            raise BudgetSpent("budget.spent_next", limit=self.budget_usd, **told)
        if self._max_tokens and tokens >= self._max_tokens:
            raise BudgetSpent("budget.tokens", limit=self._max_tokens)
        if self._max_tokens and tokens + prompt > self._max_tokens:
            raise BudgetSpent("budget.tokens_next", limit=self._max_tokens, used=tokens, next=prompt)

    async def call(self, request: Request, shown: Callable[[], Shown], channel: Literal["say", "body", ""]) -> Reply:
        """The reply, or a ModelError; BudgetSpent before a call for which the money or the tokens do not last. Without
        a `channel` nobody is told while it comes: the conversation may be streaming something else."""
        provider, emit = (await self.ready()).provider, self._session.emit if channel else _tell_nobody
        guessed = estimate_request(request)
        prompt = round(guessed * self._factor)
        if self.budget_usd and provider.least_price is None:
            raise BudgetSpent("budget.no_price", model=provider.model, limit=self.budget_usd)
        self.check_budget(prompt, prompt * (provider.least_price or 0.0) / 1_000_000)
        emit(Waiting(why=say("wait.model", model=provider.model)))
        pieces, thoughts, size = list[str](), list[str](), 0
        live = shown()
        now, began = asyncio.get_running_loop().time, 0.0
        pictured = any(message.pictures for message in request.messages)
        shown_in = self.pictures.shown_in(request) if pictured else nullcontext(request)
        permitted = aclosing(CallPermit(self.allowance))
        async with permitted as permit, shown_in as whole, aclosing(closable(provider, whole)) as chunks:
            await permit.ask(_wanted(provider, request, prompt))
            async for chunk in chunks:
                began = began or now()
                if isinstance(chunk, Delta | Thought | CallDelta) and (size := size + len(chunk.text)) > LONGEST_REPLY:
                    used = Usage(prompt_tokens=prompt, completion_tokens=size // LETTERS_OF_TOKEN)
                    self._session.emit(UsageReported(model=provider.model, usage=used))
                    permit.tell(CallUsed(tokens=used.prompt_tokens + used.completion_tokens, dollars=used.cost_usd))
                    return Reply("".join(pieces), "length")
                match chunk:
                    case Delta():
                        pieces.append(chunk.text)
                        if text := live.feed(chunk.text):
                            emit(TextStreamed(text=text, channel=channel or "body"))
                    case Thought():
                        thoughts.append(chunk.text)
                        emit(TextStreamed(text=chunk.text, channel="think"))
                    case CallDelta():
                        if chunk.name:
                            emit(Waiting(why=say("wait.call", name=chunk.name)))
                        emit(TextStreamed(text=chunk.text, channel="body"))
                    case Retrying():
                        pieces.clear()
                        thoughts.clear()
                        live, size = shown(), 0
                        emit(StreamReset())
                        emit(Waiting(why=chunk.why))
                        await permit.ask(_wanted(provider, request, prompt))
                    case Remark():
                        self._session.emit(Noticed(what=chunk.what))
                    case Finished():
                        if text := live.end():
                            emit(TextStreamed(text=text, channel=channel or "body"))
                        if thoughts:
                            emit(ThoughtKept(text="".join(thoughts)))
                        usage = chunk.usage.model_copy(update={"seconds": now() - began})
                        used = usage.prompt_tokens + usage.completion_tokens
                        permit.tell(CallUsed(tokens=used, dollars=usage.cost_usd))
                        self._session.emit(UsageReported(model=provider.model, usage=usage))
                        text, tokens = "".join(pieces), chunk.usage.prompt_tokens
                        self._factor = tokens / guessed if tokens and guessed else self._factor
                        return Reply(text, chunk.reason, tokens, chunk.calls, chunk.extra, chunk.raw)
        raise ModelError("model.no_end", model=provider.model)


class AgentConnection(ModelConnection):
    """The way of an agent: to the session's model, or to one of its own. What it uses is told in its context; the
    limits of the session hold as well."""

    def __init__(self, context: StateOwner, above: ModelConnection, own: Provider | None, max_tokens: int) -> None:
        """`max_tokens`: what no cache gave counts; 0: no limit."""
        super().__init__(context, above.connect, above.find, above.settings, above.pictures, allowance=above.allowance)
        self._above = above
        self._most = max_tokens
        self._own = own

    async def ready(self) -> Model:
        return self._known_as(self._own) if self._own else await self._above.ready()

    def check_budget(self, prompt: int, dollars: float) -> None:
        self._above.check_budget(prompt, dollars)
        if self._most and self._session.state.usage.fresh >= self._most:
            raise BudgetSpent("agent.cap.tokens", limit=self._most)


def _wanted(provider: Provider, request: Request, prompt: int) -> CallWanted:
    price = provider.least_price
    dollars = None if price is None else prompt * price / 1_000_000
    reply = request.max_tokens or LIKELY_REPLY
    return CallWanted(model=provider.model, prompt=prompt, reply=reply, dollars=dollars)


def _tell_nobody(_: Event) -> None:
    """Where what goes on is not shown."""


async def _leave(connecting: asyncio.Task[Connected]) -> None:
    if not connecting.done():
        connecting.cancel()
    with contextlib.suppress(asyncio.CancelledError, DuckflowError):
        await (await connecting).provider.aclose()


def _failed(task: asyncio.Task[Connected]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def closable(provider: Provider, request: Request) -> AsyncGenerator[Chunk, None]:
    """Closing this closes the connection, whatever kind of iterator the provider gave."""
    stream = provider.stream(request)
    try:
        async for chunk in stream:
            yield chunk
    finally:
        if close := getattr(stream, "aclose", None):
            await close()
