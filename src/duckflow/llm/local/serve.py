"""The child process: llama.cpp's server on a loopback port. It ends when its parent does, however that happens.

Started as `python -m duckflow.llm.local.serve MODEL_FILE`. It reads one line of JSON from stdin (the settings of the
local model, and with them the parent's number, the folder for prefixes and the key, which other users could see among
the arguments), and writes one line to stdout: `{"url": ...}` when it listens, or `{"failed": ...}`. When stdin closes,
it ends.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

ERRORS_ONLY = 1
LOG_SECONDS = 0.5
PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    _die_with(order["parent"])
    threading.Thread(target=_die_at_end_of_input, daemon=True).start()
    # Whatever the library prints goes to the log: stdout carries our one line only.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        server = _server(sys.argv[1], order)
    except (ImportError, RuntimeError, OSError) as error:
        # The library writes its log from a thread of its own, and has no way to wait for it.
        time.sleep(LOG_SECONDS)
        _say(answer, {"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _say(answer, {"url": f"{server.listening_address}/v1"})
    threading.Event().wait()
    os._exit(0)


def _server(model: str, order: dict[str, Any]) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    wanted: Any = xllamacpp.CommonParams()
    wanted.model.path = model
    wanted.model_alias = {order["model"]}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.api_keys = [order["key"]]
    wanted.n_ctx = order["context"]
    wanted.n_parallel = 1
    wanted.n_batch = wanted.n_ubatch = order["batch"]
    wanted.cache_ram_mib = order["prompt_cache_mib"]
    wanted.no_extra_bufts = True
    wanted.use_jinja = True
    wanted.offline = True
    wanted.ui = False
    wanted.verbosity = ERRORS_ONLY
    wanted.sampling.penalty_repeat = order["repeat_penalty"]
    wanted.n_gpu_layers = order["gpu_layers"]
    wanted.slot_save_path = order["prefixes"]
    if order["threads"]:
        wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = order["threads"]
    return xllamacpp.Server(wanted)


def _say(answer: Any, message: dict[str, str]) -> None:
    answer.write(json.dumps(message) + "\n")
    answer.flush()


def _die_with(parent: int) -> None:
    """Loading a model holds the interpreter for seconds, in which the end of input goes unnoticed."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _die_at_end_of_input() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
