"""git: its subcommands as programs of their own, which of them only look, and what they run and throw away."""

import re
from collections.abc import Iterator
from dataclasses import replace

from duckflow.safety.commands.paths import Scene
from duckflow.safety.commands.readers import DIFF_OPTIONS, GIT_READERS, read_table
from duckflow.safety.commands.verdict import CommandFinding, ask, danger
from duckflow.safety.commands.words import Call, Word, names, read_options

REVISION = re.compile(r"^[\w@][\w./@~^-]*$")
"""`HEAD~2` and `main^` mean the same to git whatever shell passes them on."""
SECOND_WORDS = frozenset(name.split()[1] for name in GIT_READERS if name.count(" ") == 2)
COMPARING = frozenset(read_table(f"diff | {DIFF_OPTIONS.replace('0-9', '')} Lcmt")["diff"].options)
NOTHING = frozenset[str]()
RECORDED: dict[str, frozenset[str]] = {
    **dict.fromkeys(names("branch tag for-each-ref show-ref rev-parse merge-base remote config ls-tree"), NOTHING),
    **dict.fromkeys(names("cat-file grep check-ignore worktree"), NOTHING),
    **dict.fromkeys(names("log rev-list shortlog reflog"), COMPARING),
    "ls-files": names("-m --modified"),
    "describe": names("--dirty"),
}
"""Commands that read what is recorded, and the options with which they compare the contents of files. Without these
they start no program of the repository's, whatever its settings say: a free command's environment switches them off."""
OWN_HARMLESS = names("--no-pager -P --version -v --no-optional-locks --literal-pathspecs")
OWN_WITH_VALUE = names("--git-dir --work-tree --namespace --exec-path --config-env --attr-source")
SIGNED = re.compile(r"%G|signature")
RUNS_PROGRAMS = re.compile(
    r"alias\.|pager\.|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|sequence\.editor"
    r"|diff\.|credential\.|gpg\.|uploadpack\.|filter\.|merge\.|difftool\.|mergetool\.|browser\.|protocol\.|interactive\.",
    re.IGNORECASE,
)


def as_subcommand(call: Call) -> tuple[Call, tuple[tuple[str, str], ...]]:
    """`git -C x log -1` as a call of the program `git log`, and git's own options with their values."""
    own, words = list[tuple[str, str]](), list(call.arguments)
    while words and words[0].text.startswith("-"):
        text = words.pop(0).text
        name, equals, value = text.partition("=")
        if text[:2] in ("-C", "-c") and not text.startswith("--"):
            own.append((text[:2], text[2:] or (words.pop(0).text if words else "")))
        else:
            own.append((name, value if equals or name not in OWN_WITH_VALUE or not words else words.pop(0).text))
    names = [words.pop(0)] if words else []
    if names and words and names[0].text in SECOND_WORDS and f"git {names[0].text} {words[0].text}" in GIT_READERS:
        names.append(words.pop(0))
    title = " ".join(("git", *(name.text for name in names)))
    plain = all(name.literal for name in names) and call.words[0].text == "git"
    head = Word(title, call.words[0].known and plain, call.words[0].literal and plain)
    return replace(call, words=(head, *words)), tuple(own)


def doubt_git(call: Call, own: tuple[tuple[str, str], ...], scene: Scene) -> Iterator[CommandFinding]:
    """Even looking runs programs where the repository's settings say so, once contents are compared."""
    comparing = RECORDED.get(call.program.removeprefix("git ").partition(" ")[0])
    compares = comparing is None or read_options(call.arguments, "nSGUL").has(*comparing)
    if compares and scene.facts.git_runs_programs is None:
        yield ask("git_unchecked")
    elif compares and scene.facts.git_runs_programs:
        yield ask("git_runs_programs")
    if scene.place != "here":
        yield ask("git_elsewhere")
    for option, _ in own:
        if option not in OWN_HARMLESS:
            yield ask("option_changes", program="git", option=option)
    if any(SIGNED.search(text) for text in call.texts):
        yield ask("git_runs_programs")


def runs_by_git(call: Call, own: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Texts that git would hand to a shell: settings, and what comes after `foreach` and `run`."""
    settings = [tuple(value.split("=", 1)) for option, value in own if option == "-c"]
    if call.program == "git config" and len(call.plain_words) > 1:
        settings.append(call.plain_words[:2])
    yield from (pair[1].removeprefix("!") for pair in settings if len(pair) == 2 and RUNS_PROGRAMS.match(pair[0]))
    for place, text in enumerate(call.texts[:3]):
        if text in ("foreach", "run"):
            yield " ".join(call.texts[place + 1 :]).removeprefix("--recursive")


def throws_away(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """What the table of dangers cannot say: which operands are paths, and which branches are overwritten."""
    texts = call.texts
    if call.program == "git checkout":
        options = read_options(call.arguments, "bBU", ("--orphan", "--conflict", "--unified", "--inter-hunk-context"))
        words = [word.text for word in options.operands]
        paths_follow = "--" in texts and texts.index("--") < len(texts) - 1
        names_paths = len(words) > 1 or any(map(_looks_like_path, words))
        if paths_follow or (names_paths and not options.has("-b", "-B", "--orphan")):
            yield danger("git_discards", action="checkout")
    elif call.program == "git push":
        branches = [word.text for word in read_options(call.arguments, "o").operands[1:]]
        if any(branch.startswith("+") for branch in branches):
            yield danger("git_force_push")
        if any(re.match(":.", branch) for branch in branches):
            yield danger("git_deletes_remote")


def _looks_like_path(text: str) -> bool:
    return text in (".", "..", "*", ":/", ":/*") or text.startswith(("./", "../", ":")) or text.endswith("/")
