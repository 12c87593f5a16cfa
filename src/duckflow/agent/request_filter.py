"""Hides secrets in whatever goes to a model. Every request of a session passes here on its way out."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from duckflow.agent.session_secrets import SessionSecrets
from duckflow.i18n.template import note, own_texts
from duckflow.llm.provider import Request
from duckflow.prompts.layers import alternate
from duckflow.safety.secrets import KnownSecrets, mask
from duckflow.state.action import OUTSIDE
from duckflow.state.agent import AgentState
from duckflow.state.message import PromptMessage

MOST_KEPT = 4_000_000
"""The number of characters of filtered texts that are remembered."""
QUICKLY_FILTERED = 20_000
"""The number of characters that are filtered in some milliseconds. More are filtered beside the event loop."""
TextOfMessage = tuple[str, tuple[str, ...]]
"""A message's text, and the texts in it that are not filtered."""


class RequestFilter:
    """Hides secrets in requests. The model's own words stay as they are, and so do texts that the user typed or lets
    the model see. A text is filtered once, and again only when a new secret has become known: a long history costs no
    time, and the beginning that an endpoint has cached stays the same."""

    def __init__(self, state: AgentState, secrets: SessionSecrets) -> None:
        self._state = state
        self._secrets = secrets
        self._known: KnownSecrets = KnownSecrets()
        self._hidden: KnownSecrets = KnownSecrets()
        self._texts = OrderedDict[TextOfMessage, str]()
        self._one_at_a_time = asyncio.Lock()

    async def get_ready(self) -> None:
        """Looks for secret files for the first time, which takes longest, while something else is waited for."""
        await self._secrets.known()

    async def filtered(self, request: Request) -> Request:
        """Returns the request without secrets, with neighbouring messages of the same role joined to one."""
        texts = [_text_of(message) for message in request.messages if message.role != "assistant"]
        texts += [(tool.description, ()) for tool in request.tools]
        # One request after the other, so that no text is remembered as it was before a secret became known.
        async with self._one_at_a_time:
            texts_by_original = await self._all_filtered(texts)
        messages = [
            message._replace(text=texts_by_original[_text_of(message)], open_texts=())
            if message.role != "assistant"
            else message
            for message in request.messages
        ]
        tools = [tool._replace(description=texts_by_original[tool.description, ()]) for tool in request.tools]
        for number, tool in enumerate(tools):
            if tool.name.startswith(OUTSIDE):
                tools[number] = tool._replace(parameters=_schema_without(tool.parameters, self._hidden))
        return request._replace(messages=alternate(messages), tools=tuple(tools))

    async def _all_filtered(self, texts: Sequence[TextOfMessage]) -> dict[TextOfMessage, str]:
        known = self._secrets.in_any_text(await self._secrets.look())
        if known != self._known:
            self._texts.clear()
            self._known, self._hidden = known, await asyncio.to_thread(_not_our_own, known, self._state.language)
        texts_by_original = {text: self._texts[text] for text in texts if text in self._texts}
        if new_texts := [text for text in dict.fromkeys(texts) if text not in texts_by_original]:
            is_long = sum(len(text) for text, _ in new_texts) > QUICKLY_FILTERED
            filter_texts = partial(self._filter, new_texts, self._hidden)
            texts_by_original |= await asyncio.to_thread(filter_texts) if is_long else filter_texts()
        self._keep(texts_by_original)
        return texts_by_original

    def _filter(self, texts: Iterable[TextOfMessage], hidden: KnownSecrets) -> dict[TextOfMessage, str]:
        return {text: self._without_secrets(text, hidden) for text in texts}

    def _without_secrets(self, text_of_message: TextOfMessage, hidden: KnownSecrets) -> str:
        text, open_texts = text_of_message
        masked = mask(text, hidden.lines, hidden.values, open_texts)
        if not masked.hidden:
            return text
        return f"{masked.text}\n{note(self._state.language, 'secrets_masked', count=str(masked.hidden))}"

    def _keep(self, texts_by_original: dict[TextOfMessage, str]) -> None:
        """Remembers these texts, and forgets those that were not needed for the longest time."""
        for original, text in texts_by_original.items():
            self._texts[original] = text
            self._texts.move_to_end(original)
        size = sum(len(text) for text, _ in self._texts)
        while size > MOST_KEPT and len(self._texts) > len(texts_by_original):
            (text, _), _ = self._texts.popitem(last=False)
            size -= len(text)


def _schema_without(schema: dict[str, Any], hidden: KnownSecrets) -> dict[str, Any]:
    """Returns the schema of a server's tool without the secrets in its texts."""
    masked = mask(json.dumps(schema, ensure_ascii=False), values=hidden.values)
    try:
        return json.loads(masked.text) if masked.hidden else schema
    except ValueError:
        return {"type": "object"}


def _text_of(message: PromptMessage) -> TextOfMessage:
    return message.text, message.open_texts


def _not_our_own(known: KnownSecrets, language: str) -> KnownSecrets:
    """Returns the known secrets without those that stand in Duckflow's own texts for the model. Without such a word the
    texts could not be understood, and its absence would tell what the secret is."""
    texts = own_texts(language) if known.values or known.lines else ""
    lines = {line.strip() for line in texts.split("\n")}
    return KnownSecrets(known.lines - lines, tuple(value for value in known.values if value not in texts))
