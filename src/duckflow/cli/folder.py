"""The folder one is in, which others may delete or close meanwhile."""

from pathlib import Path

from duckflow.errors import UsageError


def require_folder() -> Path:
    """Where we are, or what to do about it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("folder.gone") from None
    except OSError as problem:
        raise UsageError("folder.closed", reason=problem.strerror or str(problem)) from None
