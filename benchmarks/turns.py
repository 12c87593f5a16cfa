"""Does a turn cost more when the session is long? Own CPU time of a turn around number 20 and around number 2000.

usage: python -m benchmarks.turns [LAST]      (default 2000; the model is scripted, so only Duckflow's own work counts)
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.journeys.story import Story, act, decide, respond

AROUND = 10


async def measure(last: int) -> dict[str, float]:
    turn = [
        decide(act("file_ops.write_file", path="a.txt", content="x\n" * 20), next_step="continue"),
        decide(act("file_ops.read_file", path="a.txt"), next_step="continue"),
        decide(act("file_ops.delete_file", path="a.txt"), respond("done " * 20)),
    ]
    with tempfile.TemporaryDirectory() as top:
        story = Story(Path(top), turn * (last + AROUND))
        story.session.subscribe(lambda event: story.events.clear())
        costs: list[float] = []
        for number in range(last + AROUND):
            start = time.process_time()
            await story.tell(f"question {number}: " + "word " * 30)
            costs.append(time.process_time() - start)
            story.model.requests.clear()
    early = statistics.median(costs[20 - AROUND : 20 + AROUND])
    late = statistics.median(costs[last - AROUND : last + AROUND])
    return {
        "turn_20_ms": round(early * 1e3, 2),
        f"turn_{last}_ms": round(late * 1e3, 2),
        "ratio": round(late / early, 2),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))))
