"""Settings of the prompts."""

from typing import Literal

from pydantic import Field

from duckflow.state.data import Section


class PromptSettings(Section):
    """The length of each layer of a prompt, and the form in which prompts are written."""

    profile: Literal["", "full", "compact"] = ""
    """The form of prompts. Empty means compact for models on this machine, small models and small windows, else
    full."""
    small_window: int = Field(default=8192, ge=0)
    """Models with a window of up to this many tokens get the compact form."""
    small_billions: float = Field(default=4.0, ge=0)
    """Models of up to this many billion parameters get the compact form, if their name says so
    (`qwen2.5-coder-1.5b`)."""
    base_tokens: int = Field(default=500, gt=0)
    main_tokens: int = Field(default=800, gt=0)
    specialized_tokens: int = Field(default=1200, gt=0)
    skills_share: float = Field(default=0.02, ge=0, le=0.5)
    """The share of the window that the list of skills may take."""
