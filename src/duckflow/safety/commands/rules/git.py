"""git: what throws work away, rewrites history, or takes it from others."""

import re
from collections.abc import Callable, Iterator

from duckflow.safety.commands.git_call import GitCall, read_git
from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, RunsText
from duckflow.safety.commands.text.options import Options, read_options
from duckflow.safety.commands.verdict import CommandFinding, ask, danger

GitRule = Callable[[GitCall], Iterator[CommandFinding]]

RUNS_PROGRAMS = (
    ("alias.", "core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.hookspath", "core.askpass")
    + ("pager.", "sequence.editor", "diff.external", "credential.helper", "gpg.program", "uploadpack.", "filter.")
    + ("core.gitproxy", "merge.", "difftool.", "mergetool.", "browser.", "web.browser", "protocol.ext", "interactive.")
)
REMOVES_REMOTE = re.compile(r"^:.")
REMOTE_PROGRAMS = ("--upload-pack", "--receive-pack", "--exec")
OPTIONAL_VALUES = frozenset(("direct", "inherit", "on-demand", "checkout"))
"""Words that may follow `--track` and `--recurse-submodules` without being a path."""


def judge_git(call: Invocation) -> Iterator[Opinion]:
    git = read_git(call)
    for option, value in git.own:
        if option == "-c":
            yield from _judge_setting(*value.partition("=")[::2])
    if "--help" in git.texts or git.subcommand == "help":
        return
    rule = RULES.get(git.subcommand)
    if rule:
        yield from rule(git)
    yield from _runs(git)


def _judge_setting(name: str, value: str) -> Iterator[Opinion]:
    if name.lower().startswith(RUNS_PROGRAMS):
        yield ask("git_setting", name=name)
        if value:
            yield RunsText(value.removeprefix("!"))


def _runs(git: GitCall) -> Iterator[Opinion]:
    """Commands that git itself would run."""
    texts = git.texts
    match git.subcommand:
        case "submodule" if "foreach" in texts:
            yield RunsText(" ".join(text for text in texts[texts.index("foreach") + 1 :] if not text.startswith("--")))
        case "bisect" if texts[:1] == ("run",):
            yield RunsText(" ".join(texts[1:]))
        case "rebase":
            for value in read_options(git.arguments, "xsXC", ("--exec",)).values("-x", "--exec"):
                yield RunsText(value.text)
        case "filter-branch":
            for value in texts:
                yield RunsText(value)
        case "config":
            words = [text for text in texts if not text.startswith("-")]
            if len(words) > 1:
                yield from _judge_setting(words[0], words[1])
        case "clone" | "fetch" | "pull" | "ls-remote" | "archive" | "push":
            options = read_options(git.arguments, "u" if git.subcommand == "clone" else "", REMOTE_PROGRAMS)
            for value in options.values("-u", *REMOTE_PROGRAMS):
                yield RunsText(value.text)
            for word in git.arguments:
                if word.text.startswith("ext::"):
                    yield RunsText(word.text.removeprefix("ext::").replace("% ", "\\ "))
        case _:
            pass


def _options(git: GitCall, with_value: str = "", long_with_value: tuple[str, ...] = ()) -> Options:
    return read_options(git.arguments, with_value, long_with_value)


def _checkout(git: GitCall) -> Iterator[CommandFinding]:
    """Switching branches keeps work; naming paths or using force throws it away."""
    options = _options(
        git, "bBU", ("--orphan", "--conflict", "--pathspec-from-file", "--unified", "--inter-hunk-context")
    )
    texts = git.texts
    paths_follow = "--" in texts and texts.index("--") < len(texts) - 1
    makes_branch = options.has("-b", "-B", "--orphan")
    operands = [word.text for word in options.operands if word.text not in OPTIONAL_VALUES or word.text == texts[-1]]
    forced = options.has("-f", "--force", "--pathspec-from-file", "--ours", "--theirs") or paths_follow
    names_paths = len(operands) > 1 or any(_looks_like_path(text) for text in operands)
    if forced or (names_paths and not makes_branch):
        yield danger("git_discards", action="checkout")


def _looks_like_path(text: str) -> bool:
    return text in (".", "..", "*", ":/", ":/*") or text.startswith(("./", "../", ":")) or text.endswith("/")


def _switch(git: GitCall) -> Iterator[CommandFinding]:
    if _options(git, "cC", ("--orphan", "--conflict")).has("-f", "--force", "--discard-changes"):
        yield danger("git_discards", action="switch")


def _restore(git: GitCall) -> Iterator[CommandFinding]:
    """Only taking back `git add` keeps the files as they are."""
    options = _options(git, "s", ("--source", "--conflict", "--pathspec-from-file"))
    if not options.has("-S", "--staged") or options.has("-W", "--worktree"):
        yield danger("git_discards", action="restore")


def _reset(git: GitCall) -> Iterator[CommandFinding]:
    if _options(git).has("--hard", "--merge") or any(text.lower() == "--hard" for text in git.texts):
        yield danger("git_discards", action="reset")


def _clean(git: GitCall) -> Iterator[CommandFinding]:
    options = _options(git, "e", ("--exclude",))
    if options.has("-f", "--force") and not options.has("-n", "--dry-run"):
        yield danger("git_deletes_untracked")


def _push(git: GitCall) -> Iterator[CommandFinding]:
    options = _options(git, "o", ("--push-option", "--repo", "--receive-pack", "--exec"))
    if options.has("-n", "--dry-run"):
        return
    exact = {option for option, _ in options.given}
    if exact & {"-f", "--force", "--mirror", "--prune"}:
        yield danger("git_force_push")
    if any(word.text.startswith("+") for word in options.operands[1:]):
        yield danger("git_force_push")
    if options.has("-d", "--delete") or any(REMOVES_REMOTE.match(word.text) for word in options.operands[1:]):
        yield danger("git_deletes_remote")


def _branch(git: GitCall) -> Iterator[CommandFinding]:
    options = _options(git, "u", ("--set-upstream-to",))
    forced = options.has("-f", "--force")
    if options.has("-D") or (options.has("-d", "--delete") and forced):
        yield danger("git_deletes", what="branch")
    elif forced or (options.has("-C", "-M") and len(options.operands) > 1):
        yield danger("git_rewrites", action="branch --force")


def _stash(git: GitCall) -> Iterator[CommandFinding]:
    if git.texts[:1] in (("drop",), ("clear",)):
        yield danger("git_deletes", what="stash")


def _worktree(git: GitCall) -> Iterator[CommandFinding]:
    if git.texts[:1] == ("remove",) and _options(git).has("-f", "--force"):
        yield danger("git_deletes", what="worktree")


def _reflog(git: GitCall) -> Iterator[CommandFinding]:
    if git.texts[:1] in (("expire",), ("delete",), ("drop",)):
        yield danger("git_deletes", what="reflog")


def _gc(git: GitCall) -> Iterator[CommandFinding]:
    prunes = git.subcommand == "prune" or any(text.startswith("--prune") for text in git.texts)
    if prunes and "--prune=never" not in git.texts and not _options(git).has("-n", "--dry-run"):
        yield danger("git_deletes", what="objects")


def _rewrites(git: GitCall) -> Iterator[CommandFinding]:
    yield danger("git_rewrites", action=git.subcommand)


def _update_ref(git: GitCall) -> Iterator[CommandFinding]:
    if _options(git).has("-d", "--delete", "--stdin"):
        yield danger("git_deletes", what="ref")


def _rm(git: GitCall) -> Iterator[CommandFinding]:
    options = _options(git)
    if options.has("-n", "--dry-run", "--cached"):
        return
    everything = options.has("-r") and any(_looks_like_path(word.text) for word in options.operands)
    if options.has("-f", "--force") or everything:
        yield danger("git_discards", action="rm")


def _submodule(git: GitCall) -> Iterator[CommandFinding]:
    if git.texts[:1] == ("deinit",) and _options(git).has("-f", "--force", "--all"):
        yield danger("git_discards", action="submodule deinit")


def _read_tree(git: GitCall) -> Iterator[CommandFinding]:
    options = _options(git)
    if options.has("-u", "--reset") or (git.subcommand == "checkout-index" and options.has("-f", "--force")):
        yield danger("git_discards", action=git.subcommand)


def _tag(git: GitCall) -> Iterator[CommandFinding]:
    options = _options(git, "mFu", ("--message", "--file", "--local-user"))
    if options.has("-d", "--delete"):
        yield danger("git_deletes", what="tag")


def _remote(git: GitCall) -> Iterator[CommandFinding]:
    if git.texts[:1] in (("remove",), ("rm",), ("prune",)):
        yield danger("git_deletes", what="remote")


RULES: dict[str, GitRule] = {
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "reset": _reset,
    "clean": _clean,
    "push": _push,
    "branch": _branch,
    "stash": _stash,
    "worktree": _worktree,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _gc,
    "filter-branch": _rewrites,
    "filter-repo": _rewrites,
    "update-ref": _update_ref,
    "rm": _rm,
    "submodule": _submodule,
    "read-tree": _read_tree,
    "checkout-index": _read_tree,
    "tag": _tag,
    "remote": _remote,
}
