"""The `duckflow` command. Nothing heavy is imported before it is known to be needed."""

import gc
import os
import sys


def main() -> None:
    """Entry point of the console script."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from duckflow import __version__

        sys.stdout.write(f"duckflow {__version__}\n")
        return
    # Looking for pydantic plugins reads the metadata of every installed package: 40 ms of every start for nothing.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What is made while modules load stays: collecting in between only costs time.
    gc.disable()
    from duckflow.cli.run import run

    sys.exit(run(sys.argv[1:]))
