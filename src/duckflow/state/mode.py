"""The modes: how much Duckflow may do without asking."""

from enum import StrEnum


class Mode(StrEnum):
    """The modes, from asking before every change to asking only before dangerous ones."""

    ASK = "ask"
    AUTO_EDIT = "auto-edit"
    AUTO = "auto"
    PLAN = "plan"
    FULL_AUTO = "full-auto"
    CONTAINED = "contained"
    """The machine itself is the sandbox. Only the command line and the user's own settings can choose it."""


STRICTEST_FIRST = (Mode.PLAN, Mode.ASK, Mode.AUTO_EDIT, Mode.AUTO, Mode.FULL_AUTO, Mode.CONTAINED)
OFFERED = tuple(mode for mode in Mode if mode is not Mode.CONTAINED)
"""Modes that can be chosen while Duckflow runs."""
