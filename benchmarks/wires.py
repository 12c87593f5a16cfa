"""A headless turn on each wire, against servers on this machine that speak as the vendors do.

usage: python -m benchmarks.wires [RUNS]        (default 15 rounds)

The wires take turns, so that whatever else the machine does hits all of them; the first round only warms the disk cache
and compiles. Medians in milliseconds of the clock and of the processor, and the latter as a share of OpenAI's wire.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

TOP = Path(__file__).parents[1]
BASE = "responses"


def main() -> None:
    # It finds its neighbours by their bare names.
    sys.path.insert(0, str(TOP / "tests/llm"))
    from tests.llm.vendors import SECRET, VENDORS, FakeEndpoint, Said

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lines: list[str] = []
        for wire, vendor in VENDORS.items():
            server = stack.enter_context(FakeEndpoint(vendor.says(Said("Hello."))))
            url = server.url.removesuffix("/v1") if wire == "anthropic" else server.url
            lines.append(f'[llm.endpoints.{vendor.endpoint}]\nbase_url = "{url}"\nkey_env = "VENDOR_KEY"')
            lines.append(f'wire = "{wire}"\nmodel = "{vendor.model}"')
        (work / "home/config").mkdir(parents=True)
        (work / "folder").mkdir()
        (work / "home/config/config.toml").write_text("\n".join(lines))
        environment = {"PATH": os.environ["PATH"], "HOME": str(work), "VENDOR_KEY": SECRET, "LC_ALL": "C.UTF-8"}
        environment |= {"DUCKFLOW_HOME": str(work / "home"), "PYTHONPATH": str(TOP / "src")}
        took: dict[str, list[tuple[float, float]]] = {wire: [] for wire in VENDORS}
        for number in range(rounds + 1):
            for wire, vendor in VENDORS.items():
                command = [sys.executable, "-m", "duckflow", "-m", vendor.endpoint, "-p", "hi"]
                start, used = time.perf_counter(), _processor()
                subprocess.run(
                    command,
                    cwd=work / "folder",
                    env=environment,
                    check=True,
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                )
                if number:
                    took[wire].append((1000 * (time.perf_counter() - start), 1000 * (_processor() - used)))
    medians = {
        wire: [statistics.median(column) for column in zip(*figures, strict=True)] for wire, figures in took.items()
    }
    for wire, (clock, processor) in medians.items():
        print(f"{wire:10} {clock:6.0f} ms   processor {processor:6.0f} ms   share {processor / medians[BASE][1]:.2f}")


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
