"""`duckflow` and `duckflow -p`: holds a conversation, with a person or without."""

import asyncio
import gc
import json
import logging
import os
import stat
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.conversation import ChatLoop
from duckflow.agent.session import Session
from duckflow.agent.trust import refuse_own_folders
from duckflow.cli.build import build_conversation
from duckflow.cli.conversations import ChosenSession, Here, NothingChosen, switched, wanted_session
from duckflow.cli.parser import Options
from duckflow.cli.setup import Setup
from duckflow.cli.signals import ended_by_signals
from duckflow.config.load import load
from duckflow.errors import UsageError, exit_code_of
from duckflow.events.views import Attachment, NextSession
from duckflow.i18n.template import note
from duckflow.i18n.words import Words, language_of
from duckflow.programs.find import keep_modules_out
from duckflow.store.paths import Paths
from duckflow.ui.headless import ON_DUCK_CALL, Headless
from duckflow.ui.headless_options import OutputFormat
from duckflow.ui.streams import print_err, print_out

if TYPE_CHECKING:
    from duckflow.cli.page_beside import PageBeside
    from duckflow.ui.console.chat import Chat
    from duckflow.ui.console.line import Line

log = logging.getLogger(__name__)
PIPED_WHOLE = 200_000
"""The most characters that a piped text may have without a copy of it being stored in a file."""
MOST_PIPED = 64 * 1024 * 1024
SHOWN_OF_LONG = 4_000_000
"""The most characters of a piped text that come into the conversation; no model's window takes more."""
LOADED_SECONDS = 2.0


def talk(options: Options, words: Words, paths: Paths) -> int:
    make_setup_here = partial(make_setup, options, words, paths)
    setup = make_setup_here()
    if options.input_format == "stream-json":
        return _led(options, setup, make_setup_here)
    if options.json_schema and options.prompt is None:
        raise UsageError("usage.schema_alone")
    if options.trajectory and options.prompt is None:
        raise UsageError("usage.trajectory_alone")
    piped_text = _piped()
    prompt = None if options.prompt is None else readable(options.prompt).strip()
    if prompt == "" and piped_text.strip():
        prompt = words("stdin.material")
    if prompt is None and (piped_text or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("usage.not_a_terminal")
    if prompt == "":
        raise UsageError("usage.empty_prompt")
    try:
        chosen_session = wanted_session(options, setup, make_setup_here)
    except NothingChosen:
        return 0
    if prompt is not None:
        if len(piped_text) > PIPED_WHOLE:
            chosen_session, piped_text = _kept_whole(chosen_session, piped_text)
        return asyncio.run(_headless(options, chosen_session, prompt, piped_text))
    return asyncio.run(_chat(options, chosen_session, make_setup_here))


def _led(options: Options, setup: Setup, here: Here) -> int:
    """Holds a conversation that another program leads by lines on stdin."""
    if options.prompt or options.json_schema or options.output_format != OutputFormat.STREAM_JSON:
        raise UsageError("usage.led")
    return asyncio.run(_headless(options, wanted_session(options, setup, here), None, ""))


async def behind(line: "Line", typing: asyncio.Task[None], options: Options, words: Words, paths: Paths) -> int:
    """Holds the conversation for an input line that is already shown."""
    make_setup_here = partial(make_setup, options, words, paths)
    return await _converse(
        line, typing, wanted_session(options, make_setup_here(), make_setup_here), make_setup_here, options
    )


def make_setup(options: Options, words: Words, paths: Paths, folder: Path | None = None) -> Setup:
    flags = {
        "safety.mode": options.mode,
        **_loop_flags(options.max_loops),
        "agent.max_budget_usd": options.max_budget_usd,
        "agent.max_tokens": options.max_tokens,
        "language": options.lang,
    }
    folder = folder or Path.cwd()
    own_folders = (paths.data, paths.config, paths.cache)
    refuse_own_folders(folder, own_folders)
    loaded_config = load(paths.user_config, folder, flags)
    words.language = language_of(loaded_config.settings.language)
    added_folders = tuple(_added_folder(name, folder, own_folders) for name in options.add_dir)
    for work_folder in (folder, *added_folders):
        keep_modules_out(str(work_folder))
    return Setup(
        loaded_config.settings,
        paths,
        folder,
        words,
        options.model or "",
        options.trust,
        added_folders,
        really=options.yes_really,
    )


def _added_folder(name: str, folder: Path, own: tuple[Path, ...]) -> Path:
    """Returns a folder that the user adds to the work folder. It must neither contain the work folder nor lie in it,
    and it must not be one of Duckflow's own folders."""
    path = Path(name).expanduser().resolve()
    if not path.is_dir():
        raise UsageError("usage.no_folder", path=name)
    if path.is_relative_to(folder) or folder.is_relative_to(path):
        raise UsageError("usage.same_folder", path=name)
    refuse_own_folders(path, own)
    return path


def _loop_flags(most: int | None) -> dict[str, int]:
    """Returns the settings for `--max-loops`: no turn may have more loops than this, even if it makes progress."""
    if most is None:
        return {}
    bounds = {"highest": most, "fallback": most, "ceiling": most} | ({"lowest": most} if most < 3 else {})
    return {f"pacemaker.limits.{name}": value for name, value in bounds.items()}


async def _headless(options: Options, chosen: ChosenSession, prompt: str | None, piped: str) -> int:
    wanted_shape, setup = None, chosen.setup
    if options.json_schema:
        from duckflow.ui.answer_shape import answer_shape

        wanted_shape = answer_shape(options.json_schema)
        setup = chosen.setup._replace(answer_schema=json.loads(wanted_shape.schema))
    if chosen.damage:
        print_err(chosen.damage)
    if policy := options.on_duck_call:
        setup = setup._replace(on_duck_call=(ON_DUCK_CALL.get(policy.name, policy.name), policy.times))
    built_conversation = build_conversation(setup._replace(alone=prompt is not None), chosen.session)
    conversation, words = built_conversation.conversation, setup.words
    requires_proof = options.require_proof or setup.settings.proof.required
    headless = Headless(
        conversation, words, OutputFormat(options.output_format), options.on_duck_call, wanted_shape, requires_proof
    )
    if prompt is None:
        from duckflow.ui.headless_input import lead

        coroutine = lead(headless, conversation, words, conversation.knows_command)
    else:
        attachments = [Attachment("stdin", piped)] if piped.strip() else []
        coroutine = headless.run(prompt, attachments, conversation.knows_command)
    _collect_later()
    code, work_task = 0, asyncio.create_task(coroutine)
    with ended_by_signals(work_task.cancel) as last_resort:
        try:
            code = last_resort.exit_code(await _to_its_end(work_task, headless, conversation))
            return code
        finally:
            await built_conversation.close()
            if options.trajectory:
                _save_trajectory(options.trajectory, chosen.session)
            chosen.session.close()
            state = chosen.session.state
            has_no_reply = state.turn == 1 and all(message.role == "user" for message in state.messages)
            # Nothing was said, or nobody could be asked, so nobody will continue this session. One with actions
            # stays.
            if not state.messages or (code == exit_code_of("usage") and has_no_reply):
                chosen.session.discard()


def _save_trajectory(file: str, session: Session) -> None:
    """Saves the session's trajectory, however the session ended. An existing file is overwritten, as scripts want."""
    from duckflow.bench.trajectory import trajectory_text
    from duckflow.commands.export.document import save

    try:
        save(Path(file).expanduser(), trajectory_text(session.record()))
    except UsageError as problem:
        print_err(Words(session.state.language).error(problem))


async def _to_its_end(running: asyncio.Task[int], headless: Headless, conversation: ChatLoop) -> int:
    """Waits for the exit code and returns it. When cancelled, stops everything and reports the work done so far."""
    try:
        return await running
    except asyncio.CancelledError:
        await conversation.aclose()
        return headless.finish(conversation.state, fits=True, outcome="interrupted")


async def _chat(options: Options, chosen: ChosenSession, here: Here) -> int:
    from duckflow.ui.console.plain_line import open_line

    line = open_line(chosen.setup.paths.history, chosen.setup.words)
    with line.printing(), ended_by_signals(line.leave) as way_out:
        return way_out.exit_code(await _converse(line, asyncio.create_task(line.run()), chosen, here, options))


async def _converse(
    line: "Line", typing: asyncio.Task[None], chosen: ChosenSession, here: Here, options: Options
) -> int:
    """Holds one conversation after another, until the user leaves."""
    first_text, page_beside_chat = readable(options.message), _page_beside(options)
    try:
        while next_session := await _hold_one(line, typing, chosen, first_text, page_beside_chat):
            chosen, first_text = switched(chosen, next_session, here), ""
    finally:
        if page_beside_chat:
            page_beside_chat.close()
    return 0


def _page_beside(options: Options) -> "PageBeside | None":
    if not options.web:
        return None
    from duckflow.cli.page_beside import PageBeside

    return PageBeside(options.lang or "")


async def _hold_one(
    line: "Line", typing: asyncio.Task[None], chosen: ChosenSession, first: str, beside: "PageBeside | None"
) -> NextSession | None:
    from duckflow.ui.console.chat import Chat
    from duckflow.ui.console.picker import can_pick, pick

    session, setup = chosen.session, chosen.setup
    detached_session: NextSession | None = None
    built_conversation = build_conversation(setup, session, pick=pick if can_pick() else None)
    chat = Chat(built_conversation.conversation, line, setup.words, setup.settings.ui)
    warm_task = asyncio.create_task(built_conversation.thinker.warm(session.state))
    session_end_task = asyncio.create_task(built_conversation.conversation.sessions.over())
    serve_task = asyncio.create_task(
        _serve(built_conversation.conversation, session.path, partial(_show_page, beside, chat, setup))
    )
    _collect_later()
    try:
        chat.open(first, chosen.opening)
        if built_conversation.outside:
            built_conversation.outside.start_own()
        if chosen.resume_jobs:
            if built_conversation.outside:
                await built_conversation.outside.offer(built_conversation.toolbox)
            await built_conversation.conversation.work.resume_all()
        await asyncio.wait({typing, session_end_task}, return_when=asyncio.FIRST_COMPLETED)
        next_session = session_end_task.result() if session_end_task.done() else None
        if next_session and next_session.detached:
            next_session, detached_session = None, next_session
        if next_session is None:
            built_conversation.conversation.sessions.leave()
            line.leave()
            await asyncio.wait({typing})
    finally:
        for task in (session_end_task, warm_task, serve_task):
            task.cancel()
        await built_conversation.close()
        chat.close()
        has_messages = bool(session.state.messages)
        session.close()
        if not has_messages:
            session.discard()
    if detached_session:
        from duckflow.cli.host_process import host_flags, start_host

        mode = built_conversation.conversation.choices.mode
        host_started = await asyncio.to_thread(start_host, detached_session.journal, "jobs", host_flags(setup, mode))
        key = "leave.detached" if host_started else "leave.not_detached"
        print_out(setup.words(key, session=session.state.session_id))
    elif has_messages and next_session is None:
        print_out(setup.words("chat.bye", session=session.state.session_id))
    return next_session._replace(model=built_conversation.thinker.connection.chosen) if next_session else None


async def _show_page(beside: "PageBeside | None", chat: "Chat", setup: Setup, session_id: str) -> None:
    if beside and (address := await beside.show(session_id)):
        chat.screen.note(setup.words("serve.beside", address=address))


async def _serve(conversation: ChatLoop, journal: Path, joinable: Callable[[str], Awaitable[None]]) -> None:
    """Lets other terminals join the conversation, once everything is loaded."""
    await asyncio.sleep(LOADED_SECONDS)
    from duckflow.remote.protocol import SUFFIX
    from duckflow.remote.server import ConversationServer

    server, path = ConversationServer(conversation, terminal=True), journal.with_suffix(SUFFIX)
    try:
        await server.serve(path)
        await joinable(journal.stem)
        await asyncio.Event().wait()
    except OSError as problem:
        log.info("nobody can join: %s", problem)
    finally:
        path.unlink(missing_ok=True)
        server.close()


def _collect_later() -> None:
    """Turns garbage collection on again once everything is loaded; it was off during the start."""

    def collect() -> None:
        # The loaded modules are never freed: searching them for garbage would slow down typing.
        gc.freeze()
        gc.enable()

    asyncio.get_running_loop().call_later(LOADED_SECONDS, collect)


def _piped() -> str:
    """Returns the text that was piped in; empty for a closed or empty stdin."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    raw_bytes = sys.stdin.buffer.read(MOST_PIPED + 1)
    if len(raw_bytes) > MOST_PIPED:
        raise UsageError("usage.stdin_too_long", limit=MOST_PIPED)
    return raw_bytes.decode("utf-8", "replace")


def _kept_whole(chosen: ChosenSession, piped: str) -> tuple[ChosenSession, str]:
    """Stores a copy of a long piped text. Returns the session, to which the copy's folder is added, and the text after
    a note about the copy. If the text is too long for any model, its middle is left out."""
    from duckflow.tools.outside.content import KeptOutputs

    setup = chosen.setup
    copy_file = KeptOutputs(setup.paths.piped_of(setup.folder), SHOWN_OF_LONG).keep(piped.encode(), "stdin", ".txt")
    copy_note = note(setup.words.language, "piped_kept", characters=str(len(piped)), path=str(copy_file))
    if len(piped) > SHOWN_OF_LONG:
        half_length = SHOWN_OF_LONG // 2
        piped = f"{piped[:half_length]}\n…\n{piped[-half_length:]}"
    return chosen._replace(setup=setup._replace(added=(*setup.added, copy_file.parent))), f"{copy_note}\n{piped}"


def readable(text: str) -> str:
    """Returns a word of the command line as text. Bytes that are no valid text become a mark: no other code accepts
    them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
