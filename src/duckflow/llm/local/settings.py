"""Settings of the local model."""

from pydantic import Field

from duckflow.llm.local.catalogue import DEFAULT_MODEL, LocalModel
from duckflow.state.noun import Value


class LocalSettings(Value):
    """How the local model is run; the defaults are measured on two cores with Qwen2.5-Coder 1.5B."""

    model: str = DEFAULT_MODEL
    context: int = Field(default=8192, ge=512)
    """Tokens of one request and its reply; each thousand costs about 28 MB of memory."""
    threads: int = Field(default=0, ge=0)
    """0 means one for each physical core this process may use."""
    batch: int = Field(default=128, ge=16)
    """Prompt tokens read at a time; a cancelled request stops only between two batches."""
    prompt_cache_mib: int = Field(default=512, ge=0)
    """Memory for prefixes of earlier prompts, so that two conversations do not throw each other out."""
    temperature: float = Field(default=0.0, ge=0.0)
    """A small model is most reliable when it says what it finds most likely."""
    repeat_penalty: float = Field(default=1.1, ge=1.0, le=2.0)
    start_seconds: float = Field(default=120.0, gt=0)

    def window(self, model: LocalModel) -> int:
        return min(self.context, model.context)
