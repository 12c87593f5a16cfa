"""git calls that only read the repository."""

import re

from duckflow.safety.commands.git_call import GitCall
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.text.words import Word

REVISION = re.compile(r"^[\w@][\w./@~^-]*$")
OWN_OPTIONS = frozenset(("--no-pager", "-P", "--version", "-v", "--no-optional-locks", "--literal-pathspecs"))
NEVER = ("--output", "--ext-diff", "--textconv", "--exec", "--open-files-in-pager", "--upload-pack", "--no-index") + (
    ("--filters", "--show-signature", "--edit", "--replace-all", "--unset", "--unset-all", "--add")
)
LOOKING = frozenset(
    ("status", "log", "diff", "show", "rev-parse", "ls-files", "ls-tree", "cat-file", "describe", "shortlog", "blame")
    + ("annotate", "grep", "merge-base", "rev-list", "name-rev", "for-each-ref", "show-ref", "diff-tree", "diff-index")
    + ("diff-files", "check-ignore", "check-attr", "count-objects", "whatchanged", "range-diff", "cherry", "version")
    + ("show-branch", "var")
)
LISTING: dict[str, frozenset[str]] = {
    "branch": frozenset(
        ("-a", "--all", "-r", "--remotes", "-v", "--verbose", "--list", "-l", "--show-current", "--merged", "-i")
        + ("--no-merged", "--contains", "--no-contains", "--sort", "--format", "--color", "--no-color", "--points-at")
        + ("--column", "--no-column", "--ignore-case", "-q", "--quiet", "--abbrev", "--no-abbrev")
    ),
    "tag": frozenset(("-l", "--list", "-n", "--sort", "--contains", "--points-at", "--merged", "--format", "--column")),
    "remote": frozenset(("-v", "--verbose")),
}
"""Subcommands that list with these options, and change something with others or with a name."""
SUBWORDS: dict[str, frozenset[str]] = {
    "stash": frozenset(("list", "show")),
    "reflog": frozenset(("show", "exists")),
    "remote": frozenset(("get-url",)),
    "worktree": frozenset(("list",)),
    "notes": frozenset(("list", "show")),
    "bisect": frozenset(("log",)),
    "config": frozenset(("--get", "--get-all", "--list", "-l", "--get-regexp", "get", "list")),
    "submodule": frozenset(("status",)),
}
BARE = frozenset(("reflog", "branch", "tag", "remote"))
NAMES_WHAT_TO_LIST = frozenset(
    ("-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
)


def git_only_reads(git: GitCall) -> bool:
    """git's own options, the subcommand, and its options are all known to be harmless."""
    if any(option not in OWN_OPTIONS for option, _ in git.own):
        return False
    if not git.subcommand:
        return bool(git.own)
    options = read_options(git.arguments)
    if options.has(*NEVER) or (git.subcommand == "grep" and options.has("-O")):
        return False
    if git.subcommand in LOOKING:
        return True
    if not git.arguments:
        return git.subcommand in BARE
    if git.texts[0] in SUBWORDS.get(git.subcommand, ()):
        return True
    given = {option for option, _ in options.given}
    if git.subcommand in LISTING and given <= LISTING[git.subcommand]:
        return not options.operands or not NAMES_WHAT_TO_LIST.isdisjoint(given)
    return False


def is_revision(word: Word) -> bool:
    """`HEAD~2` and `main^` mean the same to git whatever shell passes them on."""
    return word.known and bool(REVISION.match(word.text))
