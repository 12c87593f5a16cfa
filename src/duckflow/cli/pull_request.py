"""`duckflow pr`: the title and the body of a pull request, from the commits of the branch."""

import asyncio
from pathlib import Path

from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.environment import GIT_ALONE
from duckflow.safety.git import Git
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def run_pr(options: Options, words: Words, paths: Paths) -> int:
    # Nobody is asked whether the folder is trusted, so git must start nothing of it, for missing objects neither.
    print_out(plain(asyncio.run(_told(Git(Path.cwd(), GIT_ALONE), options.base))))
    return 0


async def _told(git: Git, base: str) -> str:
    """The first line is the title. One commit speaks for itself; of several each is an item."""
    for name in (base,) if base else BASES:
        if start := await git.commit_of(name):
            break
    else:
        raise UsageError("pr.no_base", base=base or ", ".join(BASES))
    start = await git("merge-base", start, "HEAD")
    text = await git("log", "--reverse", "--no-merges", "--format=%s%x1f%b%x1e", f"{start}..HEAD")
    commits = [tuple(one.strip("\n").split("\x1f")) for one in text.split("\x1e") if one.strip()]
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
