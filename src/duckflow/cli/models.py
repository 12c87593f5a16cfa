"""`duckflow models`: fetches, lists and removes the local models, and lists the models of endpoints."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.config.load import load
from duckflow.errors import ModelError, UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.width import padded
from duckflow.i18n.words import Words
from duckflow.llm.discover import LISTING_SECONDS, fetch_models
from duckflow.llm.endpoints import KNOWN, Endpoint, catalogue, find_key, key_in_environment
from duckflow.llm.facts import facts_of, models_of
from duckflow.llm.local.machine import ThisMachine, fitting_context, needed, recommended, this_machine, why_not
from duckflow.llm.local.runtime import runtime_missing
from duckflow.llm.local.weights import Holding, Weights
from duckflow.llm.settings import DEFAULT_MODEL
from duckflow.state.data import said
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
            own_endpoints = load(paths.user_config, Path.cwd(), {}).settings.llm.endpoints
            _list(weights, options.name, words, catalogue(own_endpoints, os.environ))
    return 0


def _list(weights: Weights, name: str, words: Words, endpoints: Mapping[str, Endpoint]) -> None:
    """Prints the local models, and the models of endpoints that have their key in the environment or need none. With a
    name, prints only the models of that endpoint."""
    if name and name not in endpoints:
        raise UsageError("models.no_endpoint", name=name, known=", ".join(endpoints))
    if not name:
        _list_local(weights, words)
    usable_endpoints = [
        endpoint
        for endpoint in endpoints.values()
        if key_in_environment(endpoint, os.environ) or not endpoint.key_needed
    ]
    lines: list[str] = []
    for endpoint in [endpoints[name]] if name else usable_endpoints:
        try:
            lines += _lines_of(endpoint, words)
        except ModelError as problem:
            if name:
                raise
            # Many kinds of servers could run on this machine, and most do not, so a missing one is not reported.
            lines += [] if endpoint in KNOWN else [plain(words.phrase(said(problem)))]
    for line in lines or [words("models.more_endpoints")]:
        print_out(line)


def _lines_of(endpoint: Endpoint, words: Words) -> list[str]:
    """Returns a line for each model. For a provider at its usual address they come from the catalogue, otherwise from
    the server's list."""
    windows = dict.fromkeys(models_of(endpoint.name), 0) if endpoint in KNOWN else {}
    if not windows:
        served_models = asyncio.run(fetch_models(endpoint, find_key(endpoint, os.environ), LISTING_SECONDS))
        windows = {served_model.model: served_model.window for served_model in served_models}
    return [_cloud_line(endpoint.name, model, window, words) for model, window in windows.items()]


def _cloud_line(endpoint: str, model: str, window: int, words: Words) -> str:
    facts, name = facts_of(endpoint, model), f"{endpoint}:{model}"
    price = facts.price
    cost = words("models.price", input=f"{price.input:g}", output=f"{price.output:g}") if price else ""
    abilities_text = ", ".join(words(f"models.flag.{flag}") for flag in facts.flags)
    return f"{name:<44} {(window or facts.window) // 1000:>5}k  {padded(cost, 24)}  {abilities_text}".rstrip()


def _pull(weights: Weights, name: str, options: Options, words: Words) -> None:
    complete_holding = next(
        (holding for holding in weights.holdings() if holding.model.name == name and holding.complete), None
    )
    if complete_holding and options.if_missing:
        return
    if runtime_missing():
        print_out(words("local.missing"))
    bar = _Bar(words)
    path = weights.adopt(name, Path(options.source)) if options.source else weights.pull(name, bar.show)
    bar.end()
    print_out(words("models.ready", name=name, path=str(path)))


def _list_local(weights: Weights, words: Words) -> None:
    machine = this_machine(search_path=os.environ.get("PATH"))
    card_description = words("models.card", name=machine.card, memory=_gb(machine.card_memory)) if machine.card else ""
    card_text = card_description or words("models.no_card")
    print_out(words("models.machine", memory=_gb(machine.memory), cores=machine.cores, card=card_text))
    weights_files = weights.holdings()
    best_model = recommended(machine, [weights_file.model for weights_file in weights_files])
    for weights_file in weights_files:
        print_out(_line(weights_file, machine, weights_file.model is best_model, words))


def _line(holding: Holding, machine: ThisMachine, best: bool, words: Words) -> str:
    model = holding.model
    state = words("models.complete" if holding.complete else "models.partly" if holding.size else "models.absent")
    context = fitting_context(model, machine)
    size = words("models.billions", all=f"{model.billions:g}", active=f"{model.active:g}") if model.active else ""
    needs_text = words("models.needs", memory=_gb(needed(model, context)), context=context // 1024)
    reason = why_not(model, machine)
    fit_note = words(f"models.too_{reason}") if reason else words("models.best") if best else ""
    size = size or f"{model.billions:g}B"
    return f"{model.name:<20} {padded(size, 24)} {model.size / GB:>5.1f} GB  {needs_text}  {state}  {fit_note}".rstrip()


def _gb(count: int) -> str:
    return f"{count / GB:.1f}"


class _Bar:
    """A progress bar on stderr. Without a terminal, it prints a line at every tenth of the download."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._live = sys.stderr.isatty()
        self._tenth = -1

    def show(self, done: int, total: int, stage: str) -> None:
        done_share = done / total if total else 0.0
        stage_name = self._words(f"models.stage.{stage}")
        text = self._words("models.progress", done=done // MB, total=total // MB, stage=stage_name)
        if self._live:
            filled_width = int(done_share * 30)
            sys.stderr.write(f"\r\x1b[K[{'█' * filled_width}{'░' * (30 - filled_width)}] {done_share:4.0%} {text}")
        elif int(done_share * 10) > self._tenth:
            self._tenth = int(done_share * 10)
            sys.stderr.write(f"{done_share:4.0%} {text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
