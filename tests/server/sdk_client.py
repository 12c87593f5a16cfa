"""A client with the protocol's own SDK: `python sdk_client.py FOLDER MODEL COMMAND…` drives `duckflow mcp serve`."""

import asyncio
import importlib
import json
import os
import sys
from typing import Any

mcp: Any = importlib.import_module("mcp")
stdio: Any = importlib.import_module("mcp.client.stdio")
types: Any = importlib.import_module("mcp.types")


async def main(folder: str, model: str, command: list[str]) -> None:
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    server = mcp.StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with (
        stdio.stdio_client(server) as (read, write),
        mcp.ClientSession(read, write, elicitation_callback=elicit) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        given = {"prompt": "write a.txt", "cwd": folder, "mode": "ask", "model": model}
        first = (await session.call_tool("duckflow", given)).model_dump(mode="json", by_alias=True)
        again = {"sessionId": first["structuredContent"]["sessionId"], "prompt": "thanks"}
        second = (await session.call_tool("duckflow_reply", again)).model_dump(mode="json", by_alias=True)
        names = [tool.name for tool in tools.tools]
        sys.stdout.write(json.dumps({"tools": names, "asked": asked, "first": first, "second": second}) + "\n")


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
