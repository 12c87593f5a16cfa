"""Conversations that other processes hold (have open): `duckflow jobs` lists them, `duckflow attach` joins one."""

import asyncio
import os
import sys
import time
from functools import partial
from pathlib import Path

from duckflow.cli.host_process import What, take_keys
from duckflow.cli.parser import Options
from duckflow.cli.signals import ended_by_signals
from duckflow.errors import UsageError
from duckflow.events.ports import InnerConversation
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, language_of
from duckflow.remote.conversation import RemoteConversation
from duckflow.remote.protocol import SUFFIX
from duckflow.remote.server import ConversationServer
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out


def list_jobs(options: Options, words: Words, paths: Paths) -> int:
    """Lists every session that another process holds, with its jobs and their questions."""
    from duckflow.commands.plan_tree import job_lines

    any_listed = False
    for path in _sockets(paths):
        remote = asyncio.run(_look(path))
        if remote is None or (remote.terminal and not remote.state.live_jobs()):
            continue
        any_listed = True
        key = "jobs.session_terminal" if remote.terminal else "jobs.session"
        print_out(plain(words(key, session=path.stem, folder=remote.state.folder)))
        for line in job_lines(remote.state, words).split("\n"):
            print_out(plain(f"  {line}"))
    if not any_listed:
        print_out(words("jobs.none"))
    return 0


def attach(options: Options, words: Words, paths: Paths) -> int:
    """Joins the conversation. If the process that held it has died, the session is opened in this process instead."""
    if options.host:
        return asyncio.run(host(_talk_options(options, options.session, words), options.host, words, paths))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("usage.not_a_terminal")
    path = _wanted(options.session, paths)
    if asyncio.run(_join(path, words, paths)):
        return 0
    path.unlink(missing_ok=True)
    print_out(words("attach.dead", session=path.stem))
    from duckflow.cli.start import start

    return start(_talk_options(options, path.stem, words), words, paths)


async def _join(path: Path, words: Words, paths: Paths) -> bool:
    """Runs this front end until the user leaves. Says whether a process answered when it was called at the socket."""
    from duckflow.cli.signals import ended_by_signals
    from duckflow.commands.status import recap
    from duckflow.config.load import load
    from duckflow.ui.console.chat import Chat
    from duckflow.ui.console.plain_line import open_line

    remote = RemoteConversation(path)
    try:
        await remote.attach()
    except TimeoutError:
        raise UsageError("attach.silent", session=path.stem) from None
    except OSError:
        return False
    words.language = language_of(remote.state.language)
    # The conversation goes on in its own process. Nothing was cut off, and its open question is asked here.
    state_before = remote.state.model_copy(update={"turn_open": False, "pending_gate": None})
    settings = load(paths.user_config, Path(remote.state.folder), {}).settings
    line = open_line(paths.history, words)
    with line.printing(), ended_by_signals(line.leave):
        type_task, session_end_task = asyncio.create_task(line.run()), asyncio.create_task(remote.sessions.over())
        chat = Chat(remote, line, words, settings.ui)
        chat.open(opening=[*recap(state_before, remote.mode, time.time(), words), words("attach.hello")])
        await asyncio.wait({type_task, session_end_task}, return_when=asyncio.FIRST_COMPLETED)
        line.leave()
        await asyncio.wait({type_task})
        session_end_task.cancel()
        chat.close()
    await remote.aclose()
    if not remote.ended:
        bye_key = "attach.bye" if remote.terminal else "chat.bye"
        key = "leave.detached" if remote.state.at_work else bye_key
        print_out(words(key, session=remote.state.session_id))
    return True


def _talk_options(options: Options, session: str, words: Words) -> Options:
    from duckflow.cli.arguments import make_parser

    talk_options = make_parser("", words).read(["-r", session])
    passed_names = ("model", "mode", "yes_really", "trust", "max_budget_usd", "max_tokens", "add_dir", "lang")
    return Options(**vars(talk_options) | {name: getattr(options, name) for name in passed_names}, resume_jobs=True)


def _sockets(paths: Paths) -> list[Path]:
    sockets = (paths.data / "sessions").glob(f"*/*{SUFFIX}")
    return sorted(sockets, key=lambda path: path.stem, reverse=True)


def _wanted(session: str, paths: Paths) -> Path:
    """Returns the socket of the latest session whose id begins with `session`. If there are several, a session without
    a terminal is preferred."""
    fitting_sockets = [path for path in _sockets(paths) if path.stem.startswith(session)]
    if not fitting_sockets:
        raise UsageError("jobs.not_found", session=session) if session else UsageError("jobs.no_session")
    without_terminal = (
        path
        for path in fitting_sockets
        if len(fitting_sockets) > 1 and (remote := asyncio.run(_look(path))) and not remote.terminal
    )
    return next(without_terminal, fitting_sockets[0])


async def _look(path: Path) -> RemoteConversation | None:
    """Joins a conversation for a moment to read its state. If its process has died, removes the socket and returns
    None; the session itself stays, and `duckflow -r` continues it."""
    remote = RemoteConversation(path)
    try:
        await remote.attach()
    except TimeoutError:
        return None
    except OSError:
        path.unlink(missing_ok=True)
        return None
    await remote.aclose()
    return remote


async def host(options: Options, what: What, words: Words, paths: Paths) -> int:
    from duckflow.cli.build import build_conversation
    from duckflow.cli.connect import find_model
    from duckflow.cli.conversations import new_session, wanted_session
    from duckflow.cli.talk import make_setup

    if what != "led":
        take_keys()
    make_setup_here = partial(make_setup, options, words, paths)
    setup = make_setup_here()._replace(model_origin="model.chosen.page") if what == "new" else make_setup_here()
    chosen_session = (
        new_session(setup, options.resume)
        if what in ("new", "led")
        else wanted_session(options, setup, make_setup_here)
    )
    # A program leads this conversation, and its answers lie in a database. So nobody can type a key here.
    connect = partial(find_model, chosen_session.setup, chosen_session.session) if what == "led" else None
    built_conversation, session = (
        build_conversation(chosen_session.setup, chosen_session.session, connect),
        chosen_session.session,
    )
    conversation = built_conversation.conversation
    path = session.path.with_suffix(SUFFIX)
    server = ConversationServer(conversation)
    session_end_task = asyncio.create_task(conversation.sessions.over())
    with ended_by_signals(conversation.sessions.leave):
        try:
            if built_conversation.outside:
                await built_conversation.outside.offer(built_conversation.toolbox)
            if what == "jobs":
                await conversation.work.resume_all()
            await server.serve(path, expecting=what in ("again", "new"))
            idle_task = asyncio.create_task(_until_closed() if what == "led" else _until_idle(conversation, server))
            await asyncio.wait({session_end_task, idle_task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            path.unlink(missing_ok=True)
            await built_conversation.close()
            has_messages = bool(session.state.messages)
            session.close()
            if not has_messages and what != "led":
                session.discard()
            server.close()
    # The connections end with the process; by then the session is free for other processes.
    os._exit(0)


async def _until_closed() -> None:
    """Waits until stdin is closed. Then the process that started this process is gone, however it ended."""
    closed_event = asyncio.Event()
    asyncio.get_running_loop().add_reader(
        sys.stdin.fileno(), lambda: os.read(sys.stdin.fileno(), 1) or closed_event.set()
    )
    await closed_event.wait()


async def _until_idle(conversation: InnerConversation, server: ConversationServer) -> None:
    """Waits until no job and no turn runs, and nobody is attached."""
    moved_event = asyncio.Event()
    conversation.hear(lambda number, event: moved_event.set())
    while True:
        await conversation.work.jobs_over()
        await server.until_alone()
        if not conversation.busy and not conversation.state.live_jobs():
            return
        moved_event.clear()
        await moved_event.wait()
