"""`/resume`, `/fork` and `/export`: go to other sessions, and save this session as a document."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.commands.export.document import Format, chosen_format, rendered, save, target
from duckflow.commands.export.transcript import Transcript
from duckflow.commands.session_rows import SessionRow, session_lines, session_rows, short_folder
from duckflow.events.views import SessionSummary
from duckflow.i18n.plain import plain
from duckflow.i18n.terms import terms
from duckflow.i18n.words import Words
from duckflow.memory.archive_hit import ITSELF, ArchiveHit
from duckflow.memory.gravel import Gravel
from duckflow.store.older import older_words

Pick = Callable[[Sequence[SessionRow], Words], Awaitable[SessionRow | None]]
LISTED = 20
LINE_WIDTH = 78


class SessionCommands:
    """The commands about sessions. `pick` lets the user choose a session; without `pick`, sessions are listed by
    number."""

    def __init__(self, pick: Pick | None) -> None:
        self._pick = pick

    def group(self) -> Group:
        return (Command("resume", self._resume), Command("fork", self._fork))

    async def _resume(self, context: CommandContext, wanted: str) -> str:
        if context.conversation.state.turn_open:
            return context.words("resume.busy")
        if wanted:
            context.conversation.sessions.switch(wanted)
            return ""
        return await self._choose(context)

    async def _choose(self, context: CommandContext) -> str:
        words, sessions = context.words, context.conversation.sessions
        rows = session_rows(sessions.all(), words, time.time())
        if not rows:
            return words("sessions.none")
        if self._pick is None:
            listed_sessions = session_lines(rows[:LISTED], LINE_WIDTH, with_id=False)
            return "\n".join([*listed_sessions, words("resume.usage")])
        row = await self._pick(rows, words)
        if row is None:
            return words("resume.stays")
        sessions.switch(row.session_id)
        return ""

    def _fork(self, context: CommandContext, _: str) -> str:
        context.conversation.sessions.fork()
        return ""


AT_ONCE = 200


async def export(context: CommandContext, line: str) -> str:
    """Exports the session: `/export [md|html] [FILE]`."""
    first_word, _, file_name = line.partition(" ")
    format_name, file = (first_word, file_name.strip()) if first_word in tuple(Format) else ("", line)
    words, state = context.words, context.conversation.state
    form = chosen_format(format_name, file)
    path = target(file, state.session_id, form, Path(state.folder))
    transcript = Transcript()
    for number, event in context.conversation.record():
        transcript.hear(number, event)
        if number % AT_ONCE == 0:
            # A long session takes a while to read; the chat must stay responsive.
            await asyncio.sleep(0)
    save(path, await asyncio.to_thread(rendered, transcript, words, form))
    return words("export.written", path=str(path.resolve()))


EXPORT = (Command("export", export, tuple(Format)),)


MOST = 10
OF_A_SESSION = 2
EXCERPT = 160


class SaidSomewhere(NamedTuple):
    """A place in a session where the searched words were said. `session` is None if the session was deleted."""

    session_id: str
    session: SessionSummary | None
    at: float
    who: str
    excerpt: str


def search_sessions(
    question: str, archives: Iterable[Path], summaries: Sequence[SessionSummary], words: Words
) -> list[str]:
    """Returns three lines for each hit: when and where it was said, the words around it, and the command that resumes
    the session."""
    lines = list[str]()
    for hit in places_where_said(question, archives, summaries, words):
        session = hit.session
        title = plain(session.title or session.asked) if session else hit.session_id
        folder = plain(short_folder(session.folder)) if session else "?"
        date = time.strftime("%Y-%m-%d", time.localtime(hit.at))
        lines.append(words("search.hit", when=date, title=title, folder=folder, who=hit.who))
        lines.append(f"  {hit.excerpt}")
        lines += [f"  duckflow --resume {hit.session_id}"] if session else []
    return lines


def places_where_said(
    question: str, archives: Iterable[Path], summaries: Sequence[SessionSummary], words: Words
) -> list[SaidSomewhere]:
    summary_by_id = {summary.session_id: summary for summary in summaries}
    return [
        SaidSomewhere(
            hit.session,
            summary_by_id.get(hit.session),
            hit.at,
            hit.operation or words(f"search.by_{hit.role}"),
            _excerpt(question, older_words(hit.role, hit.text)),
        )
        for hit in _best(question, archives)
    ]


def _best(question: str, archives: Iterable[Path]) -> list[ArchiveHit]:
    """Returns the best hits of all sessions, at most a few of each session."""
    hits = list[ArchiveHit]()
    for path in archives:
        with closing(Gravel(path)) as archive:
            hits += archive.search(question, MOST, reach=ITSELF)
    hits.sort(key=lambda hit: (-hit.share, -hit.at))
    best_hits, count = list[ArchiveHit](), dict[str, int]()
    for hit in hits:
        count[hit.session] = count.get(hit.session, 0) + 1
        if count[hit.session] <= OF_A_SESSION and len(best_hits) < MOST:
            best_hits.append(hit)
    return best_hits


def _excerpt(question: str, text: str) -> str:
    """Returns a line around the first word of the question that occurs in the text."""
    line = " ".join(text.split())
    folded_line = line.casefold()
    search_terms = [question.casefold(), *sorted(terms(question), key=len, reverse=True)]
    offset = next((term_offset for word in search_terms if (term_offset := folded_line.find(word)) >= 0), 0)
    start = max(0, offset - EXCERPT // 3)
    excerpt = line[start : start + EXCERPT]
    return plain(("…" if start else "") + excerpt + ("…" if start + EXCERPT < len(line) else ""))
