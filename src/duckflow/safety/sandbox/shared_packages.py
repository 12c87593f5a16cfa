"""Folders of installed packages whose files are hard links to the installer's store, which other projects use too. A
command that wrote to such a file in place would change the code of all these projects, and undo would not bring it
back."""

import os
import stat
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

STORES = (".pnpm", ".store", ".bun")
"""Folders in `node_modules` that hold the packages themselves; the other folders there are links to these packages."""
NODE = "node_modules"
MOST_LOOKED_AT = 200


def shared_packages(packages: Iterable[Path]) -> list[Path]:
    """Returns the folders of shared packages among these folders of packages."""
    store_folders = [
        inner for place in packages for inner in (map(place.joinpath, STORES) if place.name == NODE else (place,))
    ]
    return list(filter(_is_shared, store_folders))


def _is_shared(place: Path) -> bool:
    try:
        folder_stat = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(folder_stat.st_mode) and _holds_shared(str(place), folder_stat.st_ino, folder_stat.st_ctime_ns)


@lru_cache(64)
def _holds_shared(place: str, inode: int, changed_at: int) -> bool:
    """Says whether one of the first files in a folder has another name (a hard link). Inode and time of change are the
    key of the cache: they change when something is installed."""
    return any(os.lstat(path).st_nlink > 1 for path in islice(_files(place), MOST_LOOKED_AT))


def _files(place: str) -> Iterator[str]:
    for folder, _, names in os.walk(place):
        yield from (f"{folder}/{name}" for name in names)
