"""Makes the table of slash commands, including commands that use more than the conversation."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.cli.setup import Setup
from duckflow.commands.command import Command, CommandContext, CommandSource, Group
from duckflow.commands.commit import RunningCommands, commit_group
from duckflow.commands.extensions import ExtensionCommands
from duckflow.commands.memory import ALL, recall_anywhere
from duckflow.commands.outside import OutsideCommands
from duckflow.commands.review import Review, review_group
from duckflow.commands.sessions import Pick, SessionCommands
from duckflow.commands.table import Commands
from duckflow.state.data import Phrase
from duckflow.store.paths import Paths, require_current_folder

if TYPE_CHECKING:
    from duckflow.cli.outside import Outside


def conversation_commands(
    setup: Setup,
    pick: Pick | None,
    extensions: ExtensionCommands,
    outside: "Outside | None",
    overview: Callable[[str], Awaitable[Phrase | str]],
    review: Review,
    plugged: CommandSource,
    rules: Callable[[str], list[Phrase]],
    running: RunningCommands,
) -> Commands:
    """Makes the table of commands. `pick` lets the user choose a session from a list."""

    def show_rules(context: CommandContext, line: str) -> str:
        return "\n".join(context.words.phrase(phrase) for phrase in rules(line))

    servers = OutsideCommands(lambda: outside.servers, outside.ready) if outside else OutsideCommands()
    group = _own_commands(setup.paths, setup.folder, setup.model_flag, overview)
    own_commands = (
        *group,
        *commit_group(running),
        *review_group(review),
        Command("rules", show_rules, words=("remove",)),
    )
    groups = (SessionCommands(pick).group(), own_commands, extensions.group(), servers.group())
    return Commands(setup.words, *groups, sources=(extensions, servers, plugged))


def _own_commands(paths: Paths, folder: Path, model: str, overview: Callable[[str], Awaitable[Phrase | str]]) -> Group:
    """Makes `/doctor`, `/init`, `/map` and `/recall`."""

    async def show_map(context: CommandContext, line: str) -> str:
        answer = await overview(line.strip())
        return answer if isinstance(answer, str) else context.words.phrase(answer)

    async def doctor(context: CommandContext, _: str) -> str:
        from duckflow.cli.doctor.command import report

        return await report(model, context.words, paths, folder)

    async def init(context: CommandContext, _: str) -> str:
        from duckflow.cli.init.set_up import InterviewLeft, set_up

        require_current_folder()
        words, language_before = context.words, context.words.language
        try:
            # The chat shows by itself that a command is still running.
            result = await set_up(context.ask, {}, words, paths, folder, lambda _: None)
        except InterviewLeft:
            return words("init.nothing")
        if words.language != language_before:
            context.conversation.choices.change_language(words.language)
        return "\n".join(words.phrase(phrase) for phrase in result.notes)

    lookups = (Command("map", show_map), Command("recall", partial(recall_anywhere, paths), words=(ALL,)))
    return (Command("doctor", doctor), Command("init", init), *lookups)
