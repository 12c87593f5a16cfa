"""Settings of the loop."""

from pydantic import Field

from duckflow.state.noun import Section

SAFE_EXTENSIONS = (
    ".txt",
    ".md",
    ".rst",
    ".py",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".csv",
    ".js",
    ".ts",
    ".jsx",
    ".tsx",
    ".css",
) + (".html", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cpp", ".cs", ".rb", ".swift", ".sql")


class AgentSettings(Section):
    """How long a turn may go on."""

    reply_attempts: int = 2
    """How often an unreadable reply is sent back to the model."""
    max_budget_usd: float = 0.0
    max_tokens: int = 0
    """What a session may cost, and how many tokens it may take in all; 0: no limit."""
    decision_tokens: int = 2048
    inline_tokens: int = 16_384
    """The longest reply where texts stand in the actions, up to a quarter of the window."""
    body_tokens: int = 8192
    plan_tokens: int = 3072
    steps_at_once: int = 2
    """How many independent steps of a plan run side by side."""
    agents_at_once: int = Field(default=4, ge=1)
    """How many agents that were handed a task run side by side; more wait."""
    agent_loops: int = Field(default=50, ge=2)
    agent_tokens: int = Field(default=1_000_000, ge=1)
    agent_seconds: float = Field(default=1800.0, gt=0)
    """What such an agent may take at most: replies, tokens that no cache gave, and time, waiting for the user not
    counted."""
    agents_tokens: int = Field(default=4_000_000, ge=1)
    """What all agents of a turn may take together, of tokens that no cache gave."""
    step_characters: int = Field(default=24_000, ge=0)
    """How much of files is quoted to a step of a plan: its own, and what the conversation has read."""
    task_seconds: float = 600.0
    """How long one background task may take, waiting for the user not counted."""
    offer_lessons: bool = True
    """Whether what a completed plan taught is offered to be kept."""
    safe_extensions: tuple[str, ...] = SAFE_EXTENSIONS
    """Kinds of files of which what the user usually allows is offered as a rule."""
