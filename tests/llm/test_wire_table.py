"""The table of the wires in docs/models.md shows what they really send and read. `UPDATE_SNAPSHOTS=1 pytest` writes it
anew."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, refuses
from talking import QUICK, collect, retries, text_of
from test_vendor_types import SCHEMA
from test_vendors import EFFORT, ENDS, SHOWN, conversation
from vendors import VENDORS, Said, Vendor

from duckflow.errors import ModelError
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.fallback import WithFallback

PAGE = Path(__file__).parents[2] / "docs/models.md"
BEGIN, END = "<!-- seen by tests/llm/test_wire_table.py -->\n", "<!-- end -->\n"
SENT = {
    "a picture": ("image_url", "input_image", "base64", "inlineData"),
    "what was thought goes back": ("reasoning_details", "encrypted_content", "signature", "thoughtSignature"),
    "kept in the cache": ("cache_control", "prompt_cache_key"),
    "effort": ("reasoning_effort", "budget_tokens", "effort", "thinkingLevel", "thinkingBudget"),
    "JSON by a schema": ("response_format", "output_config", "responseJsonSchema", "format"),
}
"""What a request is seen to carry, and the fields that may carry it."""


def first_of(names: tuple[str, ...], bodies: list[dict[str, Any]]) -> str:
    text = json.dumps(bodies)
    return next((f"`{name}`" for name in names if f'"{name}"' in text), "–")


async def seen_on(wire: str) -> dict[str, str]:
    vendor = VENDORS[wire]
    # This fails unless text, thoughts and two calls of one reply come in pieces and are read.
    bodies = await conversation(vendor)
    with FakeEndpoint(vendor.says(Said("{}"))) as server:
        await collect(vendor.at(server, EFFORT), SHOWN._replace(schema=SCHEMA, tools=(), max_tokens=None))
    asked = {"JSON by a schema": server.received, "what was thought goes back": bodies[1:]}
    cells = {what: first_of(names, asked.get(what, bodies)) for what, names in SENT.items()}
    faults = {await refused_on(vendor, status): status for status in (401, 402, 404, 413)}
    ends = ", ".join(f"`{word}` {kind}" for word, kind in ENDS[wire].items())
    return {"streamed text, thoughts, calls side by side": "read", **cells, "ends that are none": ends} | {
        "errors": ", ".join(f"{status} {key}" for key, status in faults.items()),
        "busy (529): asked again": await retried_on(vendor),
        "used up (402): another model takes over": await replaced_on(vendor),
    }


async def refused_on(vendor: Vendor, status: int) -> str:
    with FakeEndpoint(refuses(status, "no")) as server, pytest.raises(ModelError) as caught:
        await collect(vendor.at(server, QUICK))
    return f"`{caught.value.key}`"


async def retried_on(vendor: Vendor) -> str:
    with FakeEndpoint(refuses(529, "overloaded"), vendor.says(Said("there"))) as server:
        chunks = await collect(vendor.at(server, QUICK))
    return "yes" if retries(chunks) and text_of(chunks) == "there" else "–"


async def replaced_on(vendor: Vendor) -> str:
    with FakeEndpoint(refuses(402, "no")) as server, FakeEndpoint(vendor.says(Said("instead"))) as other:

        async def find(_: str) -> EndpointModel:
            return vendor.at(other, QUICK)

        chunks = await collect(WithFallback(vendor.at(server, QUICK), ["other"], find))
    return "yes" if text_of(chunks) == "instead" else "–"


async def test_the_page_says_what_the_wires_do() -> None:
    columns = {wire: await seen_on(wire) for wire in VENDORS}
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(cells[row] for cells in columns.values())} |" for row in columns["chat"]]
    table, page = "\n".join(lines) + "\n", PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    written, _, tail = rest.partition(END)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(f"{head}{BEGIN}{table}{END}{tail}", "utf-8")
        written = table
    assert written == table
