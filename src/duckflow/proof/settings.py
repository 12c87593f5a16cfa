"""Settings of proof."""

from pydantic import Field

from duckflow.state.noun import Section

RULES = ".duckflow/rules"
"""The folder of the rules that the user has kept."""


class ProofSettings(Section):
    """What a claim of "done" is tried with, and how long that may take."""

    enabled: bool = True
    required: bool = False
    """An end without proof is no success: exit code 8."""
    seconds: float = Field(default=30.0, gt=0)
    """Trying the tests of a turn takes no longer."""
    reach_seconds: float = Field(default=2.0, ge=0)
    """Looking for uses of new names takes no longer; where it would, nothing is said of them."""
    mutants: int = Field(default=5, ge=0)
    copied_mb: int = Field(default=200, ge=1)
    copied_files: int = Field(default=20_000, ge=1)
    """A larger folder is not copied, and its tests cannot be tried."""
