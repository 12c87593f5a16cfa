"""Whether a step is done: what its own criterion names, held against the record and the work folder."""

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence

from duckflow.state.action import Evidence
from duckflow.state.agent import AgentState
from duckflow.state.plan import Step
from duckflow.tools.plan.criterion import NamedThing, named_in
from duckflow.tools.plan.folder import command_for_tests, made_by
from duckflow.tools.plan.ports import Folder

SHOWN_FILES = 6
OPERATORS = ";&|()\n"
SETTING_UP = ("cd", "export", "set", "source", ".", "mkdir")
"""What goes before a command without being what is tried."""
REDIRECTED = r"\s\d?>&\d|\s(?:\d|&)?>{1,2}\s*[^\s;&|]+"
LOOKS = (
    *("true", "pwd", "ls", "cat", "head", "tail", "less", "more", "grep", "rg", "find", "wc", "stat", "file", "echo"),
    *("printf", "git", "sed", "awk", "diff", "tree", "which", "sleep", "date"),
)
"""Programs that try nothing out."""
ONLY_SHOWS = ("tail", "head", "tee", "cat", "less", "more")
SHOWING = r"-[qvxs]+|-r\w+|--(?:tb=\w+|quiet|verbose|no-header|color=\w+)"
"""Options of test runners that leave nothing out."""
RUNNERS = (
    r"(?:\w+=\S*|env|time|nice|timeout(?: -\S+)* \S+|(?:uv|poetry|pipenv) run|npx|(?:\S*/)?python3?(?: -[BPu])* -m) "
)
"""What a program is called through."""


def proof(state: AgentState, step: Step, folder: Folder) -> str:
    """What shows it, newer than the last change it concerns; nothing when something of it is not shown.

    What its criterion names must be there, and have ended as it says: the exit code of something else shows nothing.
    Where it names nothing, a command counts that was the step's own task, runs a file of the step, or runs the tests.
    A step without any criterion is shown by the files that it was to make, too."""
    if wanted := named_in(step.success):
        made = [*made_by(step), *state.files_changed]
        shown = [show(one, state.evidence, folder, made) for one in wanted]
        return "; ".join(dict.fromkeys(shown)) if all(shown) else ""
    files = made_by(step) or [path for path in state.files_changed if path in f"{step.description} {step.success}"]
    own = [one for one in state.evidence if _is_own(one, step, files or state.files_changed, folder)]
    if own:
        return own[-1].text if own[-1].ok else ""
    runs = any(task.effect == "run" for task in step.tasks)
    return "" if step.success.strip() or runs or not files or not all(map(folder.exists, files)) else _there(files)


def lacking(state: AgentState, step: Step, folder: Folder) -> str:
    """What its criterion names and nothing shows."""
    made = [*made_by(step), *state.files_changed]
    return ", ".join(one.told() for one in named_in(step.success) if not show(one, state.evidence, folder, made))


def refuted(step: Step, found: Evidence | None, changed: Sequence[str], folder: Folder) -> str:
    """The result that speaks against what has shown a step; nothing when there is none. `changed`: the files that are
    no longer as they were."""
    if found and not found.ok and f"{found.text.rpartition(': exit code')[0]}: exit code" in step.evidence:
        return found.text
    for one in named_in(step.success):
        if one.kind == "command" and found and speaks(found, one) is False:
            return found.text
        touched = any(path == one.name or path.endswith(f"/{one.name}") for path in changed)
        if one.kind != "command" and touched and not show(one, (), folder, changed):
            return one.told()
    return ""


def show(wanted: NamedThing, record: Sequence[Evidence], folder: Folder, made: Iterable[str] = ()) -> str:
    """What shows one thing that a criterion names. `made`: files that may be meant where only their name is given."""
    if wanted.kind == "command":
        return next(
            (one.text if said else "" for one in reversed(record) if (said := speaks(one, wanted)) is not None),
            _by_all_tests(wanted, record, folder),
        )
    places = [wanted.name, *(path for path in made if path.endswith(f"/{wanted.name}"))]
    there = next((path for path in places if folder.exists(path)), "")
    if wanted.kind == "gone":
        return "" if there else f"gone: {wanted.name}"
    if not there or _failed_with(there, record):
        return ""
    if not wanted.texts and not wanted.absent:
        return _there([there])
    return f"in {there}: {_texts(wanted)}" if holds(folder.text(there), wanted) else ""


def _by_all_tests(wanted: NamedThing, record: Sequence[Evidence], folder: Folder) -> str:
    """A run of all the project's tests shows a run of some of its test files, where these are there."""
    some, tests = _called(wanted.name.split()), _called(command_for_tests(folder).split())
    files = [word.partition("::")[0] for word in some if word not in tests and not re.fullmatch(SHOWING, word)]
    known = files and all("test" in name.rpartition("/")[2] and folder.exists(name) for name in files)
    if not tests or some[:1] != tests[:1] or not known or wanted.code != "0" or wanted.texts or wanted.absent:
        return ""
    whole = NamedThing("command", tests[0])
    return next((one.text for one in reversed(record) if speaks(one, whole) and _has_only(one.command, tests)), "")


def _has_only(command: str, words: Sequence[str]) -> bool:
    """Whether every call of the program chooses nothing: it has only these words, and options about what is shown."""
    calls = [_called(part) for _, part in _parts(command)]
    return all(word in words or re.fullmatch(SHOWING, word) for call in calls if call[:1] == words[:1] for word in call)


def speaks(one: Evidence, wanted: NamedThing) -> bool | None:
    """Whether a result shows (or refutes) that a command ends as it should; nothing when it tells neither."""
    parts = _parts(one.command)
    places = [number for number, (_, words) in enumerate(parts) if _is_called(wanted.name, words)]
    if not places:
        return None
    last = places[-1]
    after = parts[last + 1 :]
    while after and after[-1][0] == "|" and after[-1][1][0] in ONLY_SHOWS:
        after.pop()
    alone = not after and all(words[0] in SETTING_UP for _, words in parts[:last])
    if wanted.code == "0" and one.code == 0:
        sure = parts[last][0] != "||" and (all(sign == "&&" for sign, _ in after) or _stops_at_errors(parts, after))
        return holds(one.output, wanted) if sure else None
    if not alone:
        return None
    fits = one.code != 0 if wanted.code == "!0" else str(one.code) == wanted.code
    return fits and holds(one.output, wanted)


def tries_out(command: str) -> bool:
    """Whether it does more than show what is there."""
    return any((_called(words) or [""])[0] not in LOOKS for _, words in _parts(command))


def holds(text: str, wanted: NamedThing) -> bool:
    """Whether the texts stand in it, and the others do not; in whatever case and spacing."""
    plain = _plain(text)
    return all(_plain(one) in plain for one in wanted.texts) and not any(_plain(one) in plain for one in wanted.absent)


def _plain(text: str) -> str:
    """Of a call only its name: how its arguments are written down may differ."""
    return " ".join(re.sub(r"\(.*\)$", "(", unicodedata.normalize("NFKC", text)).casefold().split())


def _texts(wanted: NamedThing) -> str:
    return ", ".join([f'"{one}"' for one in wanted.texts] + [f'no "{one}"' for one in wanted.absent])


def _there(files: Sequence[str]) -> str:
    return f"there: {', '.join(files[:SHOWN_FILES])}"


def _failed_with(path: str, record: Sequence[Evidence]) -> bool:
    """Whether the latest command that names a file has failed."""
    name = path.rpartition("/")[2]
    return next((not one.ok for one in reversed(record) if name in one.command), False)


def _is_own(one: Evidence, step: Step, files: Sequence[str], folder: Folder) -> bool:
    """Whether a command was run for this step."""
    if not tries_out(one.command):
        return False
    if step.tasks:
        return one.command in [str(task.args.get("command", "")).strip() for task in step.tasks]
    stems = [path.rpartition("/")[2].rpartition(".")[0] or path for path in files]
    tests = command_for_tests(folder)
    return any(re.search(rf"(?<!\w){re.escape(stem)}(?!\w)", one.command) for stem in stems) or bool(
        tests and speaks(one, NamedThing("command", tests)) is not None
    )


def _is_called(named: str, words: Sequence[str]) -> bool:
    """Whether a part of what was run is this command, perhaps with more arguments."""
    wanted, ran = _called([word for _, part in _parts(named) for word in part]), _called(words)
    if not wanted or not ran or wanted[0] != ran[0]:
        return False
    rest = iter(ran[1:])
    return all(word in rest for word in wanted[1:])


def _called(words: Sequence[str]) -> list[str]:
    """The words of a command without what it is called through."""
    text = " ".join(words)
    while (bare := re.sub(rf"^{RUNNERS}", "", text)) != text:
        text = bare
    program, *rest = text.split() or [""]
    name = program.rpartition("/")[2]
    return (
        [("python" if name == "python3" else name), *(word.removeprefix("./").rstrip("/") for word in rest)]
        if program
        else []
    )


def _parts(command: str) -> list[tuple[str, list[str]]]:
    """The commands of a line, each with the sign before it. A line that cannot be read has none."""
    lexer = shlex.shlex(re.sub(REDIRECTED, " ", command), posix=True, punctuation_chars=OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, "#"
    parts: list[tuple[str, list[str]]] = [("", [])]
    try:
        for token in lexer:
            if token and set(token) <= set(OPERATORS):
                parts.append((token.strip("\n") or ";", []))
            else:
                parts[-1][1].append(token)
    except ValueError:
        return []
    return [(sign, words) for sign, words in parts if words]


def _stops_at_errors(parts: Sequence[tuple[str, list[str]]], after: Sequence[tuple[str, list[str]]]) -> bool:
    strict = any(words[0] == "set" and any(re.fullmatch(r"-\w*e\w*", one) for one in words[1:]) for _, words in parts)
    return strict and all(sign in ("&&", ";") for sign, _ in after)
