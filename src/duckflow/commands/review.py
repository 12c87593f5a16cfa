"""`/diff` shows a turn's changes and lets the user walk through them; `/review` has an agent look for mistakes."""

import re
from collections.abc import Awaitable, Callable

from duckflow.commands.command import Command, CommandContext, Group
from duckflow.commands.undo import warnings
from duckflow.errors import DuckflowError, ended_well
from duckflow.review.report import ReviewResult, as_text, cost_line
from duckflow.safety.path_names import shown, shown_line
from duckflow.state.changes import LATEST, DiffSide, Hunk, UndoScope
from duckflow.state.data import Phrase, said, say
from duckflow.state.question import Answer, Choice, Question
from duckflow.tools.undo_turn import about_work

WALK = "walk"
TAKE, PUT, FILE, MARK, COMMENT, SEND, NEXT, STOP = "take", "put", "file", "mark", "comment", "send", "next", "stop"
KEYS = (NEXT, COMMENT, TAKE, PUT, MARK, FILE)


async def diff(context: CommandContext, arguments: str) -> str:
    """Shows the changes (`/diff [TURN]`), or goes through them hunk by hunk (`/diff walk [TURN]`)."""
    verb, _, turn = arguments.partition(" ")
    if verb == WALK:
        return await _Walk(context).run(int(turn) if turn.strip().isdecimal() else 0)
    words = context.words
    preview = await context.conversation.undo.diff(UndoScope(turn=int(arguments)) if arguments.isdecimal() else LATEST)
    lines = [words.phrase(about_work("turn", preview)), preview.diff, *warnings(preview.not_covered, words)]
    return "\n".join(line for line in lines if line)


class _Walk:
    """A walk through the hunks with one question for each, answered by a key. Every answer is saved in the session at
    once."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._review = context.conversation.review
        self._told: list[str] = []
        self._problem: Phrase | None = None
        """The reason why the last key did nothing."""

    async def run(self, turn: int) -> str:
        hunks, index, state = await self._review.hunks(turn), 0, self._context.conversation.state
        while index < len(hunks):
            hunk = hunks[index]
            answer = await self._context.ask(self._question(hunk, index, len(hunks)))
            if answer.choice == SEND:
                await self._review.send()
                return ""
            if answer.choice not in KEYS:
                break
            try:
                self._problem = None
                index += await self._do(answer, hunk)
            except DuckflowError as problem:
                self._problem = said(problem)
            if answer.choice == FILE and not self._problem:
                hunks = [other_hunk for other_hunk in hunks if other_hunk.path != hunk.path]
        unsent_note = [self._context.words("comment.left", count=len(state.comments))] if state.comments else []
        return "\n".join([*self._told, *unsent_note])

    async def _do(self, answer: Answer, hunk: Hunk) -> bool:
        """Carries out the answer. Returns True if the next hunk follows."""
        match answer.choice:
            case "mark":
                self._review.mark(hunk.hunk_id, hunk.hunk_id not in self._context.conversation.state.reviewed)
            case "comment":
                await self._comment(hunk, answer.text or await self._words_for(hunk))
            case "take":
                self._tell(await self._review.take_back(hunk.turn, hunk.path, hunk.hunk_id, hunk.job))
            case "put":
                self._tell(await self._review.put_back(hunk.hunk_id))
            case "file":
                self._tell(await self._review.take_back(hunk.turn, hunk.path, job=hunk.job))
            case _:
                pass
        return answer.choice in (NEXT, MARK, TAKE)

    def _question(self, hunk: Hunk, place: int, count: int) -> Question:
        state = self._context.conversation.state
        is_taken_back = any(reverted_hunk.hunk_id == hunk.hunk_id for reverted_hunk in state.taken_back)
        mark_key = "unmark" if hunk.hunk_id in state.reviewed else "mark"
        keys = [NEXT, COMMENT, PUT if is_taken_back else TAKE, MARK, FILE, STOP, *([SEND] if state.comments else [])]
        labels = {MARK: f"comment.key.{mark_key}"}
        choices = tuple(
            Choice(key=key, label=say(labels.get(key, f"comment.key.{key}")), takes_text=key == COMMENT) for key in keys
        )
        comments = [
            comment
            for comment in state.comments
            if hunk.line(comment.line, comment.side) is not None and comment.path == hunk.path
        ]
        rows = [f"{line.new or line.old:>5} {line.sign}{line.text}" for line in hunk.numbered()]
        lines = [*rows, *(f"  ✎ {comment.line}: {comment.text}" for comment in comments)]
        title = say("comment.hunk", path=shown(hunk.path), place=place + 1, count=count)
        problem = (self._problem,) if self._problem else ()
        return Question(
            kind="choice",
            title=title,
            details=(*problem, *(say("talk.quoted", text=shown_line(row)) for row in lines)),
            choices=choices,
            for_person=True,
        )

    async def _words_for(self, hunk: Hunk) -> str:
        leave_choice = Choice(key="no", label=say("comment.key.leave"))
        title = say("comment.which", path=shown(hunk.path))
        answer = await self._context.ask(Question(kind="text", title=title, choices=(leave_choice,), for_person=True))
        return "" if answer.choice == "no" else answer.text

    async def _comment(self, hunk: Hunk, words: str) -> None:
        """Comments on a line: `12 words` is about line 12, `-12 words` about a removed line. Without a number, the
        comment is about the first changed line."""
        if not words.strip():
            return
        match = re.match(r"\s*(-?)(\d+)[:\s]\s*(.+)", words, re.DOTALL)
        changed_line = hunk.changed()[0]
        first_change = ("" if changed_line.new else "-", changed_line.new or changed_line.old, words)
        minus_sign, number, text = match.groups() if match else first_change
        diff_side: DiffSide = "old" if minus_sign else "new"
        await self._review.comment(hunk.turn, hunk.path, int(number), text, diff_side, hunk.job)

    def _tell(self, phrase: Phrase) -> None:
        self._told.append(self._context.words.phrase(phrase))


Review = Callable[[str], Awaitable[ReviewResult]]
"""A function that has a change reviewed: a range of commits, or the latest work if none is named."""


def review_group(review: Review) -> Group:
    async def run(context: CommandContext, commits: str) -> str:
        words, result = context.words, await review(commits.strip())
        lines = [as_text(result.findings, words)] if result.findings or ended_well(result.report.outcome) else []
        lines += [result.report.found] if result.report.found else []
        lines += [words.phrase(result.report.open)] if result.report.open else []
        return "\n\n".join([*lines, cost_line(result.usage, words)])

    return (Command("review", run),)


GROUP = (Command("diff", diff, words=(WALK,)),)
