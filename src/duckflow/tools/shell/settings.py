"""Settings of the shell."""

from pydantic import BaseModel, ConfigDict, Field


class ShellSettings(BaseModel):
    """How long a command may take and how much of what it prints is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    timeout_seconds: int = Field(default=120, ge=1)
    """When the model does not say."""
    longest_seconds: int = Field(default=3600, ge=1)
    """More is never granted; servers run in the background."""
    head_characters: int = Field(default=4000, ge=0)
    tail_characters: int = Field(default=8000, ge=0)
    """Of what is printed, the beginning and the end reach the model: errors stand at the end."""
    first_output_seconds: float = Field(default=1.5, ge=0)
    """How long to look at a background command before going on."""
    background_jobs: int = Field(default=8, ge=0)
    environment: tuple[str, ...] = ()
    """Further variables that commands may see, `*` for any ending. What looks like a secret must be named in full."""
    set_environment: dict[str, str] = Field(default_factory=dict)
    """Variables that every command gets."""
