"""Builds the provider for the chosen model. Slow imports happen only for the kind of model that needs them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from duckflow.llm.discover import ModelChoice
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.facts import AbilityBook
from duckflow.llm.failures import key_refused
from duckflow.llm.provider import Provider
from duckflow.llm.settings import LlmSettings, LocalSettings

MIB = 1024 * 1024


class Places(NamedTuple):
    """Paths of the files that providers write. A file whose path is None is not written."""

    models: Path
    abilities: Path | None = None
    local_log: Path | None = None


def connect(
    choice: ModelChoice, settings: LlmSettings, local: LocalSettings, places: Places, environ: Mapping[str, str]
) -> Provider:
    """Builds the provider for this model without sending it a request."""
    match choice.kind:
        case "scripted":
            from duckflow.llm.scripted import Scripted

            return Scripted.from_file(Path(choice.model).expanduser())
        case "embedded":
            return _embedded(choice.model, settings, local, places, environ)
        case "endpoint":
            from duckflow.llm.endpoint_model import EndpointModel

            ability_book = AbilityBook(places.abilities, settings.abilities_days)
            endpoint = choice.endpoint or Endpoint(choice.model)
            if endpoint.key_needed and choice.key is None:
                raise key_refused(endpoint, None)
            return EndpointModel(endpoint, choice.model, choice.key, settings, ability_book)


def _embedded(
    name: str, settings: LlmSettings, local: LocalSettings, places: Places, environ: Mapping[str, str]
) -> Provider:
    from duckflow.llm.embedded import Embedded, Prefixes
    from duckflow.llm.local.machine import fitting_context, this_machine
    from duckflow.llm.local.server import LocalServer
    from duckflow.llm.local.weights import Weights, is_path

    weights_file = Weights(places.models, environ).holding(name)
    model, shown_name = weights_file.model, weights_file.path.stem if is_path(name) else name
    window = min(local.context or fitting_context(model, this_machine(search_path=environ.get("PATH"))), model.context)
    local = local.model_copy(update={"model": shown_name, "context": window})
    if settings.temperature is None:
        settings = settings.model_copy(update={"temperature": local.temperature})
    folder = places.models.with_name("prefixes")
    identity = f"{weights_file.path} {weights_file.size} {window}"
    prefixes = Prefixes(folder, identity, local.prefix_disk_mib * MIB)
    return Embedded(
        LocalServer(weights_file.path, local, places.local_log, folder), shown_name, window, settings, prefixes
    )
