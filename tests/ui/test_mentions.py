"""Files that a message mentions."""

from pathlib import Path

from duckflow.ui.mentions import Mentioned, mentioned


def test_small_text_files_of_the_folder_go_along_and_nothing_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name, text in {"a.py": "x = 1\n", "b c.py": "y\n", ".env": "KEY=1\n", "long.txt": "z" * 20_000}.items():
        (work / name).write_text(text)
    (work / "raw.bin").write_bytes(b"\0\xff")
    (tmp_path / "outside.txt").write_text("no")
    (work / "link.txt").symlink_to(tmp_path / "outside.txt")
    message = 'see @a.py, ＠"b c.py" (@a.py) @.env @long.txt @raw.bin @../outside.txt @link.txt me@a.py @gone.py'
    assert list(mentioned(message, str(work))) == [Mentioned("a.py", "x = 1\n"), Mentioned("b c.py", "y\n")]
    assert list(mentioned("no mention", str(tmp_path / "gone"))) == []
