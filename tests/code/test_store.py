"""The map follows the folder: new, changed, moved, ignored and deleted files, without reading the others again."""

import os
from pathlib import Path

import pytest

from duckflow.code.store import CodeMap
from duckflow.code.syntax import is_large
from duckflow.safety.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "work"
    for name, text in {
        "a.py": "def one(): ...\n",
        "pkg/b.py": "class B:\n    def two(self): one()\n",
        "pkg/notes.md": "one\n",
        "build/gen.py": "def made(): ...\n",
        ".gitignore": "build/\n",
        ".env.py": "KEY = 1\n",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def mapped(folder: Path) -> CodeMap:
    return CodeMap(Workspace(folder), folder.parent / "cache/map.db")


def defined(code_map: CodeMap) -> dict[str, list[str]]:
    return {path: [one.qualified for one in code_map.in_file(path)] for path, _ in code_map.files()}


def test_secrets_and_ignored_files_are_left_out(folder: Path) -> None:
    code_map = mapped(folder)
    code_map.refresh()
    assert sorted(defined(code_map)) == ["a.py", "pkg/b.py"]


def test_only_changed_files_are_read_again(folder: Path) -> None:
    code_map = mapped(folder)
    assert code_map.refresh() == 2
    known = defined(code_map)
    assert known["a.py"] == ["one"] and known["pkg/b.py"] == ["B", "B.two"]
    assert mapped(folder).refresh() == 0
    (folder / "a.py").write_text("def uno(): ...\nclass C: ...\n")
    (folder / "new/deep").mkdir(parents=True)
    (folder / "new/deep/c.ts").write_text("export function three() {}\n")
    assert code_map.refresh() == 2
    assert code_map.named("one") == [] and [one.path for one in code_map.named("three")] == ["new/deep/c.ts"]
    (folder / "pkg/b.py").unlink()
    (folder / "new").rename(folder / "old")
    assert code_map.refresh() == 1
    assert sorted(defined(code_map)) == ["a.py", "old/deep/c.ts"]
    assert code_map.refresh() == 0


def test_a_file_in_a_known_folder_is_found(folder: Path) -> None:
    code_map = mapped(folder)
    code_map.refresh()
    (folder / "pkg/late.py").write_text("def late(): ...\n")
    assert code_map.refresh() == 1 and code_map.named("late")


def test_other_ignore_rules_make_it_look_again(folder: Path) -> None:
    code_map = mapped(folder)
    code_map.refresh()
    (folder / ".gitignore").write_text("pkg/\n")
    os.utime(folder / ".gitignore", (1, 1))
    code_map.refresh()
    assert sorted(defined(code_map)) == ["a.py", "build/gen.py"]


def test_names_lead_to_the_files_that_mention_them(folder: Path) -> None:
    code_map = mapped(folder)
    code_map.refresh()
    assert code_map.mentioning("one") == ["a.py", "pkg/b.py"]
    assert [one.name for one in code_map.beginning_with("t", 5)] == ["two"]
    (folder / "pkg/b.py").write_text("x = 1\n")
    code_map.refresh()
    assert code_map.mentioning("one") == ["a.py"]


def test_a_broken_map_is_made_anew(folder: Path) -> None:
    code_map = mapped(folder)
    code_map.refresh()
    code_map.close()
    (folder.parent / "cache/map.db").write_bytes(b"no database at all" * 100)
    assert mapped(folder).refresh() == 2


def test_a_folder_is_large_by_its_source_files(folder: Path) -> None:
    assert is_large(folder, 2) and not is_large(folder, 4)
    for number in range(10):
        (folder / f"pkg/{number}.md").write_text("")
        (folder / "node_modules").mkdir(exist_ok=True)
        (folder / f"node_modules/{number}.js").write_text("")
    assert not is_large(folder, 4)
