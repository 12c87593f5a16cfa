"""The parts that plugins add to a conversation. A plugin that fails is reported and left out; all else goes on."""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duckflow.agent.policies.policy import Policy
from duckflow.agent.session import Session
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup
from duckflow.events.ports import Emit
from duckflow.events.types import Noticed
from duckflow.i18n.words import Words
from duckflow.plugins import COMMANDS, GROUPS, POLICIES, TOOLS, Plugin, installed, switch_off, wanted
from duckflow.state.data import say
from duckflow.store.paths import Paths
from duckflow.tools.tool import AnyTool, Tool
from duckflow.tools.toolbox import Toolbox, packaged_operations
from duckflow.ui.streams import print_out

if TYPE_CHECKING:
    from duckflow.commands.command import Group

log = logging.getLogger(__name__)


class Plugged:
    """The plugins of one conversation."""

    def __init__(self, setup: Setup, emit: Emit) -> None:
        self._cache = setup.paths.plugins
        self._folder = setup.folder
        self._emit = emit
        self._untold: list[Noticed] = []
        switch_off(setup.settings.plugins.off)

    def add_tools(self, toolbox: Toolbox) -> None:
        """Offers the tools of plugins like the built-in ones. A plugin cannot take the name of a built-in tool."""
        own_names = {operation.name for operation in packaged_operations()}
        for plugin, tool in self._made(TOOLS, Tool, self._folder):
            if tool.operation in own_names or "." not in tool.operation:
                self._report(plugin, ValueError(f"{tool.operation} is no name for a tool of a plugin"))
            else:
                toolbox.add(cast("AnyTool", tool))

    def commands(self) -> "Group":
        return self._commands

    async def look(self) -> None:
        """Does nothing, because only plugins that were installed when the conversation began count."""

    @cached_property
    def _commands(self) -> "Group":
        from duckflow.commands.command import Command

        return tuple(command for _, command in self._made(COMMANDS, Command))

    def policies(self, session: Session) -> list[Policy]:
        pairs = self._made(POLICIES, Policy, session)
        isolated_policies: list[Policy] = [IsolatedPolicy(policy, self._report, plugin) for plugin, policy in pairs]
        return [*isolated_policies, TellFailures(self._untold, self._emit)] if isolated_policies or self._untold else []

    def _made(self, group: str, kind: type[Any], *arguments: Any) -> Iterator[tuple[Plugin, Any]]:
        """Yields the objects that the plugins of a group make; each plugin may make several."""
        for plugin in wanted(group, self._cache):
            try:
                loaded_object = plugin.load()
                result = loaded_object if isinstance(loaded_object, kind) else loaded_object(*arguments)
                products = list(cast("Iterable[Any]", result)) if isinstance(result, Iterable) else [result]
                if wrong_product := next((product for product in products if not isinstance(product, kind)), None):
                    raise TypeError(f"{wrong_product!r} is no {kind.__name__}")
            except Exception as problem:
                self._report(plugin, problem)
                continue
            for product in products:
                yield plugin, product

    def _report(self, plugin: Plugin, problem: Exception) -> None:
        log.warning("the plugin %s of %s failed", plugin.name, plugin.package, exc_info=problem)
        reason = f"{type(problem).__name__}: {problem}"
        self._untold.append(Noticed(what=say("plugin.failed", name=plugin.name, package=plugin.package, reason=reason)))


class IsolatedPolicy(Policy):
    """Passes each call on to a plugin's policy, until that policy fails for the first time."""

    def __init__(self, policy: Policy, report: Callable[[Plugin, Exception], None], plugin: Plugin) -> None:
        self._policy = policy
        self._report = report
        self._plugin = plugin

    async def opening(self, turn: Any) -> Any:
        return await self._guarded("opening", turn)

    async def before(self, turn: Any) -> Any:
        return await self._guarded("before", turn)

    async def after(self, turn: Any) -> Any:
        return await self._guarded("after", turn)

    async def ending(self, turn: Any, ending: Any) -> Any:
        return await self._guarded("ending", turn, ending)

    async def closing(self, turn: Any, ending: Any) -> None:
        await self._guarded("closing", turn, ending)

    async def _guarded(self, moment: str, *arguments: Any) -> Any:
        try:
            return await getattr(self._policy, moment)(*arguments)
        except Exception as problem:
            self._policy = Policy()
            self._report(self._plugin, problem)
            return None


class TellFailures(Policy):
    """Shows the failures of plugins. They may happen while the conversation is built, before anybody listens."""

    def __init__(self, untold: list[Noticed], emit: Emit) -> None:
        self._untold = untold
        self._emit = emit

    async def opening(self, turn: Any) -> None:
        self._tell()

    async def closing(self, turn: Any, ending: Any) -> None:
        self._tell()

    def _tell(self) -> None:
        untold_notices = self._untold.copy()
        self._untold.clear()
        for notice in untold_notices:
            self._emit(notice)


def run_plugins(options: Options, words: Words, paths: Paths) -> int:
    """Carries out `duckflow plugins`: lists each plugin, its part and package, and whether it can be loaded."""
    from duckflow.config.load import load

    switch_off(load(paths.user_config, Path.cwd(), {}).settings.plugins.off)
    plugins = installed(paths.plugins)
    if not plugins:
        print_out(words("plugin.none"))
    for plugin in sorted(plugins, key=lambda plugin: (GROUPS.index(plugin.group), plugin.name)):
        status = words("plugin.off") if plugin.switched_off else _status(plugin, words)
        kind = plugin.group.partition(".")[2]
        print_out(f"{kind:<10} {plugin.name:<20} {plugin.package} {plugin.version}  {status}")
    return 0


def _status(plugin: Plugin, words: Words) -> str:
    try:
        plugin.load()
    except Exception as problem:
        return words("plugin.broken", reason=f"{type(problem).__name__}: {problem}")
    return words("plugin.on")
