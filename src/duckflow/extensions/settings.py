"""Settings of the hooks."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Groups = tuple[dict[str, Any], ...]


class HookSettings(BaseModel):
    """Programs of yours that are told of events. The groups look as they do elsewhere: a `matcher`, and `hooks` with
    `type = "command"`, `command` and `timeout`. What stands here runs without being asked about."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    enabled: bool = True
    others: bool = True
    """Also those that you, or a folder that you trust, have for other assistants; each is asked about once."""
    may_allow: bool = False
    """A hook that says `allow` takes away the question of the Gate, unless that is always asked."""
    seconds: float = Field(default=60.0, gt=0)
    """For a hook that names no `timeout`."""
    environment: tuple[str, ...] = ()
    """Variables that hooks see though their names or values look like secrets."""
    PreToolUse: Groups = ()
    PostToolUse: Groups = ()
    UserPromptSubmit: Groups = ()
    Stop: Groups = ()
    SessionStart: Groups = ()
    SessionEnd: Groups = ()

    def groups(self) -> dict[str, Groups]:
        return {event: getattr(self, event) for event in EVENTS if getattr(self, event)}


EVENTS = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd")
