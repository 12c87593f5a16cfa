"""The map of one folder, stored in the cache: the definitions in each source file, and the words that each file
contains."""

import contextlib
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from duckflow.code.syntax import LARGEST, Symbol, language_of, symbols_in
from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry, digest
from duckflow.safety.ignore_rules import RULES_FILE, ignored_in
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import HERE, Workspace
from duckflow.whole_file import private_folder

LONE_BYTE = re.compile("[\ud800-\udfff]")
"""A byte of a name that is no text: the database could not store it."""


class Walked(NamedTuple):
    """The source files of a folder, with the times of its folders and ignore files. When one of these times changes,
    the folder must be walked again."""

    files: dict[str, FolderEntry]
    folders: dict[str, float]


def walk(workspace: Workspace, top: str = HERE) -> Walked:
    is_ignored = _left_out(workspace)
    found_entries = Walked({}, {top: workspace.stat(top).modified})
    for entry in workspace.walk(top, lambda entry: not is_ignored(entry)):
        if (entry.kind == "file" and entry.name == RULES_FILE) or (entry.kind == "folder" and not is_ignored(entry)):
            found_entries.folders[entry.path] = entry.modified
        elif entry.kind == "file" and is_source(entry) and not is_ignored(entry):
            found_entries.files[entry.path] = entry
    return found_entries


def _left_out(workspace: Workspace) -> Callable[[FolderEntry], bool]:
    """Returns a function that says whether the map leaves out a file or folder: git ignores it, or its name is no
    text."""
    is_ignored = ignored_in(workspace)
    return lambda entry: LONE_BYTE.search(entry.path) is not None or is_ignored(entry)


def is_source(entry: FolderEntry) -> bool:
    """Says whether a file belongs in the map. Minified code does not: nobody reads it, and parsing it takes long."""
    if language_of(entry.path) is None or entry.size > LARGEST or ".min." in entry.name:
        return False
    return not secret_name(entry.path)


def source_text(workspace: Workspace, path: str) -> str:
    """Returns the file's text; empty for a file that is gone, too large, or forbidden to read."""
    try:
        return workspace.read_bytes(f"./{path}", LARGEST).decode("utf-8", "replace")
    except (OSError, ToolError):
        return ""


VERSION = 3
AT_ONCE = 200
"""Number of files between two commits to the database, so that other processes can read meanwhile."""
TABLES = """
CREATE TABLE files (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER, modified REAL, digest TEXT);
CREATE TABLE folders (path TEXT PRIMARY KEY, modified REAL);
CREATE TABLE symbols (file INTEGER, number INTEGER, name TEXT, what TEXT, parent TEXT, line INTEGER, start INTEGER,
  end INTEGER, bases TEXT, PRIMARY KEY (file, number)) WITHOUT ROWID;
CREATE INDEX symbols_by_name ON symbols (name COLLATE NOCASE);
CREATE VIRTUAL TABLE words USING fts5(names, content='', detail=none, tokenize="unicode61 tokenchars '_'");
"""
SELECT = "SELECT name, what, parent, line, start, end, bases, path FROM symbols JOIN files ON files.id = symbols.file"


class Changes(NamedTuple):
    """The differences between the code map and the folder."""

    files: Sequence[FolderEntry] = ()
    """New files, and files whose size or time has changed."""
    gone: Sequence[str] = ()
    folders: Sequence[tuple[str, float]] = ()


class CodeMap:
    """The map of a folder, used by several processes. A map that is broken or from another version is made anew."""

    def __init__(self, workspace: Workspace, path: Path) -> None:
        self.workspace = workspace
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._using = threading.RLock()
        self._kept: tuple[int, dict[str, tuple[int, float]], dict[str, float]] | None = None

    def close(self) -> None:
        with self._using:
            if self._connection:
                self._connection.close()
                self._connection = self._kept = None

    def changes(self) -> Changes:
        """Compares the map with the folder. It looks only at known files and folders, which is much faster than a walk;
        a new file shows in the time of its folder. If ignore rules have changed, it walks through the whole folder."""
        files, folders = self._known()
        if not folders or any(path.endswith(RULES_FILE) and _time(self._at(path)) != folders[path] for path in folders):
            return _compared(walk(self.workspace), files, folders)
        changed_files, missing_paths, lstat, root_prefix = list[FolderEntry](), list[str](), os.lstat, self._at("")
        for path, known_file in files.items():
            try:
                facts = lstat(root_prefix + path)
            except OSError:
                missing_paths.append(path)
                continue
            if facts.st_mtime != known_file[1] or facts.st_size != known_file[0]:
                changed_files.append(FolderEntry(path, "file", facts.st_size, facts.st_mtime))
        touched_folders = [path for path in folders if _time(self._at(path)) != folders[path]]
        new_files, folder_times = self._new_in(touched_folders, files, folders)
        return Changes([*changed_files, *new_files], missing_paths, folder_times)

    def _known(self) -> tuple[dict[str, tuple[int, float]], dict[str, float]]:
        """Returns the files and folders in the map. They are cached until another process writes to the map."""
        with self._using:
            data_version = self._db.execute("PRAGMA data_version").fetchone()[0]
            if self._kept is None or self._kept[0] != data_version:
                rows = self._db.execute("SELECT path, size, modified FROM files").fetchall()
                files = {path: (size, modified) for path, size, modified in rows}
                folders = dict[str, float](self._db.execute("SELECT path, modified FROM folders"))
                self._kept = data_version, files, folders
            return self._kept[1:]

    def update(self, changes: Changes) -> None:
        """Puts changes into the map. A file whose text is unchanged is not parsed again."""
        with self._using:
            known_files, folders = self._known()
            known_files.update({entry.path: (entry.size, entry.modified) for entry in changes.files})
            folders.update(changes.folders)
            for path in (*changes.gone, *(path for path, modified in changes.folders if modified < 0)):
                known_files.pop(path, None)
                folders.pop(path, None)
            files = iter(changes.files)
            while batch := list(islice(files, AT_ONCE)):
                with self._db as db:
                    for entry in batch:
                        self._put(db, entry)
            with self._db as db:
                for path in changes.gone:
                    _forget(db, path)
                db.executemany("INSERT OR REPLACE INTO folders VALUES (?, ?)", changes.folders)
                missing_folders = [(path,) for path, modified in changes.folders if modified < 0]
                db.executemany("DELETE FROM folders WHERE path = ?", missing_folders)

    def refresh(self) -> int:
        """Brings the map up to date, and returns the number of files read."""
        changes = self.changes()
        self.update(changes)
        return len(changes.files)

    def named(self, name: str) -> list[Symbol]:
        return self._symbols("WHERE name = ?1 COLLATE NOCASE AND name = ?1 ORDER BY path, line", name)

    def in_file(self, path: str) -> list[Symbol]:
        return self._symbols("WHERE path = ? ORDER BY line", path)

    def beginning_with(self, text: str, most: int) -> list[Symbol]:
        """Returns definitions whose name begins with the text: short names first, variables last."""
        like_pattern = re.sub(r"([%_\\])", r"\\\1", text) + "%"
        order_clause = "ORDER BY what = 'variable', length(name), name, path LIMIT ?"
        return self._symbols(f"WHERE name LIKE ? ESCAPE '\\' {order_clause}", like_pattern, most)

    def files(self, folder: str = HERE) -> list[tuple[str, int]]:
        """Returns the source files beneath a folder, each with the number of its definitions."""
        prefix = "" if folder == HERE else f"{folder}/"
        query = "SELECT path, count(symbols.file) FROM files LEFT JOIN symbols ON files.id = symbols.file"
        with self._using:
            rows = self._db.execute(f"{query} WHERE substr(path, 1, ?) = ? GROUP BY path", (len(prefix), prefix))
            return list(rows)

    def top_level(self, folder: str = HERE) -> list[Symbol]:
        prefix = "" if folder == HERE else f"{folder}/"
        return self._symbols("WHERE parent = '' AND substr(path, 1, ?) = ? ORDER BY path, line", len(prefix), prefix)

    def mentioning(self, name: str) -> list[str]:
        """Returns the files whose text contains the name: in code, in a comment or in a string."""
        with self._using:
            query = "SELECT path FROM files WHERE id IN (SELECT rowid FROM words WHERE words MATCH ?) ORDER BY path"
            return [path for (path,) in self._db.execute(query, (f'"{name}"',))]

    def text(self, path: str) -> str:
        return source_text(self.workspace, path)

    def _symbols(self, which: str, *values: str | int) -> list[Symbol]:
        with self._using:
            return [Symbol(*row) for row in self._db.execute(f"{SELECT} {which}", values)]

    def _at(self, path: str) -> str:
        return f"{self.workspace.root}/{path}"

    def _new_in(
        self, touched: Iterable[str], files: dict[str, tuple[int, float]], folders: dict[str, float]
    ) -> tuple[list[FolderEntry], list[tuple[str, float]]]:
        """Returns the source files that are new in these folders, and the new times of the folders; -1 for a folder
        that is gone."""
        is_ignored = _left_out(self.workspace)
        new_files, folder_times = list[FolderEntry](), list[tuple[str, float]]()
        for path in touched:
            modified = _time(self._at(path))
            folder_times.append((path, modified))
            if modified < 0 or path.endswith(RULES_FILE):
                continue
            with contextlib.suppress(OSError, ToolError):
                for entry in self.workspace.listdir(f"./{path}"):
                    if is_ignored(entry):
                        continue
                    if entry.kind == "folder" and entry.path not in folders:
                        found_entries = walk(self.workspace, entry.path)
                        new_files += found_entries.files.values()
                        folder_times += found_entries.folders.items()
                    elif entry.kind == "file" and entry.path not in files and is_source(entry):
                        new_files.append(entry)
                    elif entry.name == RULES_FILE:
                        folder_times.append((entry.path, entry.modified))
        return new_files, folder_times

    def _put(self, db: sqlite3.Connection, entry: FolderEntry) -> None:
        text = self.text(entry.path)
        text_digest = digest(text.encode("utf-8", "replace"))
        digest_row = db.execute("SELECT digest FROM files WHERE path = ?", (entry.path,)).fetchone()
        if digest_row and digest_row[0] == text_digest:
            facts = (entry.size, entry.modified, entry.path)
            db.execute("UPDATE files SET size = ?, modified = ? WHERE path = ?", facts)
            return
        _forget(db, entry.path)
        row = (entry.path, entry.size, entry.modified, text_digest)
        number = db.execute("INSERT INTO files (path, size, modified, digest) VALUES (?, ?, ?, ?)", row).lastrowid
        rows = ((number, index, *symbol[:7]) for index, symbol in enumerate(symbols_in(text, entry.path)))
        db.executemany("INSERT INTO symbols VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        db.execute("INSERT INTO words (rowid, names) VALUES (?, ?)", (number, text))

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError:
                self._path.unlink(missing_ok=True)
                self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        private_folder(self._path.parent)
        db = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
        db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            with db:
                db.execute("BEGIN IMMEDIATE")
                if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                    for (table,) in db.execute(
                        "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN "
                        "('files', 'folders', 'symbols', 'words')"
                    ).fetchall():
                        db.execute(f"DROP TABLE {table}")
                    for statement in filter(str.strip, TABLES.split(";")):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {VERSION}")
        return db


def _forget(db: sqlite3.Connection, path: str) -> None:
    """Removes a file. Its words stay in the index under a number that no file has any more."""
    db.execute("DELETE FROM symbols WHERE file = (SELECT id FROM files WHERE path = ?)", (path,))
    db.execute("DELETE FROM files WHERE path = ?", (path,))


def _compared(walked: Walked, files: dict[str, tuple[int, float]], folders: dict[str, float]) -> Changes:
    changed_files = [entry for path, entry in walked.files.items() if files.get(path) != (entry.size, entry.modified)]
    gone_folders = ((path, -1.0) for path in folders.keys() - walked.folders.keys())
    return Changes(changed_files, sorted(files.keys() - walked.files.keys()), [*walked.folders.items(), *gone_folders])


def _time(path: str) -> float:
    """Returns the time when the file or folder was last changed, or -1 if it is gone."""
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return -1.0
