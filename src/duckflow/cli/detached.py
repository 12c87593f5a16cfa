"""Jobs that outlive their terminal: a process that carries them on, `duckflow jobs`, `duckflow attach`."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.remote.server import ConversationServer, Remote
from duckflow.state.agent import AgentState
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

SOCKET = ".sock"
HAND_OVER_SECONDS = 60.0


def list_jobs(options: Options, words: Words, paths: Paths) -> int:
    """Every session that goes on without a terminal, with its jobs and what they ask."""
    from duckflow.commands.plan_tree import job_lines

    found = False
    for path in _sockets(paths):
        try:
            state = AgentState.model_validate(_ask(path, "state"))
        except OSError:
            # Its process has died: the session itself is kept, and `duckflow -r` goes on with it.
            path.unlink(missing_ok=True)
            continue
        found = True
        print_out(plain(words("jobs.session", session=path.stem, folder=state.folder)))
        for line in job_lines(state, words).split("\n"):
            print_out(plain(f"  {line}"))
    if not found:
        print_out(words("jobs.none"))
    return 0


def attach(options: Options, words: Words, paths: Paths) -> int:
    """Take the conversation back: the other process stops at a good moment, and the jobs go on here."""
    if options.host:
        return asyncio.run(_host(options, words, paths))
    path = _wanted(options.session, paths)
    try:
        remote = Remote(path, HAND_OVER_SECONDS)
        remote.call("hand_over")
        remote.until_gone()
        remote.close()
    except OSError:
        path.unlink(missing_ok=True)
    from duckflow.cli.start import start

    return start(_talk_options(options, path.stem, words), words, paths)


def _talk_options(options: Options, session: str, words: Words) -> Options:
    from duckflow.cli.arguments import make_parser

    talk = make_parser("", words).read(["-r", session])
    talk.model, talk.mode, talk.trust, talk.resume_jobs = options.model, options.mode, options.trust, True
    return talk


async def _host(options: Options, words: Words, paths: Paths) -> int:
    from functools import partial

    from duckflow.cli.conversations import wanted_session
    from duckflow.cli.talk import make_wiring
    from duckflow.cli.wire import wire

    options = _talk_options(options, options.session, words)
    options.max_loops = options.max_budget_usd = None
    here = partial(make_wiring, options, words, paths)
    chosen = wanted_session(options, here(), here)
    wired, session = wire(chosen.wiring, chosen.session), chosen.session
    conversation = wired.conversation

    async def hand_over() -> None:
        await conversation.work.settle()
        conversation.sessions.leave()

    path = session.path.with_suffix(SOCKET)
    server = await ConversationServer(conversation, words, hand_over).serve(path)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, conversation.sessions.leave)
    try:
        await conversation.work.resume_all()
        ends = [asyncio.create_task(conversation.sessions.over()), asyncio.create_task(conversation.work.jobs_over())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
    finally:
        path.unlink(missing_ok=True)
        await wired.close()
        session.close()
        server.close()
    # Connections end with the process, when the session is free for others.
    os._exit(0)


def _sockets(paths: Paths) -> list[Path]:
    found = (paths.data / "sessions").glob(f"*/*{SOCKET}")
    return sorted(found, key=lambda path: path.stem, reverse=True)


def _wanted(session: str, paths: Paths) -> Path:
    fitting = [path for path in _sockets(paths) if path.stem.startswith(session)]
    if not fitting:
        raise UsageError("jobs.not_found", session=session or "–")
    return fitting[0]


def _ask(path: Path, call: str) -> Any:
    remote = Remote(path)
    try:
        return remote.call(call)
    finally:
        remote.close()
