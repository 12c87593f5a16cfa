"""Options of a run without a person: its output format, and its answers to Duck Calls (calls for the user's help)."""

from enum import StrEnum
from typing import NamedTuple


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class DuckPolicy(NamedTuple):
    """The answer to a Duck Call (a call for the user's help) when nobody is there: to stop, or to go on (or replan) a
    given number of times and then stop."""

    name: str = "stop"
    times: int = 1
