"""The `duckflow` command. Nothing heavy is imported before it is known to be needed."""

import gc
import os
import sys

from duckflow.cli.streams import flushed, open_streams

INTERRUPTED = 130


def main() -> None:
    """Entry point of the console script."""
    open_streams()
    try:
        code = _carried_out(sys.argv[1:])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone, and has what it wanted.
        code = 0
    except Exception as problem:
        from duckflow.cli.last_resort import complain

        code = complain(problem)
    if not flushed() and code == 0:
        from duckflow.cli.last_resort import output_lost

        code = output_lost()
    sys.exit(code)


def _carried_out(argv: list[str]) -> int:
    if argv in (["--version"], ["-V"], ["version"]):
        from duckflow import __version__

        return _shown(f"duckflow {__version__}\n")
    # Looking for pydantic plugins reads the metadata of every installed package: 40 ms of every start for nothing.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What is made while modules load stays: collecting in between only costs time.
    gc.disable()
    from duckflow.cli.run import run

    return run(argv)


def _shown(text: str) -> int:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        return 0
    except OSError:
        from duckflow.cli.last_resort import output_lost

        return output_lost()
    return 0
