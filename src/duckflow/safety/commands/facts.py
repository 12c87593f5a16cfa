"""What must be known of the place a command would run in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """The folders, and whether the repository brings settings that make git run programs."""

    folder: str = ""
    home: str = ""
    git_runs_programs: bool | None = None
    """Whether the repository's settings make git run programs (hooks, pagers, aliases, filters, fsmonitor).

    None: nobody has looked. Even `git status` runs them, so git only reads when somebody has looked and found none."""


NOTHING_KNOWN = CommandFacts()
