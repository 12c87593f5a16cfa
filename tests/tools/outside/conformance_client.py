"""Our client against the protocol's conformance suite, which runs `python conformance_client.py ADDRESS`."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from duckflow.state.question import Answer, Question
from duckflow.tools.outside.client import Client
from duckflow.tools.outside.elicitation import elicit


async def no_headers(refused: bool) -> Mapping[str, str]:
    return {}


async def take_defaults(question: Question) -> Answer:
    keys = [choice.key for choice in question.choices]
    return Answer(choice="default" if "default" in keys else keys[0])


async def put(params: dict[str, Any]) -> dict[str, Any]:
    return await elicit(take_defaults, "suite", params)


async def main(url: str) -> None:
    client = Client(Path.cwd(), put, lambda kind: None, lambda why: None)
    client.over_http(url, no_headers)
    await client.connect()
    for tool in await client.list("tools"):
        given = {"a": 5, "b": 3} if tool["name"] == "add_numbers" else {}
        await client.request("tools/call", {"name": tool["name"], "arguments": given})
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
