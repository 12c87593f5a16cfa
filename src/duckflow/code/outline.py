"""Outlines within a budget: of a file its classes and functions with their lines, of a folder its files with what they
define."""

from collections import Counter
from collections.abc import Sequence

from duckflow.code.store import CodeMap
from duckflow.code.syntax import Symbol

SIGNATURE = 110
LONG_LIST = 8


def file_outline(symbols: Sequence[Symbol], lines: Sequence[str], room: int) -> str:
    """Lists definitions with their lines and first line. If there is no room, the inner ones are left out first:
    variables, then functions in functions, then members."""
    functions = {symbol.qualified for symbol in symbols if symbol.what == "function"}
    views = (
        list(symbols),
        [symbol for symbol in symbols if symbol.what != "variable"],
        [symbol for symbol in symbols if symbol.what != "variable" and symbol.parent not in functions],
        [symbol for symbol in symbols if symbol.what != "variable" and not symbol.parent],
    )
    texts = ["\n".join(_line(symbol, lines) for symbol in view) for view in views]
    for view, text in zip(views, texts, strict=True):
        if len(text) <= room:
            return text + _left_out(len(symbols) - len(view))
    text = texts[-1][:room].rpartition("\n")[0]
    return text + _left_out(len(symbols) - text.count("\n") - 1)


def _line(symbol: Symbol, lines: Sequence[str]) -> str:
    depth = symbol.parent.count(".") + 1 if symbol.parent else 0
    text = lines[symbol.line - 1].strip()[:SIGNATURE] if symbol.line <= len(lines) else symbol.name
    return f"{symbol.start}-{symbol.end}: {'  ' * depth}{text}"


def _left_out(count: int) -> str:
    return f"\n[{count} smaller definitions are left out]" if count else ""


def files_outline(code_map: CodeMap, folder: str, room: int) -> str:
    """Lists the files beneath a folder with their top-level names; nothing if that is too long."""
    files = code_map.files(folder)
    tops = dict[str, list[str]]()
    for symbol in code_map.top_level(folder):
        if symbol.what != "variable":
            tops.setdefault(symbol.path, []).append(symbol.name)
    full = "\n".join(f"{path}: {_names(tops.get(path, ()), 0)}" for path, _ in files)
    if len(full) <= room:
        return full
    brief = "\n".join(f"{path}: {_names(tops.get(path, ()), LONG_LIST)}" for path, _ in files)
    return brief if len(brief) <= room else ""


def _names(names: Sequence[str], most: int) -> str:
    shown = names[:most] if most else names
    return ", ".join(shown) + (f" … +{len(names) - len(shown)}" if len(names) > len(shown) else "")


def folders_outline(code_map: CodeMap, folder: str, room: int) -> str:
    """Lists the folders with the numbers of their files and definitions, as deep as there is room for."""
    files = code_map.files(folder)
    beneath = 0 if folder == "." else folder.count("/") + 1
    lines = list[str]()
    for depth in (3, 2, 1):
        counted, defined = Counter[str](), Counter[str]()
        for path, definitions in files:
            parts = path.split("/")
            top = "/".join(parts[: beneath + depth]) if len(parts) > beneath + depth else "/".join(parts[:-1])
            counted[top or "."] += 1
            defined[top or "."] += definitions
        lines = [f"{name}/: {counted[name]}, {defined[name]}" for name in sorted(counted)]
        if sum(map(len, lines)) + len(lines) <= room:
            break
    else:
        largest = sorted(lines, key=lambda line: -counted[line.partition("/:")[0]])
        most = max(1, room // (sum(map(len, lines)) // len(lines) + 1))
        lines = [*sorted(largest[:most]), f"… +{len(lines) - most}"]
    return "\n".join(lines)
