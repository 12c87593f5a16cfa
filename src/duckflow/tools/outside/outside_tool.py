"""Makes a tool of a server look like one of Duckflow's own, with the same Gate (the question before risky actions) and
journal. What the server says about its tool never lowers the computed risk."""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import ConfigDict

from duckflow import DEFAULT_LANGUAGE
from duckflow.errors import ToolError
from duckflow.rpc import RpcError
from duckflow.safety.path_names import shown_line
from duckflow.safety.risk import Deed, JudgedCommand
from duckflow.state.action import OUTSIDE
from duckflow.state.data import Phrase, as_table, say, shorten, tables, text_of
from duckflow.state.question import Preview
from duckflow.tools.outside.content import KeptOutputs, read_result
from duckflow.tools.outside.http import LOGIN_NEEDED, wanted_scope
from duckflow.tools.outside.server import OutsideServer
from duckflow.tools.tool import Args, CallContext, Done, Tool

Table = dict[str, Any]
LONGEST_NAME = 64
HASHED = 7
LONGEST_TEXT = 1000
LONGEST_SAID = 10_000
DIGEST = 16
MOST_LINKS = 10
"""The most resources of one result that may be read. There is a limit because the server learns which of them are read,
and the user is not asked."""
SHOWN = 80


class OutsideArgs(Args):
    """Arguments of any shape: the server's own schema describes them."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    @property
    def given(self) -> Table:
        return self.model_extra or {}


def operation_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Returns the name `mcp__server__tool` for each tool. A name that is too long, or that two tools would share, ends
    with a digest."""
    plain_names = {tool: OUTSIDE + "__".join(re.sub(r"[^A-Za-z0-9_-]", "_", part) for part in tool) for tool in tools}
    all_plain_names = list(plain_names.values())
    return {
        tool: name if len(name) <= LONGEST_NAME and all_plain_names.count(name) == 1 else _marked(name, tool)
        for tool, name in plain_names.items()
    }


def _marked(name: str, tool: tuple[str, str]) -> str:
    name_digest = hashlib.sha256("\0".join(tool).encode("utf-8", "replace")).hexdigest()[: HASHED - 1]
    return f"{name[: LONGEST_NAME - HASHED]}_{name_digest}"


class OutsideTool(Tool[OutsideArgs]):
    """One tool of one server. `allowed` means that the user's settings let it be called without a question."""

    args = OutsideArgs
    led = True
    outside = True

    def __init__(
        self, operation: str, server: OutsideServer, description: Mapping[str, Any], outputs: KeptOutputs, allowed: bool
    ) -> None:
        self.operation = operation
        self.server = server
        self.allowed = allowed
        self.name = text_of(description, "name")
        self._hints = as_table(description.get("annotations"))
        self.effect = "read" if self._hints.get("readOnlyHint") is True else "run"
        description_text = " ".join(text_of(description, "description", "title").split())[:LONGEST_TEXT] or self.name
        self.about = description_text
        self.told = {DEFAULT_LANGUAGE: description_text}
        self._schema = plain_schema(description.get("inputSchema"))
        text_names = [
            name for name, field in self._schema["properties"].items() if as_table(field).get("type") == "string"
        ]
        self.subject = tuple(name for name in text_names if name in self._schema["required"]) or tuple(text_names)
        self.said = f"{_server_said(server)}\n{_said(description)}"
        self._kept = outputs

    def parameters(self) -> Table:
        return self._schema

    def preview(self, args: OutsideArgs) -> Preview:
        """Shows the whole call, word for word. Missing arguments are reported before the user is asked."""
        if missing_names := [name for name in self._schema["required"] if name not in args.given]:
            known_names = ", ".join(self._schema["properties"])
            raise ToolError(
                f"bad args for {self.operation}: {', '.join(missing_names)} missing. It takes: {known_names}",
                "tool.bad_args",
                operation=self.operation,
            )
        lines = [f"» {self.server.name} › {self.name}", *_told(args.given)]
        return Preview(diff="\n".join(shown_line(line) for line in lines))

    def deed(self, args: OutsideArgs, preview: Preview) -> Deed:
        """Returns the effects of the call: it may do anything, whatever the server says of it, because its program runs
        outside of the sandbox."""
        reasons = [say("risk.outside_tool", server=self.server.name)]
        if self._hints.get("destructiveHint") is True:
            reasons.append(say("risk.outside_destroys"))
        sent_lines = "\n".join(f"+{line}" for line in _told(args.given))
        return Deed("run", diff=sent_lines, command=JudgedCommand("ask", tuple(reasons), online=True))

    async def run(self, args: OutsideArgs) -> Done:
        return await self.run_for(args, CallContext.alone())

    async def run_for(self, args: OutsideArgs, call: CallContext) -> Done:
        seconds = self.server.settings.call_seconds
        try:
            async with asyncio.timeout(seconds) as timeout:
                with call.pause.timing(timeout) as pausable_timeout, self.server.timed(pausable_timeout):
                    params = {"name": self.name, "arguments": args.given}
                    call_result = await self.server.call("tools/call", params, lambda text: call.show(f"{text}\n", 0))
        except TimeoutError:
            raise ToolError(
                f"{self.operation}: no answer within {seconds:g} s; it was called off",
                "mcp.slow",
                name=self.operation,
                seconds=seconds,
            ) from None
        except RpcError as problem:
            raise self._refused(problem) from None
        except (AttributeError, TypeError, ValueError) as problem:
            raise ToolError(f"{self.operation}: {problem}") from None
        text, pictures = await asyncio.to_thread(read_result, call_result, self.operation, self._kept)
        blocks = tables(call_result.get("content"))
        if links := [
            uri for block in blocks if block.get("type") == "resource_link" and (uri := text_of(block, "uri"))
        ]:
            self._kept.linked.update(dict.fromkeys(links[:MOST_LINKS], self.server.name))
            links_phrase = f"each of the first {MOST_LINKS} resources" if len(links) > MOST_LINKS else "a resource"
            text += f"\n[mcp.read gives {links_phrase} linked to, asked for once: its address is the source]"
        return Done(text, self._shown(text), ok=call_result.get("isError") is not True, pictures=pictures)

    def _refused(self, problem: RpcError) -> ToolError:
        for_model = f"{self.operation}: {problem}"
        if problem.code != LOGIN_NEEDED:
            return ToolError(for_model)
        scope = wanted_scope(str(problem.data or ""))
        return ToolError(
            for_model, "mcp.scope_needed" if scope else "mcp.login_needed", name=self.server.name, scope=scope
        )

    def _shown(self, text: str) -> Phrase:
        brief_text = shorten(text[:LONGEST_TEXT], SHOWN)
        return say("mcp.called", server=self.server.name, tool=self.name, text=brief_text)


def _server_said(server: OutsideServer) -> str:
    """Returns what a rule for a tool remembers of its server, since names of tools do not tell all servers apart. A
    digest stands for the arguments, which may hold secrets."""
    entry = server.settings
    place = entry.url.partition("?")[0] or entry.command
    start = json.dumps((entry.command, *entry.args, entry.cwd, entry.url)).encode("utf-8", "surrogateescape")
    origin = "work folder" if server.brought else "user"
    return f"server: {server.name} ({origin}): {place} {hashlib.sha256(start).hexdigest()[:DIGEST]}"


def _said(description: Mapping[str, Any]) -> str:
    """Returns everything that a tool says about itself. A part that is too long is cut, and its digest is added."""
    lines: list[str] = []
    for key in sorted(description):
        text = json.dumps(description[key], ensure_ascii=False, sort_keys=True, indent=1)
        if len(text) > LONGEST_SAID:
            text = f"{text[:LONGEST_SAID]}… {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
        lines.append(f"{key}: {text}")
    return "\n".join(lines)


def _told(arguments: Table) -> list[str]:
    """Shows the arguments to a person: texts as they are, everything else as JSON."""
    lines: list[str] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first_line, *further_lines = text.split("\n")
        lines += [f"  {name}: {first_line}", *(f"    {line}" for line in further_lines)]
    return lines


KEPT = ("type", "description", "enum", "const", "items", "default", "format", "minimum", "maximum", "pattern")
DEEPEST = 6
MOST_PARTS = 1000
"""The largest number of parts of a schema. References can make a short schema into one that has no end."""
LONGEST_DESCRIPTION = 300


def plain_schema(schema: Any) -> Table:
    """Returns a schema with `properties` and `required`, even if the server sent something else."""
    schema_table = as_table(schema)
    simple_schema = _plain(schema_table, schema_table, 0, iter(range(MOST_PARTS)))
    return {
        "type": "object",
        "properties": simple_schema.get("properties", {}),
        "required": simple_schema.get("required", []),
    }


def _plain(schema: Any, top: Table, depth: int, parts_left: Iterator[int]) -> Table:
    if not isinstance(schema, dict) or depth > DEEPEST or next(parts_left, None) is None:
        return {}
    schema_table = _resolved(cast("Table", schema), top)
    for part_schema in tables(schema_table.get("allOf")):
        schema_table = _merged(schema_table, _resolved(part_schema, top))
    simple_schema = {key: schema_table[key] for key in KEPT if key in schema_table}
    if isinstance(simple_schema.get("description"), str):
        simple_schema["description"] = " ".join(simple_schema["description"].split())[:LONGEST_DESCRIPTION]
    if "items" in simple_schema:
        simple_schema["items"] = _plain(simple_schema["items"], top, depth + 1, parts_left)
    if options := tables(schema_table.get("anyOf")) or tables(schema_table.get("oneOf")):
        simple_schema["anyOf"] = [_plain(option, top, depth + 1, parts_left) for option in options]
    properties: Any = schema_table.get("properties")
    if isinstance(properties, dict):
        property_schemas = cast("Table", properties)
        simple_schema["type"] = "object"
        simple_schema["properties"] = {
            name: _plain(option, top, depth + 1, parts_left) for name, option in property_schemas.items()
        }
        required: Any = schema_table.get("required")
        required_names = cast("list[Any]", required) if isinstance(required, list) else []
        simple_schema["required"] = [name for name in property_schemas if name in required_names]
    return simple_schema


def _resolved(table: Table, top: Table) -> Table:
    """Follows a reference within the schema. Any other reference gives an empty schema."""
    for _ in range(DEEPEST):
        reference = table.get("$ref")
        if not isinstance(reference, str):
            return table
        target_schema: Any = top
        for name in reference.removeprefix("#").strip("/").split("/") if reference.startswith("#/") else ("",):
            target_schema = as_table(target_schema).get(name.replace("~1", "/").replace("~0", "~"))
        other_keys = {key: value for key, value in table.items() if key != "$ref"}
        table = {**as_table(target_schema), **other_keys}
    return {}


def _merged(table: Table, part: Table) -> Table:
    merged_schema = {**table, **part}
    merged_schema["properties"] = {**as_table(table.get("properties")), **as_table(part.get("properties"))}
    required_lists = [one_schema.get("required") for one_schema in (table, part)]
    merged_schema["required"] = [
        name for one_schema in required_lists if isinstance(one_schema, list) for name in cast("list[Any]", one_schema)
    ]
    return merged_schema
