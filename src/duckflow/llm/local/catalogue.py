"""Local models: the known models with the sources of their files, and the user's own, read from GGUF headers."""

import json
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from duckflow.errors import UsageError

TABLE = Path(__file__).with_name("models.json")
MAGIC = b"GGUF"
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, LIST = 8, 9
HEAD = 64 * 1024 * 1024
"""The most bytes of a GGUF file that are read. The facts come before the vocabulary, which is most of the header."""
HALF = 2
"""The bytes of a 16-bit number; the context in memory consists of such numbers."""


class Part(NamedTuple):
    """A piece of the model's file, published as a member of a Python wheel."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF file. Its `parts`, joined in order, are the same bytes as the file in the repository `hub`. Without a
    `sha256`, the hub's own hash and size are used, and `size` is only approximate."""

    name: str
    file: str
    size: int
    context: int
    sha256: str = ""
    parts: tuple[Part, ...] = ()
    hub: str = ""
    billions: float = 0.0
    """The number of the model's parameters, in billions."""
    active: float = 0.0
    """Billions of parameters that are active at a time, in a mixture of experts; 0 means that all are."""
    token_bytes: int = 28_672
    """The bytes of memory for each token of context."""

    @property
    def read_bytes(self) -> int:
        """Bytes that are read from memory for every token, which decides the speed."""
        return int(self.size * self.active / self.billions) if self.active else self.size


@cache
def known_models() -> tuple[LocalModel, ...]:
    table: dict[str, dict[str, Any]] = json.loads(TABLE.read_text("utf-8"))
    return tuple(_known(name, **row) for name, row in table.items())


def _known(name: str, size: int, wheels: dict[str, Any] | None = None, **more: Any) -> LocalModel:
    """Makes a model from a row of the table. `wheels` has templates for names of wheels, filled in with the number of
    each wheel; all but the last wheel hold `bytes` bytes."""
    parts: list[Part] = []
    while wheels and (bytes_so_far := sum(part.size for part in parts)) < size:
        package, member = (wheels[field].format(n=len(parts) + 1) for field in ("package", "member"))
        parts.append(Part(package, wheels["version"], member, min(wheels["bytes"], size - bytes_so_far)))
    return LocalModel(name, size=size, parts=tuple(parts), **more)


def known_model(name: str, models: tuple[LocalModel, ...] | None = None) -> LocalModel:
    models = models or known_models()
    for model in models:
        if model.name == name:
            return model
    raise UsageError("models.unknown", name=name, known=", ".join(model.name for model in models))


def model_of_file(path: Path) -> LocalModel:
    """Reads a model from the user's own file. Raises a UsageError when the file is no GGUF file."""
    try:
        with path.open("rb") as file:
            facts = _facts(file)
        size = path.stat().st_size
    except (OSError, struct.error, UnicodeDecodeError, MemoryError):
        facts, size = {}, 0
    kind = str(facts.get("general.architecture", ""))
    if not kind:
        raise UsageError("models.no_gguf", path=str(path))
    layers, heads = _count(facts, f"{kind}.block_count"), _count(facts, f"{kind}.attention.head_count")
    kv_heads = _count(facts, f"{kind}.attention.head_count_kv") or heads
    width = _count(facts, f"{kind}.attention.key_length") or _count(facts, f"{kind}.embedding_length") // max(heads, 1)
    return LocalModel(
        name=str(path),
        file=path.name,
        size=size,
        context=_count(facts, f"{kind}.context_length") or 8_192,
        billions=_billions(facts, size),
        token_bytes=2 * layers * kv_heads * width * HALF or 131_072,
    )


def _billions(facts: dict[str, Any], size: int) -> float:
    """Reads the number of parameters from the label (`7B`, `30B-A3B`), else estimates it from the file's size, at four
    to five bits each."""
    label = str(facts.get("general.size_label", "")).upper().partition("-")[0].rpartition("X")[2]
    number, unit = label[:-1], label[-1:]
    try:
        return float(number) / (1 if unit == "B" else 1000)
    except ValueError:
        return size / 0.6e9


def _count(facts: dict[str, Any], name: str) -> int:
    value = facts.get(name, 0)
    # Some models list a different number for each layer.
    return max(map(int, cast("list[Any]", value)), default=0) if isinstance(value, list) else int(value)


def _facts(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != MAGIC:
        return {}
    _version, _tensors, count = struct.unpack("<IQQ", file.read(20))
    facts: dict[str, Any] = {}
    for _ in range(count):
        if file.tell() > HEAD:
            break
        name = _text(file)
        if name.startswith("tokenizer."):
            break
        facts[name] = _value(file, struct.unpack("<I", file.read(4))[0])
    return facts


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == TEXT:
        return _text(file)
    if kind == LIST:
        element, count = struct.unpack("<IQ", file.read(12))
        return [_value(file, element) for _ in range(min(count, HEAD))]
    number_format = NUMBERS.get(kind, "")
    if not number_format:
        raise struct.error(f"kind {kind}")
    return struct.unpack(number_format, file.read(struct.calcsize(number_format)))[0]


def _text(file: BinaryIO) -> str:
    (text_length,) = struct.unpack("<Q", file.read(8))
    if text_length > HEAD:
        raise struct.error("too long")
    return file.read(text_length).decode("utf-8", "replace")
