"""A process that holds a conversation without a terminal: it carries jobs on, or is there for a page."""

import asyncio
import os
import sys
from functools import partial

from duckflow.cli.host_process import What
from duckflow.cli.parser import Options
from duckflow.cli.signals import ended_by_signals
from duckflow.events.ports import InnerConversation
from duckflow.i18n.words import Words
from duckflow.remote.protocol import SUFFIX
from duckflow.remote.server import ConversationServer
from duckflow.store.paths import Paths


async def host(options: Options, what: What, words: Words, paths: Paths) -> int:
    from duckflow.cli.build import build_conversation
    from duckflow.cli.conversations import new_session, wanted_session
    from duckflow.cli.talk import make_setup

    here = partial(make_setup, options, words, paths)
    setup = here()._replace(model_origin="model.chosen.page") if what == "new" else here()
    chosen = new_session(setup, options.resume) if what in ("new", "led") else wanted_session(options, setup, here)
    built, session = build_conversation(chosen.setup, chosen.session), chosen.session
    conversation = built.conversation
    path = session.path.with_suffix(SUFFIX)
    server = ConversationServer(conversation)
    over = asyncio.create_task(conversation.sessions.over())
    with ended_by_signals(conversation.sessions.leave):
        try:
            if built.outside:
                await built.outside.offer(built.toolbox)
            if what == "jobs":
                await conversation.work.resume_all()
            await server.serve(path, expecting=what in ("again", "new"))
            idle = asyncio.create_task(_until_closed() if what == "led" else _until_idle(conversation, server))
            await asyncio.wait({over, idle}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            path.unlink(missing_ok=True)
            await built.close()
            spoken = bool(session.state.messages)
            session.close()
            if not spoken and what != "led":
                session.discard()
            server.close()
    # Connections end with the process, when the session is free for others.
    os._exit(0)


async def _until_closed() -> None:
    """Until nobody holds the other end of stdin any more: whoever has started this is gone, however it ended."""
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: os.read(sys.stdin.fileno(), 1) or closed.set())
    await closed.wait()


async def _until_idle(conversation: InnerConversation, server: ConversationServer) -> None:
    """Until no job and no turn runs, and nobody is there."""
    moved = asyncio.Event()
    conversation.hear(lambda number, event: moved.set())
    while True:
        await conversation.work.jobs_over()
        await server.until_alone()
        if not conversation.busy and not conversation.state.live_jobs():
            return
        moved.clear()
        await moved.wait()
