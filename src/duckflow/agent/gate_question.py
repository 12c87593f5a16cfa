"""Makes the question at a Gate (before risky actions): what would be done, which of its effects neither undo nor the
sandbox can take back, and what may be answered. The mode `auto` asks only about such lasting effects."""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from duckflow.agent.permissions import CODE, Permission
from duckflow.safety.ignore_rules import CACHE, MADE_ANEW, IgnoredPaths, made_anew
from duckflow.safety.path_names import shown
from duckflow.safety.repository import find_repository
from duckflow.safety.risk import RUNS_CODE, Assessment, Deed, JudgedCommand, highest, runs_later
from duckflow.safety.secrets import secret_name
from duckflow.safety.undo.tree import upwards
from duckflow.state.action import RESPOND, Action, Decision
from duckflow.state.data import Phrase, say
from duckflow.state.question import GATE_KEYS, Choice, GateRequest, Preview, Question

GIT = r"(?i)(?<![\w.-])(?:git|gh|hub|jj)(?![\w.-])|\.git(?![\w.-])"
ELSEWHERE = r"(?i)(?<![\w.-])(?:gh|hub|jj|push|send-pack|lfs|annex)(?![\w.-])"
"""Matches what undo does not bring back although git is named: other servers, and large files that lie beside git's
own objects."""
GIT_RECORDS = frozenset(("add", "commit", "tag", "branch", "notes", "fetch", "rm", "mv", "gc", "repack"))
"""Subcommands of git that change no files of the folder, or only files that the command names."""
Scope = Literal["session", "always"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
COMMITS = frozenset(("add", "commit", "diff", "log", "show", "status"))
"""Subcommands of git that make a commit, and those that show what came of it."""
MOST_WORDS = 500
"""The number of plain words in a command that are looked at even if they name no file yet."""
MOST_LETTERS = 8
MOST_LOOKED_AT = 20_000
MAY_TOUCH_ALL = RUNS_CODE | {"harm.unknown_program", "harm.option_unknown", "harm.expands"}
"""Reasons why a command may change files that it does not name. An unknown option may hold or name orders (`sed -i`,
`sed -f`), or form the name of a file that is written (`sed -i.bak`)."""
HARMS_FILES = frozenset(
    f"harm.{key}"
    for key in ("deletes_tree", "deletes_broad", "deletes_found", "empties", "mirror_deletes", "git_deletes")
    + ("git_deletes_untracked", "git_discards", "git_rewrites", "opens_to_all")
)
"""Dangers that concern only files of a folder, which undo can bring back. It cannot take back what other dangers do."""
READS = frozenset(("harm.reads_secret", "harm.reads_outside", "harm.reads_elsewhere", "harm.shows_environment"))


def what_lasts(deed: Deed, command: str, goes_on: bool, folder: Path) -> Iterator[Phrase]:
    """Yields the effects of an action that cannot be undone. A command has such an effect if it names a file that git
    ignores, or if it still runs when the action is over (`goes_on`)."""
    if deed.effect == "network" or (deed.command and deed.command.online):
        yield say("lasting.network")
    if re.search(GIT, command) and not _history_comes_back(deed, command, folder):
        yield say("lasting.git")
    for impact in deed.impacts:
        # Paths in a folder that the user has added are absolute, and undo does not reach there.
        if not impact.inside or impact.path.startswith("/"):
            yield say("lasting.outside", path=impact.path)
    if deed.command and not deed.command.sandboxed:
        yield say("lasting.no_sandbox")
    if deed.command and _goes_beyond(deed.command) and not only_reads(deed, command):
        yield say("lasting.beyond")
    if goes_on:
        yield say("lasting.background")
    is_tool_run = deed.command is not None and deed.command.tools
    if command and not is_tool_run and (path := _ignored_in(command, folder)):
        yield say("lasting.ignored", path=shown(path))


def only_reads(deed: Deed, command: str) -> bool:
    """Says whether there is nothing to undo: the action only reads, or the command's only risk is what it reads."""
    keys = {reason.key for reason in deed.command.reasons} if deed.command else set[str]()
    return (deed.effect == "read" and not command) or bool(keys & READS and keys <= READS | {"harm.expands"})


def _goes_beyond(command: JudgedCommand) -> bool:
    """Says whether a command may harm more than the files of the work folder: it names something else, or is dangerous
    in another way."""
    keys = {reason.key for reason in command.reasons}
    return command.leaves or (command.verdict == "dangerous" and (not keys & HARMS_FILES or "harm.expands" in keys))


def _history_comes_back(deed: Deed, command: str, folder: Path) -> bool:
    """Says whether undo can bring back git's history. It can do so only in the work folder's own repository, and only
    if the sandbox protects git's pack files, of which undo keeps no copy."""
    git_folder = folder / ".git"
    has_own_history = git_folder.is_dir() and not git_folder.is_symlink()
    return (
        has_own_history and deed.command is not None and deed.command.spares_packs and not re.search(ELSEWHERE, command)
    )


def _ignored_in(command: str, folder: Path) -> str:
    """Returns a path in the command that git ignores. Undo keeps such a file only if Duckflow's own tools
    change it."""
    from duckflow.safety.commands.handed_over import LOOKS_LIKE_CODE, named_words

    words = dict.fromkeys(part for word in named_words(command) for part in (word, word.partition("=")[2]) if part)
    plain_words = [word for word in words if not LOOKS_LIKE_CODE.search(word)][:MOST_WORDS]
    ignored_paths = IgnoredPaths(folder) if words else None
    for word_part in (*plain_words, *(word for word in words if _exists(folder / word))):
        path = os.path.relpath(folder / word_part, folder)
        is_inside_folder = path != "." and not path.startswith(("-", "../", "~", "$"))
        if ignored_paths and is_inside_folder and ignored_paths.ignores_file(path):
            return path
    return ""


def may_lose(deed: Deed, command: str, folder: Path, unkept: Collection[str] | None) -> bool:
    """Says whether an action could lose a file that undo does not keep. A command that names only plain files, or runs
    the project's own tools, can lose only files that it names; any other command can lose every file. `unkept` are the
    files and folders that undo could not bring back although git does not ignore them; for a file tool only those that
    it touches. None means that undo keeps no files at all."""
    from duckflow.safety.commands.handed_over import named_words

    if unkept is None:
        return True
    if deed.command is None:
        return bool(unkept)
    ignored_paths = IgnoredPaths(folder)
    words = dict.fromkeys(named_words(command))
    values = {value for word in words for value in _values(word)}
    paths = [folder / word for word in (*words, *values) if word and not word.startswith("-")]
    if any(_is_file(path) and _is_unkept(path, ignored_paths, folder, unkept) for path in paths):
        return True
    if any(_is_folder(folder / value) and _is_ignored_folder(folder, value, ignored_paths) for value in values):
        return True
    runs_code = any(reason.key in MAY_TOUCH_ALL for reason in deed.command.reasons)
    says_all = not runs_code and not set("*?[{$`") & set(command) and not any(map(_is_folder, paths))
    says_all = says_all and not _git_changes_more(command, folder)
    # Only bubblewrap keeps commands from changing secret files.
    lost_secrets = not deed.command.spares_packs
    return not deed.command.tools and not says_all and _holds_unkept(folder, ignored_paths, unkept, lost_secrets)


def _values(word: str) -> Iterator[str]:
    """Yields the parts of a word that may be a value: after `=` or `:` (`--cov-report=xml:file`), or directly after the
    letters of an option (`-ofile`)."""
    yield from (value for mark in "=:" if (value := word.partition(mark)[2]))
    if word.startswith("-") and not word.startswith("--"):
        yield from (word[letters:] for letters in range(2, min(len(word), MOST_LETTERS)))


def _is_file(path: Path) -> bool:
    """Says whether there is a file with this path. A word of a command may be too long for the name of any file."""
    with contextlib.suppress(OSError):
        return path.is_file()
    return False


def _is_folder(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.is_dir()
    return False


def _exists(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.exists()
    return False


def _is_ignored_folder(folder: Path, path: str, ignored: IgnoredPaths) -> bool:
    """Says whether git ignores this folder, and it holds more than what tools can make again."""
    relative_path = os.path.relpath(folder / path, folder)
    return not relative_path.startswith("..") and not made_anew(relative_path) and ignored.ignores_file(relative_path)


def _git_changes_more(command: str, folder: Path, harmless: Collection[str] = GIT_RECORDS) -> bool:
    """Says whether the command may make git do more than the harmless subcommands do, which change no files but those
    that they name: a checkout silently overwrites ignored files, and hooks may do anything. The answer is also yes if
    git is called by another program or in another place, because nothing is known about such a call."""
    from duckflow.safety.commands.parse import parse
    from duckflow.safety.commands.services import as_subcommand
    from duckflow.safety.commands.verdict import TooMuch
    from duckflow.safety.started_files import programs_of

    try:
        calls = parse(command).calls
    except TooMuch:
        return True
    git_calls = [as_subcommand(call) for call in calls if call.program == "git"]
    is_git_wrapped = any(text.rpartition("/")[2] == "git" for call in calls for text in call.texts)
    is_git_elsewhere = bool(git_calls) and any(call.program == "cd" or call.assignments for call in calls)
    if is_git_wrapped or is_git_elsewhere or any(options for _, options in git_calls):
        return True
    if any(call.program.removeprefix("git ") not in harmless for call, _ in git_calls):
        return True
    repository = find_repository(folder) if git_calls else None
    return repository is not None and (repository.runs_programs() or bool(programs_of(repository)))


def only_commits(deed: Deed, command: str, folder: Path) -> bool:
    """Says whether the command only adds to git's history, in the sandbox and in the work folder's own repository."""
    judged_command = deed.command
    if judged_command is None or {reason.key for reason in judged_command.reasons} != {"harm.git_changes"}:
        return False
    is_local = judged_command.shut_in and not judged_command.leaves
    return is_local and not _git_changes_more(command, folder, COMMITS) and _history_comes_back(deed, command, folder)


def _holds_unkept(folder: Path, ignored: IgnoredPaths, unkept: Collection[str], secrets: bool) -> bool:
    """Says whether the folder holds a file that undo does not keep: an ignored file, or one in `unkept`. Secret files
    count only with `secrets`."""
    if any(not made_anew(path) and not _loses_nothing(folder / path) for path in unkept):
        return True
    entries_seen = 0
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git" and not MADE_ANEW.fullmatch(name)]
        entries_seen += len(files) + len(folders)
        paths = (Path(top, name) for name in files)
        if entries_seen > MOST_LOOKED_AT or any(_is_unkept(path, ignored, folder, unkept, secrets) for path in paths):
            return True
    return False


def _loses_nothing(path: Path) -> bool:
    """Says whether this is a folder without a file in it, or one of another user that is shut to everybody else."""
    if not _is_folder(path) or not os.access(path, os.R_OK | os.X_OK):
        return _is_folder(path) and path.lstat().st_uid != os.geteuid() and not os.access(path, os.W_OK)
    return not any(files for _, _, files in os.walk(path))


def _is_unkept(path: Path, ignored: IgnoredPaths, folder: Path, unkept: Collection[str], secrets: bool = False) -> bool:
    """Says whether undo could not bring back this file. Files that tools can make again do not count. Secret files
    count only with `secrets`, because they are mostly protected in another way. A link counts as its target."""
    try:
        path = path.resolve()
        file_status = path.lstat()
        relative_path = path.relative_to(folder.resolve()).as_posix()
    except (OSError, ValueError):
        return False
    if (
        MADE_ANEW.fullmatch(path.name)
        or CACHE.search(relative_path)
        or (not secrets and secret_name(relative_path))
        or not stat.S_ISREG(file_status.st_mode)
    ):
        return False
    return any(place in unkept for place in upwards(relative_path)) or ignored.ignores_file(relative_path)


def runs_later_by(command: str, folder: Path) -> bool:
    """Says whether the command names a file to write that may make code run by itself later."""
    from duckflow.safety.commands.parse import named_targets

    names = [path.removeprefix(f"{folder}/") for path in named_targets(command, folder)]
    return any(runs_later(name, not os.path.lexists(folder / name), folder) for name in names)


class RiskyAction(NamedTuple):
    """One action that the user must allow."""

    action: Action
    preview: Preview
    assessment: Assessment
    rule: Permission | None = None
    rule_for_good: Permission | None = None
    """The rule that a yes for good sets up. Code that is not looked into is never allowed for good, but one command."""
    editable: str = ""
    """The text that the user may edit before the action runs, or nothing."""
    command: str = ""
    lasting: tuple[Phrase, ...] = ()
    """Effects of the action that cannot be undone."""
    only_reads: bool = False

    @property
    def asks_beyond(self) -> bool:
        """Says whether the user is asked because the action may change more than the limit of an earlier yes."""
        return any(reason.key == "risk.limited" for reason in self.assessment.reasons)

    def offered(self, scope: Scope) -> Permission | None:
        return self.rule_for_good if scope == "always" else self.rule

    def only_touches(self, paths: Sequence[str]) -> bool:
        """Says whether the action does nothing but change some of these files, or is one of these commands."""
        changed_paths = [impact.path for impact in self.preview.impacts]
        return self.preview.diff in paths if self.command else bool(changed_paths) and {*changed_paths} <= {*paths}


def gate_question(
    risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, tracked: frozenset[str], reversible: bool
) -> Question:
    """Returns the question. Intent, rationale and alternatives come from the model; impact, risk and diff are
    computed."""
    impacts = [impact for risky_action in risky for impact in risky_action.preview.impacts]
    commands = tuple(risky_action.preview.diff for risky_action in risky if risky_action.command)
    diffs = [
        risky_action.preview.diff for risky_action in risky if risky_action.preview.diff and not risky_action.command
    ]
    lasting_effects = tuple(dict.fromkeys(reason for risky_action in risky for reason in risky_action.lasting))
    reasons = dict.fromkeys(risky_action.action.reasoning for risky_action in risky)
    asked_ids = {risky_action.action.action_id for risky_action in risky}
    other_actions = [
        action for action in decision.actions if action.action_id not in asked_ids and action.operation != RESPOND
    ]
    # The rationale is for the whole reply. It is shown if the reply is about these actions alone, and if it says more
    # than their own reasons.
    is_repeated = decision.rationale in reasons or reasons.keys() >= set(decision.rationale.split("; "))
    is_repeated |= all(reason in decision.rationale for reason in reasons)
    single_action = risky[0] if len(risky) == 1 else None
    changes = not all(risky_action.only_reads for risky_action in risky)
    request = GateRequest(
        action_ids=tuple(risky_action.action.action_id for risky_action in risky),
        operations=tuple(risky_action.action.operation for risky_action in risky),
        intent=tuple(dict.fromkeys(why for risky_action in risky if (why := risky_action.action.why))),
        rationale=decision.rationale if not (is_repeated or other_actions) else "",
        alternatives=(decision.alternative,) if decision.alternative else (),
        impacts=tuple(impact.model_copy(update={"tracked": impact.path in tracked}) for impact in impacts),
        commands=commands,
        diff="\n".join([*commands, *diffs]),
        risk=highest([risky_action.assessment.level for risky_action in risky]),
        reasons=tuple(dict.fromkeys(reason for risky_action in risky for reason in risky_action.assessment.reasons)),
        doubtful=doubtful,
        always=any(
            risky_action.assessment.always_ask or risky_action.assessment.level == "forbidden" for risky_action in risky
        ),
        reversible=reversible and changes and not lasting_effects,
        lasting=lasting_effects if reversible or not changes else (say("lasting.off"),),
        editable=single_action.editable if single_action else "",
    )
    choices = _choices(risky, request)
    return Question(kind="gate", title=say("gate.title"), gate=request, choices=choices, on_record=True)


def _choices(risky: Sequence[RiskyAction], request: GateRequest) -> tuple[Choice, ...]:
    """Returns the possible answers. An action that must always be asked about can only be allowed once."""
    labels = {"yes": say("gate.yes"), "no": say("gate.no")}
    for scope in SCOPES:
        rules = rules_offered(risky, scope)
        if rules and all(risky_action.offered(scope) in rules for risky_action in risky):
            labels[scope] = _scope_label(scope, rules)
    if request.editable:
        labels["edit"] = say("gate.edit_it")
    return tuple(Choice(key=key, label=label, number=GATE_KEYS.index(key) + 1) for key, label in labels.items())


def rules_offered(risky: Sequence[RiskyAction], scope: Scope) -> list[Permission]:
    """Returns the rules that a yes "for the session" or "always" may set up, without repetitions."""
    offers = [risky_action.offered(scope) for risky_action in risky if not risky_action.assessment.always_ask]
    return list(dict.fromkeys(filter(None, offers)))


def covered(risky_action: RiskyAction, rules: Sequence[Permission]) -> bool:
    """Says whether the user who set up these rules has thereby allowed this action too."""
    operation, impacts = risky_action.action.operation, risky_action.preview.impacts
    is_offered = risky_action.rule in rules or risky_action.rule_for_good in rules
    return is_offered or any(rule.covers(operation, impacts, risky_action.command) for rule in rules)


def _scope_label(scope: str, rules: Sequence[Permission]) -> Phrase:
    """Returns the label of an answer that allows more than these actions. Rules of one sort share one label."""
    names = {sort: ", ".join(rule.told for rule in rules if rule.sort == sort) for sort in ("edits", "tool", CODE, "")}
    if names["edits"] and names["tool"] and not (names[CODE] or names[""]):
        return say(f"gate.{scope}_edits_tool", pattern=names["edits"], tool=names["tool"])
    sort = rules[0].sort
    if len(rules) > 1 and not (sort and all(rule.sort == sort for rule in rules)):
        return say(f"gate.{scope}_several", rules="; ".join(rule.shown() for rule in rules))
    return say(f"gate.{scope}_{sort}" if sort else f"gate.{scope}", operation=rules[0].operation, pattern=names[sort])


def habit_of(risky: Sequence[RiskyAction], question: Question) -> Permission | None:
    """Returns the rule for which a yes to this question is counted; after several yeses Duckflow offers that rule. It
    is the only rule that the question offers, if the risk is medium at most; otherwise None."""
    rules = rules_offered(risky, "always") if any(choice.key == "always" for choice in question.choices) else []
    return rules[0] if len(rules) == 1 and question.gate and question.gate.risk in ("low", "medium") else None
