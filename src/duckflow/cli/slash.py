"""Slash commands that reach beyond the conversation."""

from duckflow.cli.wire import Wiring
from duckflow.commands.command import Command, CommandContext, Group
from duckflow.errors import DuckflowError
from duckflow.store.paths import require_folder


def own_commands(wiring: Wiring) -> Group:
    """`/doctor` and `/init`, for the conversation that is wired like this."""

    async def doctor(counter: CommandContext, _: str) -> str:
        from duckflow.cli.doctor.command import report

        require_folder()
        return await report(wiring.model_flag, counter.words, wiring.paths)

    async def init(counter: CommandContext, _: str) -> str:
        from duckflow.cli.init.interview import InterviewLeft
        from duckflow.cli.init.set_up import set_up

        require_folder()
        words, before = counter.words, counter.words.language
        try:
            told = await set_up(counter.ask, {}, words, wiring.paths, wiring.folder)
        except InterviewLeft:
            return words("init.nothing")
        except DuckflowError as problem:
            return words.error(problem)
        if words.language != before:
            counter.desk.change_language(words.language)
        return "\n".join(words.phrase(phrase) for phrase in told)

    return (Command("doctor", doctor), Command("init", init))
