"""A step of a GitHub Action: every event becomes a line of the log, the summary goes to the page of the run.

- run: python action_step.py "Mend what the linter says"
  env:
    OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}"""

import asyncio
import os
import sys

from duckflow import AsyncDuckflow


async def main(wish: str) -> int:
    limits = {"agent.max_tokens": 500_000}
    async with AsyncDuckflow(".", mode="full-auto", settings=limits) as duck:
        async for event in duck.events(wish):
            if event_kind := getattr(event, "kind", ""):
                print(event_kind)
            else:
                summary = event
    with open(os.environ.get("GITHUB_STEP_SUMMARY", os.devnull), "a", encoding="utf-8") as page:
        page.write(f"{summary.result}\n\n{len(summary.files_changed)} files changed, checks: {summary.checks}\n")
    return summary.exit_code


sys.exit(asyncio.run(main(sys.argv[1])))
