"""How a run without a person reports, and what it does when the Pacemaker asks."""

from enum import StrEnum
from typing import NamedTuple


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class DuckPolicy(NamedTuple):
    """What a Duck Call finds when nobody is there: stop, or go on (or plan anew) so many times and then stop."""

    name: str = "stop"
    times: int = 1
