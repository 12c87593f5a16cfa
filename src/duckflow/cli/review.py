"""`duckflow review` reviews a change without a chat; its exit code is for CI. `duckflow pr` describes a pull
request."""

import asyncio
import sys
from pathlib import Path

from duckflow.cli.build import build_conversation
from duckflow.cli.conversations import new_session
from duckflow.cli.parser import Options
from duckflow.cli.reviewing import STDIN, wanted_change
from duckflow.cli.setup import Setup, folder_trust
from duckflow.cli.signals import ended_by_signals
from duckflow.cli.talk import MOST_PIPED, make_setup
from duckflow.commands.export.document import save_output
from duckflow.errors import UsageError, ended_well, exit_code_of
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.review.change import ReviewedChange
from duckflow.review.report import ReviewResult, as_json, as_sarif, as_text, cost_line
from duckflow.safety.environment import GIT_ALONE
from duckflow.safety.git import Git
from duckflow.safety.repository import git_runs_programs
from duckflow.store.paths import Paths
from duckflow.ui.headless import Headless
from duckflow.ui.headless_options import OutputFormat
from duckflow.ui.streams import print_err, print_out

FOUND = 9
"""The exit code if the review has findings that the user wants to count as a failure."""


def run_review(options: Options, words: Words, paths: Paths) -> int:
    setup = make_setup(options, words, paths)
    trust = folder_trust(setup)()
    if (git_runs_programs(setup.folder) or trust.must_be_wanted) and not (trust.trusted or options.trust):
        raise UsageError("review.refused")
    piped_text = ""
    if options.range == STDIN:
        raw_bytes = sys.stdin.buffer.read(MOST_PIPED + 1)
        if len(raw_bytes) > MOST_PIPED:
            raise UsageError("usage.stdin_too_long", limit=MOST_PIPED)
        piped_text = raw_bytes.decode("utf-8", "surrogateescape")
    return asyncio.run(_review(options, setup, piped_text))


async def _review(options: Options, setup: Setup, piped: str) -> int:
    words = setup.words
    async with wanted_change(setup.folder, options.range, piped) as (folder, change):
        setup_here = setup._replace(folder=folder, alone=True)
        review_task = asyncio.ensure_future(_reviewed(setup_here, change, lasting=folder == setup.folder))
        with ended_by_signals(review_task.cancel):
            try:
                review_result = await review_task
            except asyncio.CancelledError:
                return exit_code_of("interrupted")
    review_outcome = review_result.report.outcome
    match options.format:
        case "json":
            text = as_json(review_result.findings, review_result.usage, review_outcome)
        case "sarif":
            text = as_sarif(review_result.findings, words)
        case _:
            findings_text = (
                as_text(review_result.findings, words) if review_result.findings or ended_well(review_outcome) else ""
            )
            text = "\n\n".join(filter(None, (findings_text, review_result.report.found)))
    if options.output:
        save_output(options.output, f"{text}\n")
    else:
        print_out(text if options.format != "text" else plain(text))
    if review_result.report.open:
        print_err(plain(words.phrase(review_result.report.open)))
    print_err(cost_line(review_result.usage, words))
    if not ended_well(review_outcome):
        return exit_code_of(review_outcome)
    return FOUND if _fails(review_result, options.fail_on) else 0


async def _reviewed(setup: Setup, change: ReviewedChange, lasting: bool) -> ReviewResult:
    """Reviews in a separate session, which is removed afterwards, because nobody will continue it."""
    session = new_session(setup).session
    built_conversation = build_conversation(setup, session)
    headless = Headless(built_conversation.conversation, setup.words, OutputFormat.TEXT)
    built_conversation.conversation.hear(headless.hear)
    try:
        return await built_conversation.reviewers().review(change)
    finally:
        await built_conversation.close()
        session.discard()
        if not lasting:
            setup.paths.map_of(setup.folder).unlink(missing_ok=True)


def _fails(result: ReviewResult, fail_on: str) -> bool:
    match fail_on:
        case "witness":
            return any(finding.shown for finding in result.findings)
        case "high":
            return any(finding.severity == "high" for finding in result.findings)
        case "any":
            return bool(result.findings)
        case _:
            return False


BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def run_pr(options: Options, words: Words, paths: Paths) -> int:
    # The user is not asked whether to trust the folder, so git must not start its programs, not even for missing
    # objects.
    print_out(plain(asyncio.run(_pull_request_text(Git(Path.cwd(), GIT_ALONE), options.base))))
    return 0


async def _pull_request_text(git: Git, base: str) -> str:
    """Returns the title in the first line, then the text. One commit gives its own message; several become a list."""
    for name in (base,) if base else BASES:
        if start := await git.commit_of(name):
            break
    else:
        raise UsageError("pr.no_base", base=base or ", ".join(BASES))
    start = await git("merge-base", start, "HEAD")
    text = await git("log", "--reverse", "--no-merges", "--format=%s%x1f%b%x1e", f"{start}..HEAD")
    commits = [tuple(record.strip("\n").split("\x1f")) for record in text.split("\x1e") if record.strip()]
    if not commits:
        raise UsageError("pr.nothing", base=base or start[:10])
    if len(commits) == 1:
        title, body = commits[0]
        return f"{title}\n\n{body}".rstrip()
    branch = (await git.checked_out()).rpartition("/")[2].replace("-", " ").replace("_", " ")
    items = [
        f"- {subject}" + "".join(f"\n  {line}" for line in body.strip().split("\n") if line)
        for subject, body in commits
    ]
    return "\n".join([branch or commits[0][0], "", *items])
