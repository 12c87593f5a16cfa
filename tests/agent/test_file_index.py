"""Finding files by parts of their names."""

from pathlib import Path

import pytest

from duckflow.agent.file_index import FileIndex


@pytest.fixture
def index(tmp_path: Path) -> FileIndex:
    files = ("main.py", "src/app.py", "src/mapper.py", "src/deep/application.txt", "notes/計画 書.md", "built/app.o")
    for name in (*files, ".gitignore"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("built/\n" if name == ".gitignore" else "")
    return FileIndex(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("app", ["src/app.py", "src/deep/application.txt", "src/mapper.py"]),
        ("APP.P", ["src/app.py", "src/mapper.py"]),
        ("c/app.", ["src/app.py", "src/mapper.py", "src/deep/application.txt"]),
        ("sdt", ["src/deep/application.txt"]),
        ("計書", ["notes/計画 書.md"]),
        ("no such (file", []),
    ],
)
def test_beginnings_come_first_then_parts_then_letters_in_order(
    index: FileIndex, wanted: str, found: list[str]
) -> None:
    assert index.find(wanted, 10) == found


def test_ignored_files_are_left_out_and_short_paths_come_first(index: FileIndex) -> None:
    assert index.find("", 2) == ["main.py", ".gitignore"]
    assert not any(path.startswith("built") for path in index.find("", 10))


def test_definitions_come_before_files_that_only_have_the_letters(index: FileIndex, tmp_path: Path) -> None:
    named = [f"src/app.py:app{number}" for number in range(9)]
    with_symbols = FileIndex(tmp_path, lambda wanted, most: [one for one in named if f":{wanted}" in one][:most])
    assert with_symbols.find("app8", 10) == ["src/app.py:app8"]
    found = with_symbols.find("app", 4)
    assert found == ["src/app.py", "src/deep/application.txt", "src/app.py:app0", "src/app.py:app1"]
    scattered = FileIndex(tmp_path, lambda _wanted, _most: ["main.py:sdt"])
    assert scattered.find("sdt", 10) == ["main.py:sdt", "src/deep/application.txt"]
