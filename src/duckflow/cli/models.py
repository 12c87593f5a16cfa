"""`duckflow models`: fetch, list and remove the local models; list what is known of others."""

import os
import sys
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.llm.endpoints import catalogue, key_in_environment
from duckflow.llm.facts import Facts, facts_of, models_of
from duckflow.llm.local.machine import GIB, ThisMachine, fitting_context, needed, recommended, this_machine, why_not
from duckflow.llm.local.weights import Holding, Weights
from duckflow.llm.settings import DEFAULT_MODEL
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

MB, GB = 10**6, 10**9


def run_models(options: Options, words: Words, paths: Paths) -> int:
    weights = Weights(paths.models, os.environ)
    name = options.name or DEFAULT_MODEL
    match options.what:
        case "pull":
            _pull(weights, name, options, words)
        case "rm":
            print_out(words("models.removed" if weights.remove(name) else "models.nothing", name=name))
        case _:
            _list(weights, options.name, words)
    return 0


def _list(weights: Weights, endpoint: str, words: Words) -> None:
    """The local models, and those of the endpoints whose key is in the environment; or those of one endpoint."""
    endpoints = catalogue({}, os.environ)
    if endpoint and not models_of(endpoint):
        known = ", ".join(name for name in endpoints if models_of(name))
        raise UsageError("models.no_endpoint", name=endpoint, known=known)
    if not endpoint:
        _list_local(weights, words)
    keyed = [one.name for one in endpoints.values() if key_in_environment(one, os.environ)]
    shown = [endpoint] if endpoint else [name for name in keyed if models_of(name)]
    for name in shown:
        for model in models_of(name):
            print_out(_cloud_line(f"{name}:{model}", facts_of(name, model), words))
    if not shown:
        print_out(words("models.more_endpoints"))


def _cloud_line(name: str, facts: Facts, words: Words) -> str:
    price = facts.price
    cost = words("models.price", input=f"{price.input:g}", output=f"{price.output:g}") if price else ""
    able = ", ".join(words(f"models.flag.{flag}") for flag in facts.flags)
    return f"{name:<44} {facts.window // 1000:>5}k  {cost:<24}  {able}".rstrip()


def _pull(weights: Weights, name: str, options: Options, words: Words) -> None:
    here = next((holding for holding in weights.holdings() if holding.model.name == name and holding.complete), None)
    if here and options.if_missing:
        return
    bar = _Bar(words)
    path = weights.adopt(name, Path(options.source)) if options.source else weights.pull(name, bar.show)
    bar.end()
    print_out(words("models.ready", name=name, path=str(path)))


def _list_local(weights: Weights, words: Words) -> None:
    machine = this_machine(search_path=os.environ.get("PATH"))
    card = words("models.card", name=machine.card, memory=_gb(machine.card_memory)) if machine.card else ""
    told = card or words("models.no_card")
    print_out(words("models.machine", memory=_gb(machine.memory), cores=machine.cores, card=told))
    holdings = weights.holdings()
    best = recommended(machine, [holding.model for holding in holdings])
    for holding in holdings:
        print_out(_line(holding, machine, holding.model is best, words))


def _line(holding: Holding, machine: ThisMachine, best: bool, words: Words) -> str:
    model = holding.model
    state = words("models.complete" if holding.complete else "models.partly" if holding.size else "models.absent")
    context = fitting_context(model, machine)
    size = words("models.billions", all=f"{model.billions:g}", active=f"{model.active:g}") if model.active else ""
    needs = words("models.needs", memory=_gb(needed(model, context)), context=context // 1024)
    reason = why_not(model, machine)
    suits = words(f"models.too_{reason}") if reason else words("models.best") if best else ""
    size = size or f"{model.billions:g}B"
    return f"{model.name:<20} {size:<22} {model.size / GB:>5.1f} GB  {needs}  {state}  {suits}".rstrip()


def _gb(count: int) -> str:
    return f"{count / GIB:.1f}"


class _Bar:
    """A progress bar on stderr; a line now and then where there is no terminal."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._live = sys.stderr.isatty()
        self._tenth = -1

    def show(self, done: int, total: int, stage: str) -> None:
        share = done / total if total else 0.0
        told = self._words(f"models.stage.{stage}")
        text = self._words("models.progress", done=done // MB, total=total // MB, stage=told)
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
