"""What every event is."""

import time
from typing import ClassVar

from pydantic import Field

from duckflow.state.noun import Value


class Event(Value):
    """Something that happened, with its time."""

    kind: ClassVar[str]
    journaled: ClassVar[bool] = True
    at: float = Field(default_factory=time.time)
