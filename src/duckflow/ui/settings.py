"""Settings of what people see."""

from pydantic import BaseModel, ConfigDict


class UiSettings(BaseModel):
    """How the terminal looks."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    emoji: bool = True
    color: bool = True
