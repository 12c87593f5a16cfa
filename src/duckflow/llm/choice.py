"""Which model is used, and why."""

from typing import Literal, NamedTuple

from duckflow.llm.endpoints import Endpoint
from duckflow.llm.keys import Key
from duckflow.state.phrase import Phrase


class ModelChoice(NamedTuple):
    """The outcome of the search for a model; nothing has been built or asked yet."""

    kind: Literal["endpoint", "embedded", "scripted"]
    model: str
    """Its name at the endpoint; the name of the weights; the path of the script."""
    why: Phrase
    endpoint: Endpoint | None = None
    key: Key | None = None
    notes: tuple[Phrase, ...] = ()
    """What was passed over on the way and may be worth a line."""

    @property
    def name(self) -> str:
        """As shown to people, such as `openai:gpt-5-mini`."""
        match self.kind:
            case "embedded":
                return f"local:{self.model}"
            case "scripted":
                return f"scripted:{self.model}"
            case _:
                return f"{self.endpoint.name}:{self.model}" if self.endpoint else self.model

    @property
    def key_source(self) -> str:
        """Where the key came from, for people; empty without one."""
        return self.key.source if self.key else ""
