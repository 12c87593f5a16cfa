"""A step of a GitHub Action: every event becomes a line of the log, the summary goes to the page of the run.

- run: python action_step.py "Mend what the linter says"
  env:
    OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}"""

import asyncio
import os
import sys
from pathlib import Path

from duckflow import AsyncDuckflow, TurnSummary


async def work(wish: str) -> TurnSummary:
    limits = {"agent.max_tokens": 500_000}
    async with AsyncDuckflow(".", mode="full-auto", settings=limits) as duck:
        async for event in duck.events(wish):
            if isinstance(event, TurnSummary):
                return event
            print(event.kind)
    raise SystemExit("The turn did not end.")


summary = asyncio.run(work(sys.argv[1]))
with Path(os.environ.get("GITHUB_STEP_SUMMARY", os.devnull)).open("a", encoding="utf-8") as page:
    page.write(f"{summary.result}\n\n{len(summary.files_changed)} files changed, checks: {summary.checks}\n")
sys.exit(summary.exit_code)
