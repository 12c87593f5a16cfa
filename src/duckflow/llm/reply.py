"""One reply of an OpenAI-compatible endpoint, as it comes together."""

from typing import Any, Literal

from duckflow.llm.loose import first_table, table, text_of
from duckflow.llm.thoughts import Thoughts

Reason = Literal["stop", "length", "refusal"]

REASONS: dict[str, Reason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}
FAILED = ("error", "insufficient_system_resource")


class Reply:
    """Collects text, reason and usage from chunks or from one whole body. Reasoning is not part of the text."""

    def __init__(self) -> None:
        self.ended = False
        self.failed = False
        self.reported: dict[str, Any] = {}
        self._reason: Reason = "stop"
        self._refused = False
        self._texts: list[str] = []
        self._thoughts = Thoughts()

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def reason(self) -> Reason:
        return "refusal" if self._refused else self._reason

    def take(self, event: dict[str, Any]) -> str:
        """The text that this event adds."""
        usage = event.get("usage") or table(event.get("x_groq")).get("usage")
        if usage:
            self.reported = table(usage)
        choice = first_table(event.get("choices"))
        said = table(choice.get("delta") or choice.get("message"))
        text = text_of(said.get("content")) or text_of(choice.get("text"))
        if refusal := text_of(said.get("refusal")):
            self._refused = True
            text += refusal
        text = self._thoughts.pass_on(text) if text else ""
        finish = choice.get("finish_reason")
        if finish in FAILED:
            self.failed = True
        elif finish:
            self.ended = True
            self._reason = REASONS.get(str(finish).lower(), "stop")
            text += self._thoughts.rest()
        if text:
            self._texts.append(text)
        return text

    def rest(self) -> str:
        """What is left when an endpoint ends a reply without giving a reason."""
        text = self._thoughts.rest()
        self._texts.append(text)
        return text
