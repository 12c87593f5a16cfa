"""`duckflow models`: fetch, list and remove the local models."""

import os
import sys
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.i18n.words import Words
from duckflow.llm.local.settings import DEFAULT_MODEL
from duckflow.llm.local.weights import Holding, Weights
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

MIB = 1024 * 1024


def run_models(options: Options, words: Words, paths: Paths) -> int:
    weights = Weights(paths.models, os.environ)
    name = options.name or DEFAULT_MODEL
    match options.what:
        case "pull":
            _pull(weights, name, options, words)
        case "rm":
            print_out(words("models.removed" if weights.remove(name) else "models.nothing", name=name))
        case _:
            for holding in weights.holdings():
                print_out(_line(holding, words))
    return 0


def _pull(weights: Weights, name: str, options: Options, words: Words) -> None:
    here = next((holding for holding in weights.holdings() if holding.model.name == name and holding.complete), None)
    if here and options.if_missing:
        return
    bar = _Bar(words)
    path = weights.adopt(name, Path(options.source)) if options.source else weights.pull(name, bar.show)
    bar.end()
    print_out(words("models.ready", name=name, path=str(path)))


def _line(holding: Holding, words: Words) -> str:
    state = words("models.complete" if holding.complete else "models.partly" if holding.size else "models.absent")
    total = holding.model.size / MIB
    return f"{holding.model.name:<20} {total:>7.0f} MB  {state}  {holding.model.licence}"


class _Bar:
    """A progress bar on stderr; a line now and then where there is no terminal."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._live = sys.stderr.isatty()
        self._tenth = -1

    def show(self, done: int, total: int, stage: str) -> None:
        share = done / total if total else 0.0
        told = self._words(f"models.stage.{stage}")
        text = self._words("models.progress", done=done // MIB, total=total // MIB, stage=told)
        if self._live:
            filled = int(share * 30)
            sys.stderr.write(f"\r\x1b[K[{'█' * filled}{'░' * (30 - filled)}] {share:4.0%} {text}")
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            sys.stderr.write(f"{share:4.0%} {text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
