"""`duckflow` and `duckflow -p`: a conversation, with a person or without."""

import asyncio
import gc
import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from duckflow.agent.chat_loop import ChatLoop
from duckflow.cli.arguments import Options
from duckflow.cli.conversations import Conversation, Left, enter_folder, open_conversation, wanted_session
from duckflow.cli.wire import Wiring, wire
from duckflow.config.load import load
from duckflow.errors import UsageError
from duckflow.safety.policy import Mode
from duckflow.store.paths import Paths
from duckflow.store.sessions import Sessions
from duckflow.ui.counter import Quit, Switch
from duckflow.ui.headless import Headless, OutputFormat, print_err, print_out
from duckflow.ui.i18n.words import Words, language_of

STDIN_LIMIT = 200_000
LOADED_SECONDS = 2.0


def talk(options: Options, words: Words, paths: Paths) -> int:
    flags = {
        "safety.mode": options.mode,
        **_loop_flags(options.max_loops),
        "agent.max_budget_usd": options.max_budget_usd,
        "language": options.lang,
    }

    def here() -> Wiring:
        folder = Path.cwd()
        return Wiring(load(paths.user_config, folder, flags).settings, paths, folder, words, options.model or "")

    wiring = here()
    words.language = language_of(wiring.settings.language)
    piped = _piped()
    prompt = None if options.prompt is None else _with_material(options.prompt, piped, words)
    if prompt is None and (piped or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("usage.not_a_terminal")
    if prompt is not None and not prompt.strip():
        raise UsageError("usage.empty_prompt")
    try:
        journal = wanted_session(options, Sessions(paths.sessions_of(wiring.folder)), words)
    except Left:
        return 0
    if Path.cwd() != wiring.folder:
        wiring = here()
    talked = open_conversation(wiring, journal, options.fork, options.lang or "")
    if prompt is not None:
        return asyncio.run(_headless(options, talked, prompt))
    return asyncio.run(_chat(options, talked, here))


def _loop_flags(most: int | None) -> dict[str, int]:
    """What `--max-loops` means: no turn goes beyond it, however well it advances."""
    if most is None:
        return {}
    bounds = {"highest": most, "fallback": most, "ceiling": most} | ({"lowest": most} if most < 3 else {})
    return {f"pacemaker.limits.{name}": value for name, value in bounds.items()}


async def _headless(options: Options, talked: Conversation, prompt: str) -> int:
    session, wiring = talked.session, talked.wiring
    headless = Headless(wiring.words, OutputFormat(options.output_format), options.on_duck_call)
    if talked.salvaged:
        print_err(talked.salvaged)
    session.subscribe(headless.hear)
    chat, _, close, _ = wire(wiring, session, headless.ask)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, chat.interrupt)
    _collect_later()
    try:
        await chat.say(prompt)
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


async def _chat(options: Options, talked: Conversation, here: Callable[[], Wiring]) -> int:
    """One conversation after another, until the user leaves without wanting another one."""
    first = options.message
    while isinstance(leaving := await _converse(talked, first), Switch):
        first = ""
        enter_folder(leaving.journal)
        talked = open_conversation(here(), leaving.journal, leaving.fork)
    return 0


async def _converse(talked: Conversation, first: str) -> Quit | None:
    from duckflow.ui.commands.sessions import SessionCommands
    from duckflow.ui.commands.table import Commands
    from duckflow.ui.console.chat import Chat
    from duckflow.ui.console.picker import can_pick, pick

    session, wiring = talked.session, talked.wiring
    words, settings = wiring.words, wiring.settings
    wiring.paths.history.parent.mkdir(parents=True, exist_ok=True)
    sessions = SessionCommands(Sessions(wiring.paths.sessions_of(wiring.folder)), pick if can_pick() else None)
    color = settings.ui.color and "NO_COLOR" not in os.environ
    screen = Chat(words, wiring.paths.history, color, Commands(sessions.group()))
    chat, thinker, close, _ = wire(wiring, session, screen.questions.ask)
    session.subscribe(screen.hear)
    warming = asyncio.create_task(thinker.warm(session.state))
    _collect_later()
    leaving: Quit | None = None
    try:
        leaving = await screen.run(chat, first, [*talked.opening, *filter(None, [talked.salvaged])])
        return leaving
    finally:
        warming.cancel()
        await chat.aclose()
        await close()
        spoken = session.state.turn > 0
        session.close()
        if not spoken:
            session.discard()
        elif not isinstance(leaving, Switch):
            print_out(words("chat.bye", session=session.state.session_id))


def _collect_later() -> None:
    """Garbage is collected again once everything is loaded; the start switched it off."""
    asyncio.get_running_loop().call_later(LOADED_SECONDS, gc.enable)


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


def _with_material(prompt: str, piped: str, words: Words) -> str:
    return f"{prompt}\n\n{words('stdin.material')}\n<stdin>\n{piped}\n</stdin>" if piped.strip() else prompt
