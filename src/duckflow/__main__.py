"""Runs `python -m duckflow`."""

from duckflow.cli.main import main

main()
