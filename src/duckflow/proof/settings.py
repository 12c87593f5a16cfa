"""Settings of the proof that work is done."""

from pydantic import Field

from duckflow.state.data import Section

RULES = ".duckflow/rules"
"""The folder of the rules that the user has kept."""


class ProofSettings(Section):
    """Settings of the trials that test the model's claim to be done, and of how long they may take."""

    enabled: bool = True
    required: bool = False
    """True if work that ends without proof counts as no success: the exit code is then 8."""
    seconds: float = Field(default=30.0, gt=0)
    """Longest time for trying the tests of a turn."""
    reach_seconds: float = Field(default=2.0, ge=0)
    """Longest time for looking for uses of new names; if it is not enough, no names are reported."""
    mutants: int = Field(default=5, ge=0)
    copied_mb: int = Field(default=200, ge=1)
    copied_files: int = Field(default=20_000, ge=1)
    """The most files of a folder that are copied for a trial; `copied_mb` limits their size. The tests of a larger
    folder cannot be tried."""
