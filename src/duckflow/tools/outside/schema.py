"""The schema of a tool of others in the form that ours have: nothing referred to, nothing that cannot be understood."""

from typing import Any, cast

from duckflow.state.noun import as_table, tables

Table = dict[str, Any]
KEPT = ("type", "description", "enum", "const", "items", "default", "format", "minimum", "maximum", "pattern")
DEEPEST = 6
LONGEST_TEXT = 300


def plain_schema(schema: Any) -> Table:
    """An object with `properties` and `required`, whatever was given."""
    given = as_table(schema)
    plain = _plain(given, given, 0)
    return {"type": "object", "properties": plain.get("properties", {}), "required": plain.get("required", [])}


def _plain(given: Any, top: Table, depth: int) -> Table:
    if not isinstance(given, dict) or depth > DEEPEST:
        return {}
    table = _resolved(cast("Table", given), top)
    for part in tables(table.get("allOf")):
        table = _merged(table, _resolved(part, top))
    plain = {key: table[key] for key in KEPT if key in table}
    if isinstance(plain.get("description"), str):
        plain["description"] = " ".join(plain["description"].split())[:LONGEST_TEXT]
    if "items" in plain:
        plain["items"] = _plain(plain["items"], top, depth + 1)
    if options := tables(table.get("anyOf")) or tables(table.get("oneOf")):
        plain["anyOf"] = [_plain(one, top, depth + 1) for one in options]
    properties: Any = table.get("properties")
    if isinstance(properties, dict):
        named = cast("Table", properties)
        plain["type"] = "object"
        plain["properties"] = {name: _plain(one, top, depth + 1) for name, one in named.items()}
        required: Any = table.get("required")
        known = cast("list[Any]", required) if isinstance(required, list) else []
        plain["required"] = [name for name in named if name in known]
    return plain


def _resolved(table: Table, top: Table) -> Table:
    """What a reference within the schema leads to; nothing for any other."""
    for _ in range(DEEPEST):
        reference = table.get("$ref")
        if not isinstance(reference, str):
            return table
        place: Any = top
        for name in reference.removeprefix("#").strip("/").split("/") if reference.startswith("#/") else ("",):
            place = as_table(place).get(name.replace("~1", "/").replace("~0", "~"))
        rest = {key: value for key, value in table.items() if key != "$ref"}
        table = {**as_table(place), **rest}
    return {}


def _merged(table: Table, part: Table) -> Table:
    both = {**table, **part}
    both["properties"] = {**as_table(table.get("properties")), **as_table(part.get("properties"))}
    required = [one.get("required") for one in (table, part)]
    both["required"] = [name for one in required if isinstance(one, list) for name in cast("list[Any]", one)]
    return both
