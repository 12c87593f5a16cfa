"""The child process: llama.cpp's server on a loopback port. The process ends when its parent ends, in whatever way.

It is started as `python -m duckflow.llm.local.serve MODEL_FILE`. It reads one line of JSON from stdin: the settings of
the local model, the parent's process id, the folder for prefixes, and the key, which other users could see among the
arguments. It writes one line to stdout: `{"url": ...}` when it listens, or `{"failed": ...}`. When stdin closes, it
ends.
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
    received_settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    _die_with(received_settings["parent"])
    threading.Thread(target=_die_at_end_of_input, daemon=True).start()
    # Everything that the library prints goes to the log: stdout carries only our one line.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        server = _server(sys.argv[1], received_settings)
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
    params: Any = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {order["model"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.n_ctx = order["context"]
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = order["batch"]
    params.cache_ram_mib = order["prompt_cache_mib"]
    params.no_extra_bufts = True
    params.use_jinja = True
    params.offline = True
    params.ui = False
    params.verbosity = ERRORS_ONLY
    params.sampling.penalty_repeat = order["repeat_penalty"]
    params.n_gpu_layers = order["gpu_layers"]
    params.slot_save_path = order["prefixes"]
    if order["threads"]:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    return xllamacpp.Server(params)


def _say(answer: Any, message: dict[str, str]) -> None:
    answer.write(json.dumps(message) + "\n")
    answer.flush()


def _die_with(parent: int) -> None:
    """Makes the system kill this process when its parent ends. Watching stdin is not enough, because loading a model
    blocks the interpreter for seconds."""
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
