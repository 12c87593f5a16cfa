"""Tools that ask the code map: what a file or folder defines, where a name is defined, and where it is used."""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

from duckflow.code.background import MappedFolder
from duckflow.code.outline import file_outline, files_outline, folders_outline
from duckflow.code.servers import LanguageServers
from duckflow.code.settings import CALLERS, FIND, OUTLINE, CodeSettings
from duckflow.code.store import CodeMap, source_text
from duckflow.code.syntax import Symbol, language_of, languages, symbols_in
from duckflow.code.uses import Use, Uses
from duckflow.errors import ToolError
from duckflow.safety.path_names import shown, shown_line
from duckflow.safety.workspace import Workspace
from duckflow.state.data import say
from duckflow.tools.files.file_tool import explained_errors
from duckflow.tools.tool import A, Args, Done, Tool

ROOM = 8000
"""The length of the longest answer, in characters."""
LINE = 160
FOLDERS = "[folder: number of source files, of definitions]"
MOST_DEFINITIONS = 30
MOST_AT_ONCE = 3
"""The most definitions of one name whose uses are listed in one answer. If there are more, the model must choose one of
them."""
PLACES = 40


class OutlineArgs(Args):
    path: str = "."


class SymbolArgs(Args):
    symbol: str
    path: str = ""


class MapTool(Tool[A]):
    """A tool that asks the code map of the work folder."""

    effect = "read"
    counts_as = "search"

    def __init__(self, workspace: Workspace, mapped: Callable[[], MappedFolder], settings: CodeSettings) -> None:
        self._workspace = workspace
        self._mapped = mapped
        self._settings = settings

    async def _fresh(self) -> CodeMap:
        if code_map := await self._mapped().fresh(self._settings.seconds):
            return code_map
        raise ToolError("The map of this folder is still being made. Search instead, or ask again later.", "code.later")


class Outline(MapTool[OutlineArgs]):
    """Lists the classes and functions of a file or folder with their lines."""

    operation = OUTLINE
    subject = ("path",)
    asked_for = frozenset({"path"})
    args = OutlineArgs

    async def run(self, args: OutlineArgs) -> Done:
        with explained_errors(self._workspace, args.path):
            path = self._workspace.relative(args.path)
            kind = self._workspace.stat(path).kind
        name = shown(path)
        if kind == "folder":
            code_map = await self._fresh()
            text = files_outline(code_map, path, ROOM) or f"{FOLDERS}\n{folders_outline(code_map, path, ROOM)}"
            folder_text = text if code_map.files(path) else f"{name} holds no source files."
            return Done(folder_text, say("code.outlined", path=name))
        if language_of(path) is None:
            known_languages = ", ".join(sorted({language.grammar for language in languages().values()}))
            raise ToolError(
                f"The language of {name} is not known here (known: {known_languages}). Read it.", "code.unknown"
            )
        text = source_text(self._workspace, path)
        outline = file_outline(symbols_in(text, path), text.split("\n"), ROOM)
        lines = f"{name} ({text.count(chr(10)) + 1} lines; each with its first and last line)"
        return Done(f"{lines}\n{outline}" if outline else f"{name} defines nothing.", say("code.outlined", path=name))


class SymbolTool(MapTool[SymbolArgs]):
    """A tool that asks the code map about a name. Where the code map is not sure, a language server that the user has
    set up can decide."""

    subject = ("symbol",)
    args = SymbolArgs

    def __init__(
        self,
        workspace: Workspace,
        mapped: Callable[[], MappedFolder],
        settings: CodeSettings,
        servers: Callable[[], LanguageServers | None],
    ) -> None:
        super().__init__(workspace, mapped, settings)
        self._servers = servers


class FindDefinition(SymbolTool):
    """Finds where a name is defined."""

    operation = FIND
    untold = frozenset({"path"})

    async def run(self, args: SymbolArgs) -> Done:
        code_map = await self._fresh()
        try:
            definitions = _definitions(code_map, args)
            lines = [_defined(definition, code_map) for definition in definitions]
        except ToolError:
            if not (lines := await self._told_by_servers(args)):
                raise
        note = [f"[{len(lines) - MOST_DEFINITIONS} more]"] if len(lines) > MOST_DEFINITIONS else []
        listing = "\n".join(lines[:MOST_DEFINITIONS] + note)
        return Done(listing, say("code.found", symbol=shown(args.symbol), count=len(lines)))

    async def _told_by_servers(self, args: SymbolArgs) -> list[str]:
        servers, name = self._servers(), re.split(r"\.|::", args.symbol.strip("() "))[-1]
        places = await servers.definitions(name, self._settings.seconds) if servers and not args.path else []
        return [f"{shown(place.path)}:{place.line} (by the language server)" for place in places]


class Callers(SymbolTool):
    """Finds where a definition is used."""

    operation = CALLERS

    async def run(self, args: SymbolArgs) -> Done:
        code_map = await self._fresh()
        definitions = _definitions(code_map, args)
        if len(definitions) > MOST_AT_ONCE:
            listing = "\n".join(_defined(definition, code_map) for definition in definitions[:MOST_DEFINITIONS])
            text = f"{len(definitions)} definitions have this name. Name one as Class.name or by `path`:\n{listing}"
            return Done(text, say("code.found", symbol=shown(args.symbol), count=len(definitions)))
        answers, count = list[str](), 0
        for target in definitions:
            uses = await self._told_apart(target, await self._mapped().uses(target, self._settings.seconds))
            count += len(uses.meaning("it"))
            answers.append(_told(target, uses, ROOM // len(definitions)))
        return Done("\n\n".join(answers), say("code.used", symbol=shown(args.symbol), count=count))

    async def _told_apart(self, target: Symbol, uses: Uses) -> Uses:
        servers = self._servers()
        if servers is None or not servers.knows(target.path) or not uses.meaning("unsure"):
            return uses
        text = source_text(self._workspace, target.path)
        column = text.split("\n")[target.line - 1].find(target.name)
        references = await servers.references(target.path, target.line, column, text, self._settings.seconds)
        if references is None:
            return uses
        places = {(place.path, place.line, place.column) for place in references}
        return uses._replace(uses=[_decided(use, places) if use.means == "unsure" else use for use in uses.uses])


def _decided(use: Use, places: Collection[tuple[str, int, int]]) -> Use:
    return use._replace(means="it" if (use.path, use.line, use.column) in places else "other")


def _definitions(code_map: CodeMap, args: SymbolArgs) -> list[Symbol]:
    """Returns the definitions of `name`, `Class.name` or `Class::name` in the file or folder of the call. Raises a
    ToolError where there are none."""
    qualified_name = args.symbol.replace("::", ".").strip(".() ")
    name = qualified_name.rpartition(".")[2]
    same_named = code_map.named(name)
    symbols = [
        symbol
        for symbol in same_named
        if symbol.qualified == qualified_name or f".{symbol.qualified}".endswith(f".{qualified_name}")
    ]
    # Some languages write the name as `module.name`.
    symbols = symbols or [
        symbol for symbol in same_named if qualified_name.endswith(f"{_stem(symbol)}.{name}") and not symbol.parent
    ]
    wanted_path = args.path.removeprefix("./").rstrip("/")
    if wanted_path:
        symbols = [
            symbol for symbol in symbols if symbol.path == wanted_path or symbol.path.startswith(f"{wanted_path}/")
        ]
    if symbols:
        return symbols
    similar_names = [symbol.name for symbol in code_map.beginning_with(name[: max(3, len(name) - 2)], 5)]
    hint = f" Beginning like it: {', '.join(dict.fromkeys(similar_names))}." if similar_names else ""
    path_note = f" in {shown(wanted_path)}" if wanted_path else ""
    text = f"{shown(args.symbol)} is not defined{path_note} in a language of the map.{hint} Else search its text."
    raise ToolError(text, "code.not_found", symbol=shown(args.symbol))


def _stem(symbol: Symbol) -> str:
    return symbol.path.rpartition("/")[2].partition(".")[0]


def _defined(symbol: Symbol, code_map: CodeMap) -> str:
    lines = code_map.text(symbol.path).split("\n")
    text = lines[symbol.line - 1].strip()[:LINE] if symbol.line <= len(lines) else ""
    return f"{shown(symbol.path)}:{symbol.line} (to {symbol.end}) {symbol.what} {symbol.qualified}: {shown_line(text)}"


def _told(target: Symbol, uses: Uses, room: int) -> str:
    """Returns a text that lists the uses by file and by the function around them. Then come the uses that could not be
    assigned to one definition, and the number of files that were not searched for lack of time."""
    sure_uses, unsure_uses = uses.meaning("it"), uses.meaning("unsure")
    files, use_count = len({use.path for use in sure_uses}), sum(use.role != "import" for use in sure_uses)
    intro = f"{target.qualified} ({shown(target.path)}:{target.line}) is used in {use_count} places, in {files} files"
    intro += f" that import it {len(sure_uses) - use_count} times" if len(sure_uses) > use_count else ""
    other_count = len(uses.meaning("other"))
    lines = [intro + (f"; {other_count} places mean something else of this name" if other_count else "")]
    text = _grouped(sure_uses, room)
    lines += [text] if text else []
    lines += [f"cannot be told (the same name on an unknown object): {_places(unsure_uses)}"] if unsure_uses else []
    if uses.not_looked_at:
        lines.append(f"[no time for {len(uses.not_looked_at)} files that have the name: search them by text]")
    return "\n".join(lines)


def _grouped(uses: Sequence[Use], room: int) -> str:
    lines = list[str]()
    for path, its_uses in groupby(uses, lambda use: use.path):
        lines.append(shown(path))
        for enclosing_name, function_uses in groupby(its_uses, lambda use: use.within):
            lines += [f"  in {enclosing_name}"] if enclosing_name else []
            lines += dict.fromkeys(f"  {use.line}: {shown_line(use.text[:LINE])}" for use in function_uses)
    text = "\n".join(lines)
    if len(text) <= room:
        return text
    uses_by_file = [(path, list(its_uses)) for path, its_uses in groupby(uses, lambda use: use.path)]
    brief = "\n".join(f"{shown(path)}:{','.join(str(use.line) for use in its_uses)}" for path, its_uses in uses_by_file)
    fitting_text = brief[:room].rpartition("\n")[0] if len(brief) > room else brief
    lines_left_out = brief.count("\n") - fitting_text.count("\n")
    return fitting_text + (
        f"\n[{lines_left_out} more files; give a `path` or search by text]" if lines_left_out else ""
    )


def _places(uses: Sequence[Use]) -> str:
    by_file = [(path, [str(use.line) for use in in_file]) for path, in_file in groupby(uses, lambda use: use.path)]
    shown_files = [f"{shown(path)}:{','.join(lines)}" for path, lines in by_file[:PLACES]]
    return "; ".join(shown_files) + (f"; {len(by_file) - PLACES} more files" if len(by_file) > PLACES else "")
