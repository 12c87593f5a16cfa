"""The table of slash commands, with those that reach beyond the conversation."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.commands.extensions import ExtensionCommands
from duckflow.commands.outside import OutsideCommands
from duckflow.commands.sessions import Pick, SessionCommands
from duckflow.commands.table import Commands
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths, require_current_folder


def command_table(
    words: Words,
    paths: Paths,
    folder: Path,
    model: str,
    pick: Pick | None,
    sources: Sequence[ExtensionCommands | OutsideCommands],
) -> Commands:
    """`model` is the one named on the command line; `pick` lets the user choose a session from a list."""
    groups = [SessionCommands(pick).group(), _own_commands(paths, folder, model), *(one.group() for one in sources)]
    return Commands(words, *groups, sources=sources)


def _own_commands(paths: Paths, folder: Path, model: str) -> Group:
    """`/doctor` and `/init`."""

    async def doctor(context: CommandContext, _: str) -> str:
        from duckflow.cli.doctor.command import report

        return await report(model, context.words, paths, folder)

    async def init(context: CommandContext, _: str) -> str:
        from duckflow.cli.init.interview import InterviewLeft
        from duckflow.cli.init.set_up import set_up

        require_current_folder()
        words, before = context.words, context.words.language
        try:
            told = await set_up(context.ask, {}, words, paths, folder)
        except InterviewLeft:
            return words("init.nothing")
        if words.language != before:
            context.conversation.choices.change_language(words.language)
        return "\n".join(words.phrase(phrase) for phrase in told)

    return (Command("doctor", doctor), Command("init", init))
