"""An attempt that has committed a file where the user has one that git ignores: nothing else keeps that file."""

from pathlib import Path

import pytest

from tests.fleet.test_merge import LINK, Merging

HIDDEN = {
    "a file": ("shop.local", "shop.local", ".gitignore"),
    "a file in a folder": ("data/shop.sqlite", "data/shop.sqlite", ".gitignore"),
    "a file in place of a folder": ("data/shop.sqlite", "data", ".gitignore"),
    "a folder in place of a file": ("data", "data/shop.sqlite", ".gitignore"),
    "the user's own list": ("notes", "notes", ".git/info/exclude"),
    "a list in the folder": ("deep/local.toml", "deep/local.toml", "deep/.gitignore"),
    "a link": ("shop.local", "shop.local", ".gitignore"),
    "a link in place of a folder": ("data/shop.sqlite", "data", ".gitignore"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", HIDDEN)
async def test_a_merge_replaces_no_file_that_git_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    mine, theirs, rules = HIDDEN[way]
    yard = Merging(tmp_path, monkeypatch)
    repository, folder = yard.repository, yard.repository.folder
    report = yard.attempt("one", theirs, f"{LINK}shop.py" if "link" in way else "theirs\n")
    for file, text in ((mine, "mine\n"), (rules, f"/{mine.removeprefix('deep/')}\n")):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    assert mine not in repository.git("status", "--porcelain", "--untracked-files=all")
    result = await yard.merge(report)
    assert (folder / mine).read_text() == "mine\n" and not (folder / mine).is_symlink()
    assert result.outcome == "refused" and result.why and theirs.split("/")[0] in yard.words.phrase(result.why)
