"""The connection to the model: the model's properties, and calls to it, which are streamed, counted and reported."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from typing import Literal, NamedTuple, Protocol

from duckflow.agent.pictures import ConversationPictures
from duckflow.agent.request_filter import RequestFilter
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
from duckflow.memory.tokens import LEAST_BUDGET
from duckflow.prompts.settings import PromptSettings
from duckflow.state.data import Phrase, say
from duckflow.state.message import Usage
from duckflow.state.profile import ANY_MODEL, ModelProfile

EMBEDDED = "local:"
LONGEST_REPLY = 1_000_000
"""Most characters of a reply with its thoughts and calls. A longer one is cut off there."""
LETTERS_OF_TOKEN = 4
BILLIONS = r"(?i)(?<![\d.a-z])(\d+(?:\.\d+)?)b(?![a-z\d])"


def make_profile(
    name: str, window: int, settings: PromptSettings, takes_tools: bool = False, sees: bool = False
) -> ModelProfile:
    """Returns the properties of a model. This is the only place that looks at names and sizes of models."""
    is_small_model = settings.profile == "compact" if settings.profile else _is_small(name, window, settings)
    return ModelProfile(
        name=name,
        window=window,
        native_tools=takes_tools and not is_small_model,
        images=sees,
        led=is_small_model,
        local=name.startswith(EMBEDDED),
        most_history=min(LEAST_BUDGET, window // 2) if is_small_model else 0,
    )


def _is_small(name: str, window: int, settings: PromptSettings) -> bool:
    if window <= settings.small_window:
        return True
    # The name of a mixture of experts gives its total size first and its active size after it: the total counts.
    sizes_in_billions = [float(size) for size in re.findall(BILLIONS, name)]
    return bool(sizes_in_billions) and max(sizes_in_billions) <= settings.small_billions


def form_of(profile: ModelProfile) -> Form:
    """Returns the form in which the model gives its Decisions (replies with actions): tool calls if the endpoint has
    them. A small model is better at JSON with a schema than at calling tools. Each form is imported only when it is
    needed, to keep the start fast."""
    if profile.native_tools:
        from duckflow.forms.native import NativeForm

        return NativeForm()
    from duckflow.forms.json_form import CompactJsonForm, JsonForm

    return CompactJsonForm() if profile.led else JsonForm()


class Connected(NamedTuple):
    """A provider that is connected, and the reason why it was chosen."""

    provider: Provider
    why: Phrase


class Model(NamedTuple):
    """A connected model: its provider, its properties, and the form in which it gives its Decisions (replies with
    actions)."""

    provider: Provider
    profile: ModelProfile
    form: Form


Connect = Callable[[], Awaitable[Connected]]
Find = Callable[[str], Awaitable[Connected]]
"""A function that finds the model for a name that the user typed."""


class Shown(Protocol):
    """Decides how much of a streamed reply may be shown already."""

    def feed(self, delta: str) -> str: ...

    def end(self) -> str:
        """Returns the text that was held back and may be shown after all."""
        ...


class ModelConnection:
    """The connection to the model. It is made when it is first needed, so that the user need not wait to type."""

    def __init__(
        self,
        session: StateOwner,
        connect: Connect,
        find: Find,
        settings: PromptSettings,
        pictures: ConversationPictures,
        outgoing: RequestFilter,
        max_budget_usd: float = 0.0,
        max_tokens: int = 0,
        allowance: str = "",
    ) -> None:
        """`allowance` is the address of the process that permits calls, where many processes share a limit."""
        self._session = session
        self.allowance = allowance
        self._model: Model | None = None
        self._looked_at: tuple[str, bool, bool] | None = None
        self.connect = connect
        self.find = find
        self.settings = settings
        self.pictures = pictures
        self.outgoing = outgoing
        self.budget_usd = max_budget_usd
        """Dollars that all models together may cost; 0 means no limit."""
        self._max_tokens = max_tokens
        self._factor = 1.0
        """Factor that corrects the estimate of a request's tokens, measured on the last request."""
        self._connecting: asyncio.Task[Connected] | None = None
        self._left: list[asyncio.Task[Connected]] = []
        self.chosen = ""
        """The name of the model that the user has asked for during the session."""

    @property
    def profile(self) -> ModelProfile:
        """Returns the properties of the model that was connected last."""
        return self._model.profile if self._model else ANY_MODEL

    async def ready(self) -> Model:
        """Returns the model. Callers that come while it is being connected wait for the same connection. After a
        failure the next call tries again."""
        if self._connecting is None or _failed(self._connecting):
            self._connecting = asyncio.create_task(self._connected())
        elif not self._connecting.done():
            self._session.emit(Waiting(why=say("wait.connect")))
        return self._known_as((await asyncio.shield(self._connecting)).provider)

    def _known_as(self, provider: Provider) -> Model:
        """Returns the model of a provider. Its properties are computed anew when the provider turns out not to take
        tools or pictures, or when another model has taken over."""
        takes_pictures, takes_tools = provider.takes_pictures is not False, provider.takes_tools
        model_traits = provider.model, takes_pictures, takes_tools
        if self._model is None or self._model.provider is not provider or self._looked_at != model_traits:
            self._looked_at = model_traits
            profile = make_profile(provider.model, provider.window, self.settings, takes_tools, takes_pictures)
            self._model = Model(provider, profile, form_of(profile))
        return self._model

    async def ready_profile(self) -> ModelProfile:
        """Returns the model's properties; the model is connected first if it is not yet."""
        return (await self.ready()).profile

    async def _connected(self) -> Connected:
        self._session.emit(Waiting(why=say("wait.connect")))
        connected, _ = await asyncio.gather(self.connect(), self.outgoing.get_ready())
        return await self._announced(connected)

    async def _announced(self, connected: Connected) -> Connected:
        provider = connected.provider
        self._session.emit(ModelChosen(model=provider.model, why=connected.why, window=provider.window))
        return connected

    def switch(self, connect: Connect) -> None:
        """Uses another model from the next call on."""
        if self._connecting:
            self._left.append(self._connecting)
        self.connect, self._connecting, self._factor = connect, None, 1.0

    async def change(self, name: str) -> str:
        """Uses the model of this name from the next call on, and returns its full name. If the model cannot be used,
        raises an error and keeps the old model."""
        connection, self.chosen = await self.find(name), name

        async def same() -> Connected:
            return connection

        self.switch(same)
        self._connecting = asyncio.create_task(self._announced(connection))
        await self._connecting
        state = self._session.state
        if not state.turn_open and not state.live_jobs():
            await self._close_left()
        return connection.provider.model

    async def _close_left(self) -> None:
        """Closes the connections of the models that are no longer used."""
        abandoned_connections, self._left = self._left, []
        for connecting in abandoned_connections:
            await _leave(connecting)

    async def aclose(self) -> None:
        """Closes every model, also one that is still being connected."""
        if self._connecting:
            self._left.append(self._connecting)
        await self._close_left()

    def check_budget(self, prompt: int, dollars: float) -> None:
        """Raises BudgetSpent when the money or the tokens are used up, or when a request of `prompt` tokens that costs
        `dollars` would take more than is left."""
        usage = self._session.state.usage
        dollars_spent, tokens = usage.cost_usd, usage.prompt_tokens + usage.completion_tokens
        if self.budget_usd and dollars_spent >= self.budget_usd:
            raise BudgetSpent("budget.spent", limit=self.budget_usd)
        if self.budget_usd and dollars_spent + dollars > self.budget_usd:
            dollar_figures = {"used": f"{dollars_spent:.2g}", "next": f"{dollars:.2g}"}
            raise BudgetSpent("budget.spent_next", limit=self.budget_usd, **dollar_figures)
        if self._max_tokens and tokens >= self._max_tokens:
            raise BudgetSpent("budget.tokens", limit=self._max_tokens)
        if self._max_tokens and tokens + prompt > self._max_tokens:
            raise BudgetSpent("budget.tokens_next", limit=self._max_tokens, used=tokens, next=prompt)

    async def call(self, request: Request, shown: Callable[[], Shown], channel: Literal["say", "body", ""]) -> Reply:
        """Returns the reply. Raises a ModelError, or BudgetSpent if the money or the tokens do not suffice for the
        call. Without a `channel` nothing is streamed: the conversation may be streaming something else."""
        provider, emit = (await self.ready()).provider, self._session.emit if channel else _tell_nobody
        request = await self.outgoing.filtered(request)
        estimated_tokens = estimate_request(request)
        prompt = round(estimated_tokens * self._factor)
        if self.budget_usd and provider.least_price is None:
            raise BudgetSpent("budget.no_price", model=provider.model, limit=self.budget_usd)
        self.check_budget(prompt, prompt * (provider.least_price or 0.0) / 1_000_000)
        emit(Waiting(why=say("wait.model", model=provider.model)))
        reply_pieces, thoughts, size = list[str](), list[str](), 0
        live_text = shown()
        clock, start_time = asyncio.get_running_loop().time, 0.0
        has_pictures = any(message.pictures for message in request.messages)
        shown_in = self.pictures.shown_in(request) if has_pictures else nullcontext(request)
        permit_context = aclosing(CallPermit(self.allowance)) if self.allowance else nullcontext()
        async with (
            permit_context as permit,
            shown_in as whole_request,
            aclosing(closable(provider, whole_request)) as chunks,
        ):
            if permit:
                await permit.ask(_wanted(provider, request, prompt))
            async for chunk in chunks:
                start_time = start_time or clock()
                if isinstance(chunk, Delta | Thought | CallDelta) and (size := size + len(chunk.text)) > LONGEST_REPLY:
                    used = Usage(prompt_tokens=prompt, completion_tokens=size // LETTERS_OF_TOKEN)
                    self._session.emit(UsageReported(model=provider.model, usage=used))
                    if permit:
                        permit.tell(CallUsed(tokens=used.prompt_tokens + used.completion_tokens, dollars=used.cost_usd))
                    return Reply("".join(reply_pieces), "length")
                match chunk:
                    case Delta():
                        reply_pieces.append(chunk.text)
                        if text := live_text.feed(chunk.text):
                            emit(TextStreamed(text=text, channel=channel or "body"))
                    case Thought():
                        thoughts.append(chunk.text)
                        emit(TextStreamed(text=chunk.text, channel="think"))
                    case CallDelta():
                        if chunk.name:
                            emit(Waiting(why=say("wait.call", name=chunk.name)))
                        emit(TextStreamed(text=chunk.text, channel="body"))
                    case Retrying():
                        reply_pieces.clear()
                        thoughts.clear()
                        live_text, size = shown(), 0
                        emit(StreamReset())
                        emit(Waiting(why=chunk.why))
                        if permit:
                            await permit.ask(_wanted(provider, request, prompt))
                    case Remark():
                        self._session.emit(Noticed(what=chunk.what))
                    case Finished():
                        if text := live_text.end():
                            emit(TextStreamed(text=text, channel=channel or "body"))
                        if thoughts:
                            emit(ThoughtKept(text="".join(thoughts)))
                        usage = chunk.usage.model_copy(update={"seconds": clock() - start_time})
                        used = usage.prompt_tokens + usage.completion_tokens
                        if permit:
                            permit.tell(CallUsed(tokens=used, dollars=usage.cost_usd))
                        self._session.emit(UsageReported(model=provider.model, usage=usage))
                        # A number that equals the estimate was not reported by the provider.
                        text, tokens = "".join(reply_pieces), chunk.usage.prompt_tokens
                        tokens = tokens if tokens != estimated_tokens else 0
                        self._factor = tokens / estimated_tokens if tokens and estimated_tokens else self._factor
                        return Reply(text, chunk.reason, tokens, chunk.calls, chunk.extra, chunk.raw)
        raise ModelError("model.no_end", model=provider.model)

    async def streamed(self, provider: Provider, request: Request) -> AsyncGenerator[Chunk, None]:
        """Streams the reply to a request that is neither counted nor shown. It is filtered like any other one."""
        async with aclosing(closable(provider, await self.outgoing.filtered(request))) as chunks:
            async for chunk in chunks:
                yield chunk


class AgentConnection(ModelConnection):
    """The connection of an agent, to the session's model or to a model of its own. Its usage is reported in the agent's
    own context, and the limits of the session apply too."""

    def __init__(self, context: StateOwner, above: ModelConnection, own: Provider | None, max_tokens: int) -> None:
        """`max_tokens` limits the tokens that did not come from a cache; 0 means no limit."""
        parts = (above.connect, above.find, above.settings, above.pictures, above.outgoing)
        super().__init__(context, *parts, allowance=above.allowance)
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
    """Drops an event of a call that is not shown."""


async def _leave(connecting: asyncio.Task[Connected]) -> None:
    if not connecting.done():
        connecting.cancel()
    with contextlib.suppress(asyncio.CancelledError, DuckflowError):
        await (await connecting).provider.aclose()


def _failed(task: asyncio.Task[Connected]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def closable(provider: Provider, request: Request) -> AsyncGenerator[Chunk, None]:
    """Streams the reply. Closing the returned generator closes the connection, whatever kind of iterator the provider
    has returned."""
    stream = provider.stream(request)
    try:
        async for chunk in stream:
            yield chunk
    finally:
        if close := getattr(stream, "aclose", None):
            await close()
