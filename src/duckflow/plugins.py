"""Packages of others that add to Duckflow by entry points (docs/plugins.md). Packages are not scanned at every start:
the result is stored with the times at which the folders of packages last changed."""

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
    """One entry point: the group it adds to, the object it names, and the package it belongs to."""

    group: str
    name: str
    value: str
    package: str
    version: str

    @property
    def switched_off(self) -> bool:
        return not _off.isdisjoint((self.name, self.package, "*"))

    def load(self) -> Any:
        """Imports the plugin and returns it. Exceptions of its package are passed on."""
        from importlib.metadata import EntryPoint

        return EntryPoint(self.name, self.value, self.group).load()


def switch_off(names: Iterable[str]) -> None:
    """Switches off plugins or packages that the user does not want; `*` means all of them."""
    _off.clear()
    _off.update(names)


@cache
def installed(kept_in: Path | None = None) -> tuple[Plugin, ...]:
    """Returns every installed plugin, even one that is switched off. `kept_in` is the file with the stored result."""
    modified_times = _places()
    if kept_in and (saved_plugins := _read(kept_in, modified_times)) is not None:
        return saved_plugins
    plugins = _scanned(modified_times)
    if kept_in:
        _write(kept_in, modified_times, plugins)
    return plugins


def wanted(group: str, kept_in: Path | None = None) -> list[Plugin]:
    return [plugin for plugin in installed(kept_in) if plugin.group == group and not plugin.switched_off]


def _places() -> dict[str, int]:
    """Returns the folders of packages with the times of their last change; an installation changes these times. The
    current folder adds no plugins, even if Python would import from it."""
    modified_times, current_folder = dict[str, int](), str(Path.cwd())
    for name in dict.fromkeys(sys.path):
        try:
            if name not in ("", current_folder):
                modified_times[name] = Path(name).stat().st_mtime_ns
        except OSError:
            continue
    return modified_times


def _scanned(places: Collection[str]) -> tuple[Plugin, ...]:
    # Most installations have no plugin. This check needs no slow import.
    if not any(_brings_some(Path(folder)) for folder in places):
        return ()
    from importlib.metadata import distributions

    plugins = dict[tuple[str, str, str], Plugin]()
    for distribution in distributions(path=list(places)):
        for entry_point in distribution.entry_points:
            if entry_point.group in GROUPS:
                package, version = distribution.metadata["Name"], distribution.version
                plugin = Plugin(entry_point.group, entry_point.name, entry_point.value, package, version)
                # A name may stand in several folders on the path. Python imports the first.
                plugins.setdefault((entry_point.group, entry_point.name, package), plugin)
    return tuple(sorted(plugins.values()))


def _brings_some(place: Path) -> bool:
    files = place.glob("*-info/entry_points.txt")
    return any(b"[duckflow." in file.read_bytes() for file in files if file.is_file())


def _read(kept_in: Path, places: dict[str, int]) -> tuple[Plugin, ...] | None:
    try:
        saved_fields = json.loads(kept_in.read_text("utf-8"))
        return (
            tuple(Plugin(*map(str, fields)) for fields in saved_fields["plugins"])
            if saved_fields["places"] == places
            else None
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(kept_in: Path, places: dict[str, int], plugins: Iterable[Plugin]) -> None:
    try:
        write_whole(kept_in, json.dumps({"places": places, "plugins": list(plugins)}))
    except OSError:
        # The plugins are scanned again the next time.
        return
