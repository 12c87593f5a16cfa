"""git calls that only read the repository."""

import re

from duckflow.safety.commands.git_call import GitCall
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.text.words import Word

REVISION = re.compile(r"^[\w@][\w./@~^-]*$")
OWN_OPTIONS = frozenset(("--no-pager", "-P", "--version", "-v", "--no-optional-locks", "--literal-pathspecs"))
NEVER = ("--output", "--ext-diff", "--textconv", "--exec", "--open-files-in-pager", "--upload-pack", "--no-index") + (
    "--filters",
    "--show-signature",
)
LOOKING = frozenset(
    ("status", "log", "diff", "show", "rev-parse", "ls-files", "ls-tree", "cat-file", "describe", "shortlog", "blame")
    + ("annotate", "grep", "merge-base", "rev-list", "name-rev", "for-each-ref", "show-ref", "diff-tree", "diff-index")
    + ("diff-files", "check-ignore", "check-attr", "count-objects", "whatchanged", "range-diff", "cherry", "version")
    + ("show-branch", "var")
)
LISTING: dict[str, tuple[frozenset[str], bool]] = {
    "branch": (
        frozenset(
            ("-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "--list", "-l", "--show-current", "--merged")
        )
        | frozenset(
            ("--no-merged", "--contains", "--no-contains", "--sort", "--format", "--color", "--no-color", "--points-at")
        )
        | frozenset(("--column", "--no-column", "-i", "--ignore-case", "-q", "--quiet", "--abbrev", "--no-abbrev")),
        False,
    ),
    "tag": (
        frozenset(("-l", "--list", "-n", "--sort", "--contains", "--points-at", "--merged", "--format", "--column")),
        False,
    ),
    "remote": (frozenset(("-v", "--verbose")), False),
}
SUBWORDS: dict[str, frozenset[str]] = {
    "stash": frozenset(("list", "show")),
    "reflog": frozenset(("show", "exists")),
    "remote": frozenset(("get-url",)),
    "worktree": frozenset(("list",)),
    "notes": frozenset(("list", "show")),
    "bisect": frozenset(("log",)),
    "config": frozenset(("--get", "--get-all", "--list", "-l", "--get-regexp", "get", "list")),
    "submodule": frozenset(("status",)),
    "lfs": frozenset(("ls-files", "status")),
}
BARE = frozenset(("reflog", "branch", "tag", "remote"))
LISTS_WITH_OPERAND = frozenset(
    ("-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
)
MUST_NOT_OPEN = re.compile(r"^-O")


def git_only_reads(git: GitCall) -> bool:
    """git's own options, the subcommand, and its options are all known to be harmless."""
    if any(option not in OWN_OPTIONS for option, _ in git.own):
        return False
    if not git.subcommand:
        return bool(git.own)
    options = read_options(git.arguments)
    given = [option for option, _ in options.given]
    if any(options.has(name) for name in NEVER) or (
        git.subcommand == "grep" and any(map(MUST_NOT_OPEN.match, git.texts))
    ):
        return False
    if git.subcommand in LOOKING:
        return True
    if not git.arguments:
        return git.subcommand in BARE
    if git.subcommand in SUBWORDS and git.texts[0] in SUBWORDS[git.subcommand]:
        return git.subcommand != "config" or not {"--replace-all", "--unset", "--add"} & set(given)
    if git.subcommand in LISTING:
        allowed, _ = LISTING[git.subcommand]
        harmless = all(option in allowed for option in given)
        return harmless and (not options.operands or not LISTS_WITH_OPERAND.isdisjoint(given))
    return False


def is_revision(word: Word) -> bool:
    """`HEAD~2` and `main^` mean the same to git whatever shell passes them on."""
    return word.known and bool(REVISION.match(word.text))
