"""Settings of the local model."""

from pydantic import Field

from duckflow.state.noun import Value

DEFAULT_MODEL = "qwen2.5-coder-1.5b"


class LocalSettings(Value):
    """How the local model is run; the defaults are measured on two cores with Qwen2.5-Coder 1.5B."""

    model: str = DEFAULT_MODEL
    context: int = Field(default=0, ge=0)
    """Tokens of one request and its reply; 0: as many as the memory takes, for a small model 8,192."""
    threads: int = Field(default=0, ge=0)
    """0 means one for each physical core this process may use."""
    batch: int = Field(default=128, ge=16)
    """Prompt tokens read at a time; a cancelled request stops only between two batches."""
    prompt_cache_mib: int = Field(default=512, ge=0)
    """Memory for prefixes of earlier prompts, so that two conversations do not throw each other out."""
    temperature: float = Field(default=0.0, ge=0.0)
    """A small model is most reliable when it says what it finds most likely."""
    repeat_penalty: float = Field(default=1.1, ge=1.0, le=2.0)
    gpu_layers: int = Field(default=-1, ge=-1)
    """Layers for the graphics card, where the runtime finds one; -1: as many as fit."""
    prefix_disk_mib: int = Field(default=1024, ge=0)
    """Disk for what was read of prompts, so that the next start does not read it again; 0: none is kept."""
    start_seconds: float = Field(default=120.0, gt=0)
