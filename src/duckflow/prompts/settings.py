"""Settings of the prompts."""

from typing import Literal

from pydantic import Field

from duckflow.state.noun import Section


class PromptSettings(Section):
    """How long each layer of a prompt may be, and in which form it is written."""

    profile: Literal["", "full", "compact"] = ""
    """Empty: compact for models on this machine, for small ones and for small windows, else full."""
    small_window: int = Field(default=8192, ge=0)
    """Up to so many tokens of window a model gets the compact form."""
    small_billions: float = Field(default=4.0, ge=0)
    """Up to so many billion parameters, where the name says it (`qwen2.5-coder-1.5b`)."""
    base_tokens: int = Field(default=500, gt=0)
    main_tokens: int = Field(default=800, gt=0)
    specialized_tokens: int = Field(default=1200, gt=0)
    skills_share: float = Field(default=0.02, ge=0, le=0.5)
    """Of the window: how much the list of skills may take."""
