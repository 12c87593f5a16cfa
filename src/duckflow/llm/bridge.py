"""Models that pydantic-ai speaks to: Anthropic, Google, Bedrock and others. Import it only to build a provider."""

import asyncio
import json
import re
import warnings
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Literal

from pydantic_ai import exceptions as vendor
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider as VendorProvider
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from duckflow.errors import ModelError, ProviderRefused, ToolsRefused, UsageError
from duckflow.llm.abilities import TOOLS_NAMED
from duckflow.llm.bridge_messages import kept_of, vendor_messages
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.facts import facts_of, price_of
from duckflow.llm.failures import BLIND, Failures, key_refused
from duckflow.llm.json_fields import as_count
from duckflow.llm.keys import Key
from duckflow.llm.provider import CallDelta, Chunk, Delta, Finished, Request, Thought
from duckflow.llm.retry import Setback, persist
from duckflow.llm.settings import LlmSettings, Price
from duckflow.llm.usage import charge, measure
from duckflow.state.phrase import say
from duckflow.state.usage import Usage

Reason = Literal["stop", "length", "refusal"]
REASONS: dict[str | None, Reason] = {"length": "length", "content_filter": "refusal"}


class Bridge:
    """A provider over pydantic-ai's model classes."""

    def __init__(
        self, endpoint: Endpoint, model: str, key: Key | None = None, settings: LlmSettings | None = None
    ) -> None:
        self._endpoint = endpoint
        self._name = model
        self._settings = settings or LlmSettings()
        self._failures = Failures(endpoint, model, key)
        self._model = vendor_model(endpoint, model, key)
        self._takes_schema = bool(self._model.profile.get("supports_json_schema_output"))
        self._open = False
        self.takes_pictures = facts_of(endpoint.name, model).has("v")
        self.takes_tools = self._settings.tools != "json" and bool(self._model.profile.get("supports_tools", True))

    def forgo_tools(self) -> None:
        self.takes_tools = False

    def __repr__(self) -> str:
        return f"Bridge({self.model!r})"

    @property
    def model(self) -> str:
        return f"{self._endpoint.name}:{self._name}"

    @property
    def window(self) -> int:
        known = self._model.context_window or facts_of(self._endpoint.name, self._name).window
        return self._settings.window or self._endpoint.window or known

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        return persist(lambda: self._attempt(request), self._settings)

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            await self._model.__aexit__(None, None, None)

    async def _attempt(self, request: Request) -> AsyncGenerator[Chunk, None]:
        if not self._open:
            self._open = True
            await self._model.__aenter__()
        now = asyncio.get_running_loop().time
        latest = now() + self._settings.reply_seconds
        seconds = self._settings.first_byte_seconds
        texts: list[str] = []
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(seconds):
                    stream = await stack.enter_async_context(self._asked(request))
                    events = aiter(stream)
                while True:
                    async with asyncio.timeout_at(min(now() + seconds, latest)):
                        event = await anext(events, None)
                    if event is None:
                        break
                    seconds = self._settings.between_chunks_seconds
                    if piece := _piece_of(event):
                        texts.append(piece.text)
                        yield piece
                if stream.finish_reason in (None, "error"):
                    raise self._failures.broken()
                usage = self._usage(request, stream, "".join(texts))
                calls, extra = kept_of(stream.get()) if request.tools else ((), {})
                yield Finished(REASONS.get(stream.finish_reason, "stop"), usage, calls, extra)
        except TimeoutError:
            raise self._failures.timed_out(seconds) from None
        except (Setback, GeneratorExit):
            raise
        except Exception as error:
            raise self._setback(error, request) from None

    def _asked(self, request: Request) -> AbstractAsyncContextManager[StreamedResponse]:
        settings = ModelSettings(max_retries=0, cache={"messages": False})
        if limit := request.max_tokens or self._settings.max_reply_tokens:
            settings["max_tokens"] = limit
        temperature = self._settings.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            settings["temperature"] = temperature
        if self._settings.effort:
            settings["thinking"] = self._settings.effort
        tools = [
            ToolDefinition(name=one.name, parameters_json_schema=one.parameters, description=one.description)
            for one in request.tools
        ]
        parameters = ModelRequestParameters(function_tools=tools, allow_text_output=True)
        if request.schema is not None and self._takes_schema:
            shape = OutputObjectDefinition(json_schema=request.schema, name="reply", strict=True)
            parameters = ModelRequestParameters(output_mode="native", output_object=shape)
        return model_request_stream(
            self._model, vendor_messages(request), model_settings=settings, model_request_parameters=parameters
        )

    def _usage(self, request: Request, stream: StreamedResponse, text: str) -> Usage:
        counted = stream.usage
        if not counted.input_tokens and not counted.output_tokens:
            return measure(request, text, {}, self._price)
        given = (counted.input_tokens, counted.output_tokens, counted.cache_read_tokens, counted.cache_write_tokens)
        prompt, completion, cached, written = map(as_count, given)
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=cached,
            cost_usd=charge(self._price, prompt, completion, cached, written) or _listed_cost(stream),
            calls=1,
        )

    @property
    def least_price(self) -> float:
        return self._price.least

    @property
    def _price(self) -> Price:
        return price_of(self._settings, self._endpoint.name, self._name)

    def _setback(self, error: Exception, request: Request) -> Setback:
        match error:
            case vendor.ModelHTTPError():
                return self._refused(error, request)
            case vendor.ModelTimeoutError():
                return self._failures.timed_out(self._settings.first_byte_seconds)
            case vendor.ModelConnectionError(phase="connect"):
                from duckflow.llm.client import not_connected

                return not_connected(error, self._endpoint, self._failures)
            case vendor.ModelConnectionError() | vendor.UnexpectedModelBehavior():
                return self._failures.broken()
            case vendor.ModelAPIError():
                return self._failures.of_error(error.body, error.message)
            case _:
                detail = self._failures.detail(f"{type(error).__name__}: {error}")
                return Setback(ModelError("model.bridge_failed", model=self.model, detail=detail))

    def _refused(self, error: vendor.ModelHTTPError, request: Request) -> Setback:
        answer = error.body if isinstance(error.body, str) else json.dumps(error.body, default=str)
        setback = self._failures.of_status(error.status_code, error.headers or {}, answer)
        if request.pictures and (refused := self._failures.of_pictures(error.status_code, answer)):
            self.takes_pictures = False if refused.error.key == BLIND else self.takes_pictures
            return refused
        if request.tools and self._settings.tools == "auto" and re.search(TOOLS_NAMED, answer.lower()):
            self.takes_tools = False
            return Setback(ToolsRefused("model.tools_refused", model=self.model))
        if request.schema is not None and self._takes_schema and setback.error.key == "model.request_refused":
            self._takes_schema = False
            return Setback(setback.error, say("model.retry.without_schema", endpoint=self._endpoint.name), wait=0.0)
        return setback


def vendor_model(endpoint: Endpoint, model: str, key: Key | None) -> Model:
    """The pydantic-ai model of that name. Raises when its vendor's package or its key is missing."""
    # Duckflow says itself what matters; these would land in the middle of the screen.
    warnings.filterwarnings("ignore", module=r"pydantic_ai(\..*)?")

    def connect(name: str) -> VendorProvider[Any]:
        given = {"api_key": key.secret if key else "", "base_url": endpoint.base_url}
        provider_class: Any = infer_provider_class(name)
        return provider_class(**{option: value for option, value in given.items() if value})

    try:
        return infer_model(f"{endpoint.name}:{model}", connect)
    except ImportError:
        raise UsageError("model.vendor_missing", endpoint=endpoint.name) from None
    except (vendor.UserError, ValueError) as error:
        if endpoint.key_names and key is None:
            raise key_refused(endpoint, None) from None
        detail = Failures(endpoint, model, key).detail(str(error))
        raise ProviderRefused("model.unknown", model=model, endpoint=endpoint.name, detail=detail) from None


def _piece_of(event: Any) -> Delta | Thought | CallDelta | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return Delta(text) if text else None
        case PartStartEvent(part=ThinkingPart(content=text)):
            return Thought(text) if text else None
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)):
            return Thought(text) if text else None
        case PartStartEvent(part=ToolCallPart() as call):
            return CallDelta(call.args if isinstance(call.args, str) else "", call.tool_name)
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str() as text)):
            return CallDelta(text)
        case _:
            return None


def _listed_cost(stream: StreamedResponse) -> float:
    """What pydantic-ai's price list says; it does not know every model."""
    try:
        return float(stream.get().cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return 0.0
