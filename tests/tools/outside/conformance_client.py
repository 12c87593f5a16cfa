"""Our client against the protocol's conformance suite, which runs `python conformance_client.py ADDRESS`.

Where a login is wanted it does what a user does: `duckflow mcp login`, once more where rights are missing."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from duckflow.rpc import RpcError
from duckflow.state.question import Answer, Question
from duckflow.tools.outside.client import Client
from duckflow.tools.outside.elicitation import elicit
from duckflow.tools.outside.http import LOGIN_NEEDED
from duckflow.tools.outside.login import Landing, LoginWish, log_in

LOGINS = 3
DOCUMENT = "https://conformance-test.local/client-metadata.json"
kept: dict[str, Any] = {}


async def headers(refused: bool) -> Mapping[str, str]:
    return {"authorization": f"Bearer {kept['access_token']}"} if kept else {}


async def take_defaults(question: Question) -> Answer:
    keys = [choice.key for choice in question.choices]
    return Answer(choice="default" if "default" in keys else keys[0])


async def put(params: dict[str, Any]) -> dict[str, Any]:
    return await elicit(take_defaults, lambda phrase: None, "suite", params)


async def use(url: str) -> None:
    client = Client(Path.cwd(), put, lambda kind: None, lambda why: None)
    client.over_http(url, headers)
    try:
        await client.connect()
        for tool in await client.list("tools"):
            given = {"a": 5, "b": 3} if tool["name"] == "add_numbers" else {}
            await client.request("tools/call", {"name": tool["name"], "arguments": given})
    finally:
        await client.aclose()


async def login(url: str, challenge: str) -> None:
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    client_id = str(given.get("client_id", DOCUMENT))
    landing = Landing("Done.")
    await landing.open()

    async def show(address: str) -> None:
        async with httpx.AsyncClient() as browser:
            landing.take((await browser.get(address)).headers["location"])

    try:
        wanted = LoginWish(url, challenge, client_id, str(given.get("client_secret", "")))
        kept.update(await log_in(wanted, landing, show))
    finally:
        await landing.close()


async def main(url: str) -> None:
    for _ in range(LOGINS):
        try:
            await use(url)
            return
        except RpcError as problem:
            if problem.code != LOGIN_NEEDED:
                raise
            await login(url, str(problem.data))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
