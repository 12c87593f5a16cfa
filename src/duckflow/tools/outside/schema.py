"""The schema of a tool of others in the form of our own: without references, and without parts that are not
understood."""

from typing import Any, cast

from duckflow.state.data import as_table, tables

Table = dict[str, Any]
KEPT = ("type", "description", "enum", "const", "items", "default", "format", "minimum", "maximum", "pattern")
DEEPEST = 6
LONGEST_TEXT = 300


def plain_schema(schema: Any) -> Table:
    """Returns an object with `properties` and `required`, no matter what the server sent."""
    table = as_table(schema)
    plain = _plain(table, table, 0)
    return {"type": "object", "properties": plain.get("properties", {}), "required": plain.get("required", [])}


def _plain(schema: Any, top: Table, depth: int) -> Table:
    if not isinstance(schema, dict) or depth > DEEPEST:
        return {}
    table = _resolved(cast("Table", schema), top)
    for part in tables(table.get("allOf")):
        table = _merged(table, _resolved(part, top))
    plain = {key: table[key] for key in KEPT if key in table}
    if isinstance(plain.get("description"), str):
        plain["description"] = " ".join(plain["description"].split())[:LONGEST_TEXT]
    if "items" in plain:
        plain["items"] = _plain(plain["items"], top, depth + 1)
    if options := tables(table.get("anyOf")) or tables(table.get("oneOf")):
        plain["anyOf"] = [_plain(option, top, depth + 1) for option in options]
    properties: Any = table.get("properties")
    if isinstance(properties, dict):
        named = cast("Table", properties)
        plain["type"] = "object"
        plain["properties"] = {name: _plain(option, top, depth + 1) for name, option in named.items()}
        required: Any = table.get("required")
        known = cast("list[Any]", required) if isinstance(required, list) else []
        plain["required"] = [name for name in named if name in known]
    return plain


def _resolved(table: Table, top: Table) -> Table:
    """Follows a reference within the schema; returns nothing for any other reference."""
    for _ in range(DEEPEST):
        reference = table.get("$ref")
        if not isinstance(reference, str):
            return table
        place: Any = top
        for name in reference.removeprefix("#").strip("/").split("/") if reference.startswith("#/") else ("",):
            place = as_table(place).get(name.replace("~1", "/").replace("~0", "~"))
        siblings = {key: value for key, value in table.items() if key != "$ref"}
        table = {**as_table(place), **siblings}
    return {}


def _merged(table: Table, part: Table) -> Table:
    merged = {**table, **part}
    merged["properties"] = {**as_table(table.get("properties")), **as_table(part.get("properties"))}
    required = [source.get("required") for source in (table, part)]
    merged["required"] = [name for source in required if isinstance(source, list) for name in cast("list[Any]", source)]
    return merged
