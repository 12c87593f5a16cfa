"""Whole headless turns over the vendors' wires: an answer that follows a schema, an empty one, and a fallback model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Exchange, FakeEndpoint, refuses
from vendors import SECRET, VENDORS, Said

from tests.cli.shell import Shell

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
    "additionalProperties": False,
}


def shell_with(tmp_path: Path, more: str = "", **servers: FakeEndpoint) -> Shell:
    shell = Shell(tmp_path)
    lines = [more]
    for wire, server in servers.items():
        vendor = VENDORS[wire]
        url = server.url.removesuffix("/v1") if wire == "anthropic" else server.url
        where = f'base_url = "{url}"\nkey_env = "VENDOR_KEY"\nwire = "{wire}"\nmodel = "{vendor.model}"'
        lines.append(f"[llm.endpoints.{vendor.endpoint}]\n{where}")
    shell.write_config("\n".join(lines))
    shell.environment["VENDOR_KEY"] = SECRET
    return shell


def asked_for(wire: str, body: dict[str, Any]) -> Any:
    """Returns the schema as the wire sends it."""
    match wire:
        case "chat":
            return body["response_format"]["json_schema"]["schema"]
        case "responses":
            return body["text"]["format"]["schema"]
        case "anthropic":
            return body["output_config"]["format"]["schema"]
        case _:
            return body["generationConfig"]["responseJsonSchema"]


@pytest.mark.parametrize("wire", VENDORS)
def test_a_schema_is_sent_together_with_the_tools(tmp_path: Path, wire: str) -> None:
    vendor = VENDORS[wire]
    with FakeEndpoint(vendor.says(Said('So: {"count": 3}. That is [all].'))) as server:
        shell = shell_with(tmp_path, "", **{wire: server})
        done = shell.run("-p", "count", "-m", vendor.endpoint, "--json-schema", json.dumps(SCHEMA), stdin="")
    assert (done.returncode, done.stdout.strip()) == (0, '{"count": 3}'), done.stderr
    [body] = server.received
    assert asked_for(wire, body) == SCHEMA and body["tools"]


def test_an_empty_answer_is_not_a_success(tmp_path: Path) -> None:
    vendor = VENDORS["chat"]
    with FakeEndpoint(vendor.says(Said())) as server:
        shell = shell_with(tmp_path, chat=server)
        for more in ((), ("--json-schema", json.dumps(SCHEMA))):
            done = shell.run("-p", "count", "-m", vendor.endpoint, "--output-format", "json", *more, stdin="")
            told = json.loads(done.stdout)
            assert told["result"] == "" and told["outcome"] != "done" and done.returncode != 0


def test_another_model_takes_over_and_the_user_is_told(tmp_path: Path) -> None:
    busy = refuses(529, "Overloaded", {"retry-after": "3600"})
    other = VENDORS["google"]
    with FakeEndpoint(busy) as first, FakeEndpoint(other.says(Said("I go on."))) as second:
        shell = shell_with(tmp_path, 'llm.fallback = ["google"]', anthropic=first, google=second)
        done = shell.run("-p", "hello", "-m", "anthropic", stdin="")
    assert done.returncode == 0 and done.stdout.strip() == "I go on.", done.stderr
    assert "google:gemini-3-pro-preview" in done.stderr and len(first.received) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("count", [10_000, 150_000])
def test_a_long_piped_text_is_cut_to_the_window_and_stays_readable_in_a_copy(tmp_path: Path, count: int) -> None:
    vendor, line = VENDORS["chat"], "+    value = compute({number:07})"
    diff = "".join(f"{line.format(number=number)}\n" for number in range(count))
    wanted = line.format(number=count // 2)
    seen: list[tuple[str, str]] = []

    def look(exchange: Exchange) -> None:
        request = json.dumps(exchange.endpoint.received[-1], ensure_ascii=False)
        path = re.search(r"The whole is in (\S+):", request)
        assert path
        seen.append((path[1], request))
        arguments = {"path": path[1], "start_line": count // 2, "end_line": count // 2 + 3}
        vendor.says(Said(calls=(("call_1", "file_ops_read_file", arguments),)))(exchange)

    with FakeEndpoint(look, vendor.says(Said("Seen."))) as server:
        shell = shell_with(tmp_path, chat=server)
        done = shell.run("-p", "review this", "-m", vendor.endpoint, stdin=diff)
    assert (done.returncode, done.stdout.strip()) == (0, "Seen."), done.stderr
    [(path, first)] = seen
    assert Path(path).read_text() == diff
    assert line.format(number=0) in first and line.format(number=count - 1) in first
    fits = count == 10_000
    assert (wanted in first, "characters left out" in first) == (fits, not fits)
    assert wanted in json.dumps(server.received[-1])
