"""Settings of the loop in which the model thinks and acts."""

from pydantic import Field

from duckflow.state.data import Section

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
    """Limits of a turn, and of the agents and tasks that it starts."""

    reply_attempts: int = 2
    """Number of times that an unreadable reply is sent back to the model to be corrected."""
    max_budget_usd: float = 0.0
    """Dollars that a session may cost; 0 means no limit."""
    max_tokens: int = 0
    """Tokens that a session may use in all; 0 means no limit."""
    decision_tokens: int = 2048
    inline_tokens: int = 16_384
    """Most tokens of a reply that contains whole texts of files in its actions; never more than a quarter of the
    model's window."""
    body_tokens: int = 8192
    plan_tokens: int = 3072
    steps_at_once: int = 2
    """Number of independent steps of a plan that run side by side."""
    agents_at_once: int = Field(default=4, ge=1)
    """Number of agents with a task of their own that run side by side; more wait."""
    agent_loops: int = Field(default=50, ge=2)
    """Replies that one agent with a task of its own may take."""
    agent_tokens: int = Field(default=1_000_000, ge=1)
    """Tokens that one agent may take; those from a cache do not count."""
    agent_seconds: float = Field(default=1800.0, gt=0)
    """Seconds that one agent may take. The time that the user takes to answer does not count."""
    agents_tokens: int = Field(default=7_200_000, ge=1)
    """Tokens that all agents of a turn may take together; those from a cache do not count. The default is enough for
    the loops that `pacemaker.limits.agents_ceiling` allows, if each takes an agent's share: `agent_tokens` divided by
    `agent_loops`."""
    step_characters: int = Field(default=24_000, ge=0)
    """Characters of files that are quoted to a step of a plan: its own files, and those that the conversation has
    read."""
    task_seconds: float = 600.0
    """Seconds that one background task may take. The time that it waits for the user does not count."""
    offer_lessons: bool = True
    """True if Duckflow tells what a completed plan has taught, so that the user can have it kept."""
    safe_extensions: tuple[str, ...] = SAFE_EXTENSIONS
    """Kinds of files for which Duckflow offers to make a rule if the user usually allows their edits."""
