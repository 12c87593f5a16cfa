"""Finding files by name."""

import os

from acting import Hands


async def test_the_newest_come_first(hands: Hands) -> None:
    for age, name in enumerate(["new.py", "src/middle.py", "src/deep/old.py"]):
        os.utime(hands.put(name, "x"), (1_000_000 - age, 1_000_000 - age))
    hands.put("other.txt", "x")
    done = await hands.do("find_files", pattern="*.py")
    assert done.for_model.splitlines() == ["new.py", "src/middle.py", "src/deep/old.py"]
    assert done.for_user.values == {"pattern": "*.py", "files": 3}
    assert await hands.told("find_files", pattern="deep/*.py", path="src") == "src/deep/old.py"


async def test_nothing_found_is_a_result(hands: Hands) -> None:
    hands.put(".gitignore", "secret.py\n")
    hands.put("secret.py", "x")
    done = await hands.do("find_files", pattern="*.py")
    assert done.ok
    assert done.for_model.startswith("No file fits *.py")


async def test_some_folders_cannot_be_searched(hands: Hands) -> None:
    assert (await hands.refused("find_files", pattern="*", path="../..")).key == "path.outside"
    assert (await hands.refused("find_files", pattern="*", path="missing")).key == "file.missing"
    assert (await hands.refused("find_files", pattern="[z-a]")).key == "file.bad_glob"
