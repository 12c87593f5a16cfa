"""Outlines of limited length: the classes and functions of a file with their lines, or the files of a folder with the
names they define."""

from collections import Counter
from collections.abc import Sequence

from duckflow.code.store import CodeMap
from duckflow.code.syntax import Symbol

SIGNATURE = 110
LONG_LIST = 8


def file_outline(symbols: Sequence[Symbol], lines: Sequence[str], room: int) -> str:
    """Lists definitions with their line numbers and their first line of text. If the text is longer than `room`, inner
    definitions are left out: variables first, then functions in functions, then members."""
    functions = {symbol.qualified for symbol in symbols if symbol.what == "function"}
    views = (
        list(symbols),
        [symbol for symbol in symbols if symbol.what != "variable"],
        [symbol for symbol in symbols if symbol.what != "variable" and symbol.parent not in functions],
        [symbol for symbol in symbols if symbol.what != "variable" and not symbol.parent],
    )
    texts = ["\n".join(_line(symbol, lines) for symbol in shown_symbols) for shown_symbols in views]
    for shown_symbols, text in zip(views, texts, strict=True):
        if len(text) <= room:
            return text + _left_out(len(symbols) - len(shown_symbols))
    text = texts[-1][:room].rpartition("\n")[0]
    return text + _left_out(len(symbols) - text.count("\n") - 1)


def _line(symbol: Symbol, lines: Sequence[str]) -> str:
    nesting_depth = symbol.parent.count(".") + 1 if symbol.parent else 0
    text = lines[symbol.line - 1].strip()[:SIGNATURE] if symbol.line <= len(lines) else symbol.name
    return f"{symbol.start}-{symbol.end}: {'  ' * nesting_depth}{text}"


def _left_out(count: int) -> str:
    return f"\n[{count} smaller definitions are left out]" if count else ""


def files_outline(code_map: CodeMap, folder: str, room: int) -> str:
    """Lists the files beneath a folder with their top-level names; empty if the text is longer than `room`."""
    files = code_map.files(folder)
    top_names = dict[str, list[str]]()
    for symbol in code_map.top_level(folder):
        if symbol.what != "variable":
            top_names.setdefault(symbol.path, []).append(symbol.name)
    full_text = "\n".join(f"{path}: {_names(top_names.get(path, ()), 0)}" for path, _ in files)
    if len(full_text) <= room:
        return full_text
    brief_text = "\n".join(f"{path}: {_names(top_names.get(path, ()), LONG_LIST)}" for path, _ in files)
    return brief_text if len(brief_text) <= room else ""


def _names(names: Sequence[str], most: int) -> str:
    shown_names = names[:most] if most else names
    return ", ".join(shown_names) + (f" … +{len(names) - len(shown_names)}" if len(names) > len(shown_names) else "")


def folders_outline(code_map: CodeMap, folder: str, room: int) -> str:
    """Lists the folders with the numbers of their files and definitions, as deep as `room` allows."""
    files = code_map.files(folder)
    folder_depth = 0 if folder == "." else folder.count("/") + 1
    lines = list[str]()
    for depth in (3, 2, 1):
        file_counts, definition_counts = Counter[str](), Counter[str]()
        for path, definitions in files:
            names = path.split("/")
            top_folder = (
                "/".join(names[: folder_depth + depth]) if len(names) > folder_depth + depth else "/".join(names[:-1])
            )
            file_counts[top_folder or "."] += 1
            definition_counts[top_folder or "."] += definitions
        lines = [f"{name}/: {file_counts[name]}, {definition_counts[name]}" for name in sorted(file_counts)]
        if sum(map(len, lines)) + len(lines) <= room:
            break
    else:
        largest_first = sorted(lines, key=lambda line: -file_counts[line.partition("/:")[0]])
        most_lines = max(1, room // (sum(map(len, lines)) // len(lines) + 1))
        lines = [*sorted(largest_first[:most_lines]), f"… +{len(lines) - most_lines}"]
    return "\n".join(lines)
