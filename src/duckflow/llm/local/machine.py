"""Measures this machine, and picks the local model that suits it and the context that fits beside the model."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.llm.local.catalogue import LocalModel
from duckflow.llm.local.server import SYSTEM, first_line, usable_cores
from duckflow.programs.find import environment_outside, find_program

GIB = 1024**3
SPARED = 2 * GIB
SPARED_SHARE = 0.15
"""The share of the memory that is left to other programs; `SPARED` is left if that is more."""
OVERHEAD = GIB // 4
SLOWEST_READ = int(2.6 * GIB)
"""The most bytes per token that a model without a graphics card may read: memory gives some 20 GB a second, so more
would be too slow."""
CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8_192)
WISHED_CONTEXT = 16_384
LEAST_BILLIONS = 1.0
SMALL_BILLIONS = 3.0
UNAIDED_CONTEXT = 32_768
"""The largest context without a graphics card: reading more takes longer than anybody would wait."""
SMALL_CONTEXT = 8_192
"""The largest context for a small model: in a larger one it loses the thread, and reading takes minutes."""
SMI_SECONDS = 3.0


class ThisMachine(NamedTuple):
    """The machine's memory in bytes, its cores, and its graphics card if there is one."""

    memory: int
    cores: int = 0
    card: str = ""
    card_memory: int = 0

    @property
    def usable(self) -> int:
        """The bytes of memory that a model may take."""
        return max(0, self.memory - max(SPARED, int(self.memory * SPARED_SHARE)))


def this_machine(system: Path = SYSTEM, search_path: str | None = None) -> ThisMachine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _container_memory(system)
    card_name, card_memory = _nvidia(search_path) or _amd(system) or ("", 0)
    memory = min(memory, limit) if limit else memory
    if sys.platform == "darwin" and os.uname().machine == "arm64":
        # The graphics card of these machines shares their memory.
        card_name, card_memory = "Apple", int(memory * 0.7)
    return ThisMachine(memory, usable_cores(system) or os.cpu_count() or 1, card_name, card_memory)


def recommended(machine: ThisMachine, models: Sequence[LocalModel]) -> LocalModel:
    """Returns the largest model that fits and is quick enough, or else the smallest useful one."""
    useful_models = [model for model in models if model.billions >= LEAST_BILLIONS]
    suited_models = [model for model in useful_models if not why_not(model, machine)]
    return max(suited_models, key=_strength) if suited_models else min(useful_models, key=_strength)


def _strength(model: LocalModel) -> tuple[float, int]:
    return model.billions, model.size


def why_not(model: LocalModel, machine: ThisMachine) -> str:
    """Returns the reason why a model does not suit a machine: `memory` or `speed`; empty if it suits."""
    wished_context = min(WISHED_CONTEXT if model.billions > SMALL_BILLIONS else SMALL_CONTEXT, model.context)
    needed_memory = needed(model, wished_context)
    if needed_memory <= machine.card_memory:
        return ""
    if needed_memory > machine.usable:
        return "memory"
    return "speed" if model.read_bytes > SLOWEST_READ else ""


def needed(model: LocalModel, context: int) -> int:
    """Returns the bytes of memory that a model needs for its weights, this context and some overhead."""
    return model.size + context * model.token_bytes + OVERHEAD


def fitting_context(model: LocalModel, machine: ThisMachine) -> int:
    """Returns the largest context that the model supports and that fits into memory."""
    if model.billions <= SMALL_BILLIONS:
        return min(SMALL_CONTEXT, model.context)
    contexts_on_card = [context for context in CONTEXTS if needed(model, context) <= machine.card_memory]
    contexts_in_memory = [
        size for size in CONTEXTS if size <= UNAIDED_CONTEXT and needed(model, size) <= machine.usable
    ]
    return min(model.context, max(contexts_on_card + contexts_in_memory, default=CONTEXTS[-1]))


def _container_memory(system: Path) -> int:
    limit = first_line(system / "fs" / "cgroup" / "memory.max")
    return int(limit) if limit.isdigit() else 0


def _nvidia(search_path: str | None) -> tuple[str, int] | None:
    program = find_program("nvidia-smi", search_path=search_path)
    if not program:
        return None
    command = [program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        variables = environment_outside(Path.cwd())
        output = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=SMI_SECONDS, check=True
        ).stdout
        name, _, mebibytes = output.splitlines()[0].rpartition(",")
        return name.strip(), int(mebibytes) * 1024**2
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _amd(system: Path) -> tuple[str, int] | None:
    for path in sorted(system.glob("class/drm/card*/device/mem_info_vram_total")):
        try:
            memory = int(path.read_text())
        except (OSError, ValueError):
            continue
        if memory >= GIB:
            return "AMD", memory
    return None
