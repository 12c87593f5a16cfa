"""How much Duckflow may do without asking."""

from enum import StrEnum


class Mode(StrEnum):
    """From asking before every change to asking only before what is dangerous."""

    ASK = "ask"
    AUTO_EDIT = "auto-edit"
    AUTO = "auto"
    PLAN = "plan"
    FULL_AUTO = "full-auto"


STRICTEST_FIRST = (Mode.PLAN, Mode.ASK, Mode.AUTO_EDIT, Mode.AUTO, Mode.FULL_AUTO)
