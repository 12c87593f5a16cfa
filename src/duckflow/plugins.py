"""Packages of others that add to Duckflow by entry points (docs/plugins.md). Nothing is scanned twice: what was found
is kept beside the times at which the places of packages last changed."""

import json
import sys
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.whole_file import write_whole

TOOLS, COMMANDS, POLICIES, WIRES = "duckflow.tools", "duckflow.commands", "duckflow.policies", "duckflow.wires"
GROUPS = (TOOLS, COMMANDS, POLICIES, WIRES)
_off: set[str] = set()


class Plugin(NamedTuple):
    """One entry point: what it adds, where that is found, and whose it is."""

    group: str
    name: str
    value: str
    package: str
    version: str

    @property
    def switched_off(self) -> bool:
        return not _off.isdisjoint((self.name, self.package, "*"))

    def load(self) -> Any:
        """Imports it; whatever the package raises comes out."""
        from importlib.metadata import EntryPoint

        return EntryPoint(self.name, self.value, self.group).load()


def switch_off(names: Iterable[str]) -> None:
    """Plugins or packages that the user does not want, `*` for all of them."""
    _off.clear()
    _off.update(names)


@cache
def installed(kept_in: Path | None = None) -> tuple[Plugin, ...]:
    """Every plugin there is, also one that is switched off."""
    places = _places()
    if kept_in and (known := _read(kept_in, places)) is not None:
        return known
    found = _scanned(places)
    if kept_in:
        _write(kept_in, places, found)
    return found


def wanted(group: str, kept_in: Path | None = None) -> list[Plugin]:
    return [plugin for plugin in installed(kept_in) if plugin.group == group and not plugin.switched_off]


def _places() -> dict[str, int]:
    """Folders of packages, with the times of their last change: an installation always changes one. The folder that
    one is in brings no plugins, also where Python would import from it."""
    places, here = dict[str, int](), str(Path.cwd())
    for name in dict.fromkeys(sys.path):
        try:
            if name not in ("", here):
                places[name] = Path(name).stat().st_mtime_ns
        except OSError:
            continue
    return places


def _scanned(places: Collection[str]) -> tuple[Plugin, ...]:
    # Most installations have no plugin, and then nothing that takes long to import is needed to know that.
    if not any(_brings_some(Path(place)) for place in places):
        return ()
    from importlib.metadata import distributions

    found = dict[tuple[str, str, str], Plugin]()
    for distribution in distributions(path=list(places)):
        for entry in distribution.entry_points:
            if entry.group in GROUPS:
                package, version = distribution.metadata["Name"], distribution.version
                plugin = Plugin(entry.group, entry.name, entry.value, package, version)
                # The first on the path is the one that is imported.
                found.setdefault((entry.group, entry.name, package), plugin)
    return tuple(sorted(found.values()))


def _brings_some(place: Path) -> bool:
    files = place.glob("*-info/entry_points.txt")
    return any(b"[duckflow." in file.read_bytes() for file in files if file.is_file())


def _read(kept_in: Path, places: dict[str, int]) -> tuple[Plugin, ...] | None:
    try:
        kept = json.loads(kept_in.read_text("utf-8"))
        return tuple(Plugin(*map(str, one)) for one in kept["plugins"]) if kept["places"] == places else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(kept_in: Path, places: dict[str, int], found: Iterable[Plugin]) -> None:
    try:
        write_whole(kept_in, json.dumps({"places": places, "plugins": list(found)}))
    except OSError:
        # It is looked for again the next time.
        return
