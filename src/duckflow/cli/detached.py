"""Conversations that other processes hold: `duckflow jobs` lists them, `duckflow attach` joins one."""

import asyncio
import sys
import time
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.i18n.language import language_of
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.remote.conversation import RemoteConversation
from duckflow.remote.protocol import SUFFIX
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out


def list_jobs(options: Options, words: Words, paths: Paths) -> int:
    """Every session that is held by a process and has jobs, with what they ask."""
    from duckflow.commands.plan_tree import job_lines

    found = False
    for path in _sockets(paths):
        remote = asyncio.run(_look(path))
        if remote is None or (remote.terminal and not remote.state.live_jobs()):
            continue
        found = True
        key = "jobs.session_terminal" if remote.terminal else "jobs.session"
        print_out(plain(words(key, session=path.stem, folder=remote.state.folder)))
        for line in job_lines(remote.state, words).split("\n"):
            print_out(plain(f"  {line}"))
    if not found:
        print_out(words("jobs.none"))
    return 0


def attach(options: Options, words: Words, paths: Paths) -> int:
    """Join the conversation; where its process has died, its session is opened here instead."""
    if options.host:
        from duckflow.cli.hosting import host

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
    """To the end of this front end; nothing when nobody answers at the socket."""
    from duckflow.cli.signals import ended_by_signals
    from duckflow.commands.recap import recap
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
    # It goes on over there: nothing was cut off, and what is open is asked here.
    before = remote.state.model_copy(update={"turn_open": False, "pending_gate": None})
    settings = load(paths.user_config, Path(remote.state.folder), {}).settings
    line = open_line(paths.history, words)
    with line.printing(), ended_by_signals(line.leave):
        typing, over = asyncio.create_task(line.run()), asyncio.create_task(remote.sessions.over())
        chat = Chat(remote, line, words, settings.ui)
        chat.open(opening=[*recap(before, remote.mode, time.time(), words), words("attach.hello")])
        await asyncio.wait({typing, over}, return_when=asyncio.FIRST_COMPLETED)
        line.leave()
        await asyncio.wait({typing})
        over.cancel()
        chat.close()
    await remote.aclose()
    if not remote.ended:
        away = "attach.bye" if remote.terminal else "chat.bye"
        key = "leave.detached" if remote.state.at_work else away
        print_out(words(key, session=remote.state.session_id))
    return True


def _talk_options(options: Options, session: str, words: Words) -> Options:
    from duckflow.cli.arguments import make_parser

    talk = make_parser("", words).read(["-r", session])
    given = ("model", "mode", "yes_really", "trust", "max_budget_usd", "max_tokens", "add_dir", "lang")
    return Options(**vars(talk) | {name: getattr(options, name) for name in given}, resume_jobs=True)


def _sockets(paths: Paths) -> list[Path]:
    found = (paths.data / "sessions").glob(f"*/*{SUFFIX}")
    return sorted(found, key=lambda path: path.stem, reverse=True)


def _wanted(session: str, paths: Paths) -> Path:
    """The latest that fits; without a name rather one that has no terminal than one that has."""
    fitting = [path for path in _sockets(paths) if path.stem.startswith(session)]
    if not fitting:
        raise UsageError("jobs.not_found", session=session or "–")
    alone = (path for path in fitting if len(fitting) > 1 and (one := asyncio.run(_look(path))) and not one.terminal)
    return next(alone, fitting[0])


async def _look(path: Path) -> RemoteConversation | None:
    """How it stands there; nothing, and no socket any more, when its process has died. The session itself is kept, and
    `duckflow -r` goes on with it."""
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
