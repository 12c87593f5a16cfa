"""What must be known of the place a command would run in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """The folders, and whether the repository brings settings that make git run programs."""

    folder: str = ""
    home: str = ""
    git_runs_programs: bool = False
    """Hooks, pagers, aliases, filters or a fsmonitor supplied by the repository: even `git status` may run them."""
