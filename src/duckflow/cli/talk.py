"""`duckflow` and `duckflow -p`: a conversation, with a person or without."""

import asyncio
import gc
import os
import stat
import sys
from functools import partial
from pathlib import Path

from duckflow.agent.chat_loop import ChatLoop
from duckflow.cli.conversations import Conversation, Here, NothingChosen, switched, wanted_conversation
from duckflow.cli.ended import interrupting, leaving_when_ended
from duckflow.cli.parser import Options
from duckflow.cli.wire import Wiring, wire
from duckflow.commands.command import Switch
from duckflow.config.load import load
from duckflow.errors import UsageError
from duckflow.i18n.words import Words, language_of
from duckflow.safety.mode import Mode
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions
from duckflow.ui.console.listener import Line
from duckflow.ui.headless import Headless
from duckflow.ui.headless_options import OutputFormat
from duckflow.ui.streams import print_err, print_out

STDIN_LIMIT = 200_000
LOADED_SECONDS = 2.0


def talk(options: Options, words: Words, paths: Paths) -> int:
    here = partial(_wiring, options, words, paths)
    wiring = here()
    piped = _piped()
    prompt = None if options.prompt is None else readable(options.prompt).strip()
    if prompt == "" and piped.strip():
        prompt = words("stdin.material")
    if prompt is None and (piped or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("usage.not_a_terminal")
    if prompt == "":
        raise UsageError("usage.empty_prompt")
    try:
        talked = wanted_conversation(options, wiring, here)
    except NothingChosen:
        return 0
    if prompt is not None:
        return asyncio.run(_headless(options, talked, prompt, piped))
    return asyncio.run(_chat(talked, here, readable(options.message)))


async def behind(line: Line, typing: asyncio.Task[None], options: Options, words: Words, paths: Paths) -> int:
    """The conversation for an input line that is up already."""
    here = partial(_wiring, options, words, paths)
    return await _converse(line, typing, wanted_conversation(options, here(), here), here, readable(options.message))


def _wiring(options: Options, words: Words, paths: Paths) -> Wiring:
    flags = {
        "safety.mode": options.mode,
        **_loop_flags(options.max_loops),
        "agent.max_budget_usd": options.max_budget_usd,
        "language": options.lang,
    }
    folder = Path.cwd()
    loaded = load(paths.user_config, folder, flags)
    words.language = language_of(loaded.settings.language)
    return Wiring(loaded.settings, paths, folder, words, options.model or "")


def _loop_flags(most: int | None) -> dict[str, int]:
    """What `--max-loops` means: no turn goes beyond it, however well it advances."""
    if most is None:
        return {}
    bounds = {"highest": most, "fallback": most, "ceiling": most} | ({"lowest": most} if most < 3 else {})
    return {f"pacemaker.limits.{name}": value for name, value in bounds.items()}


async def _headless(options: Options, talked: Conversation, prompt: str, piped: str) -> int:
    session, wiring = talked.session, talked.wiring
    headless = Headless(wiring.words, OutputFormat(options.output_format), options.on_duck_call)
    if talked.damage:
        print_err(talked.damage)
    session.subscribe(headless.hear)
    chat, _, close, _ = wire(wiring, session, headless.ask)
    for number in interrupting():
        asyncio.get_running_loop().add_signal_handler(number, chat.interrupt)
    _collect_later()
    try:
        await chat.say(prompt, piped)
        await chat.jobs.rest()
        if chat.mode is Mode.FULL_AUTO:
            await _carry_through(chat, wiring.words)
        return headless.finish(session.state)
    finally:
        await chat.aclose()
        await close()
        session.close()


async def _carry_through(chat: ChatLoop, words: Words) -> None:
    """Nobody is there, and everything may be done: the plan is approved, and gone through while it advances."""
    reached = -1
    while (plan := chat.state.plan) and plan.status in ("draft", "approved", "in_progress") and plan.done() > reached:
        reached = plan.done()
        await chat.say(words("gate.yes" if plan.status == "draft" else "plan.go_on"))
        await chat.jobs.rest()


async def _chat(talked: Conversation, here: Here, first: str) -> int:
    from duckflow.ui.console.plain_line import open_line

    line = open_line(talked.wiring.paths.history)
    with line.printing(), leaving_when_ended(line):
        return await _converse(line, asyncio.create_task(line.run()), talked, here, first)


async def _converse(line: Line, typing: asyncio.Task[None], talked: Conversation, here: Here, first: str) -> int:
    """One conversation after another, until the user leaves."""
    while wanted := await _one(line, typing, talked, first):
        talked, first = switched(talked, wanted, here), ""
    return 0


async def _one(line: Line, typing: asyncio.Task[None], talked: Conversation, first: str) -> Switch | None:
    from duckflow.cli.slash import own_commands
    from duckflow.commands.sessions import SessionCommands
    from duckflow.commands.table import Commands
    from duckflow.ui.console.chat import Chat
    from duckflow.ui.console.picker import can_pick, pick

    session, wiring = talked.session, talked.wiring
    words, settings = wiring.words, wiring.settings
    sessions = SessionCommands(Sessions(wiring.paths.sessions_of(wiring.folder)), pick if can_pick() else None)
    screen = Chat(words, line, settings.ui, Commands(sessions.group(), own_commands(wiring)))
    chat, thinker, close, _ = wire(wiring, session, screen.questions.ask)
    session.subscribe(screen.hear)
    warming = asyncio.create_task(thinker.warm(session.state))
    animation = asyncio.create_task(screen.animate())
    _collect_later()
    try:
        screen.open(chat, first, talked.opening)
        await asyncio.wait({typing, screen.switching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        animation.cancel()
        warming.cancel()
        await screen.close()
        await chat.aclose()
        await close()
        spoken = bool(session.state.messages)
        session.close()
        if not spoken:
            session.discard()
    if screen.switching.done():
        return screen.switching.result()
    if spoken:
        print_out(words("chat.bye", session=session.state.session_id))
    return None


def _collect_later() -> None:
    """Garbage is collected again once everything is loaded; the start switched it off."""

    def collect() -> None:
        # What is loaded by now stays: to look through it would be felt at the keys.
        gc.freeze()
        gc.enable()

    asyncio.get_running_loop().call_later(LOADED_SECONDS, collect)


def _piped() -> str:
    """What was piped in; a closed or empty stdin is nothing."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    raw = sys.stdin.buffer.read(STDIN_LIMIT + 1)
    if len(raw) > STDIN_LIMIT:
        raise UsageError("usage.stdin_too_long", limit=STDIN_LIMIT)
    return raw.decode("utf-8", "replace")


def readable(text: str) -> str:
    """A word of the command line; bytes in it that are no text become a mark, since nothing else takes them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
