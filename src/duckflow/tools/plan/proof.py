"""Whether a step is done: what its own criterion names, held against the record and the work folder."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from duckflow.i18n.template import note
from duckflow.state.action import Evidence
from duckflow.state.agent import AgentState
from duckflow.state.plan import Step
from duckflow.tools.plan.criterion import COMMAND, NamedThing, named_in
from duckflow.tools.plan.folder import command_for_tests, made_by
from duckflow.tools.plan.ports import Folder
from duckflow.tools.shell.calls import SHELLS, called, deciding_call, plain_calls, runs_alone, tries_out
from duckflow.tools.shell.checkers import RUNS_NOTHING, SHOWING, recognised

SHOWN_FILES = 6
NUMBER = re.compile(r"-?[\d.]+|\w")
SYNTAX_ONLY = {**dict.fromkeys(SHELLS, "-n"), "node": "--check", "ruby": "-c", "perl": "-c", "php": "-l"}
"""Options by which a program only reads what it is given."""
COMPILERS = ("py_compile", "compileall", "ast", "tokenize")
INLINE = frozenset(("-c", "-e", "-p", "--eval", "--print"))
"""Options after which a program runs what stands in the command itself."""


def proof(state: AgentState, step: Step, folder: Folder) -> str:
    """What shows it, newer than the last change it concerns; nothing when something of it is not shown.

    What its criterion names must be there, and have ended as it says: the exit code of something else shows nothing.
    Where it names nothing, a command counts that was the step's own task, runs a file of the step, or runs the tests.
    A program that stands in the command itself shows nothing, unless it uses a file of the step.
    A step without any criterion is shown by the files that it was to make, too."""
    if wanted := named_in(step.success):
        if unchecked(step):
            return ""
        made = _meant(state, step)
        shown = [show(one, _unaltered(state, step), folder, made) for one in wanted]
        return "; ".join(dict.fromkeys(shown)) if all(shown) else ""
    files = made_by(step) or [path for path in state.files_changed if path in f"{step.description} {step.success}"]
    own = [one for one in state.evidence if _is_own(one, step, files or state.files_changed, folder)]
    if own:
        return own[-1].text if own[-1].ok else ""
    runs = any(task.effect == "run" for task in step.tasks)
    return "" if step.success.strip() or runs or not files or not all(map(folder.has_content, files)) else _there(files)


def lacking(state: AgentState, step: Step, folder: Folder) -> str:
    """What its criterion names and nothing shows."""
    made, record = _meant(state, step), _unaltered(state, step)
    things = [one for one in named_in(step.success) if not show(one, record, folder, made)]
    return ", ".join(f"{one.told()}{_changed_with(one, state)}" for one in things)


def _unaltered(state: AgentState, step: Step) -> list[Evidence]:
    """The results that no change of the check itself has brought about. Where the step is about such a file, its change
    is the work."""
    work = re.sub(COMMAND, "", f"{step.name} {step.description}")
    return [one for one in state.evidence if all(path.rpartition("/")[2] in work for path in one.altered)]


def _changed_with(wanted: NamedThing, state: AgentState) -> str:
    """Says that a run of the wanted command shows nothing, since the check itself was changed."""
    for one in reversed(state.evidence) if wanted.kind == "command" else ():
        names = one.altered or (one.check.in_doubt if one.check else ())
        if names and (one.check or speaks(one, wanted)):
            return f" ({note(state.language, 'check_changed', files=', '.join(names))})"
    return ""


def unchecked(step: Step) -> str:
    """What its criterion says in plain words, and nothing can check."""
    return "; ".join(f"{one.name}: {text}" for one in named_in(step.success) for text in one.unchecked)


def _meant(state: AgentState, step: Step) -> list[str]:
    """The files of the work that the step's own text names with their folders."""
    return [path for path in dict.fromkeys((*made_by(step), *state.files_changed)) if path in step.text]


def refuted(step: Step, found: Evidence | None, changed: Sequence[str], folder: Folder) -> str:
    """The result that speaks against what has shown a step; nothing when there is none. `changed`: the files that are
    no longer as they were."""
    if found and not found.ran:
        found = None
    if found and not found.ok and f"{found.text.rpartition(': exit code')[0]}: exit code" in step.evidence:
        return found.text
    for one in named_in(step.success):
        if one.kind == "command" and found and speaks(found, one) is False and (found.check or _just(found, one)):
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
    if wanted.kind == "gone":
        return "" if any(map(folder.exists, places)) else f"gone: {wanted.name}"
    there = next((path for path in places if folder.has_content(path)), "")
    if not there or _failed_with(there, record):
        return ""
    if not wanted.texts and not wanted.absent:
        return _there([there])
    return f"in {there}: {_texts(wanted)}" if holds(folder.text(there), wanted) else ""


def _by_all_tests(wanted: NamedThing, record: Sequence[Evidence], folder: Folder) -> str:
    """A run of all the project's tests shows a run of some of its test files, where these are there."""
    some, tests = called(wanted.name.split()), called(command_for_tests(folder).split())
    files = [word.partition("::")[0] for word in some if word not in tests and not SHOWING.fullmatch(word)]
    known = files and all("test" in name.rpartition("/")[2] and folder.exists(name) for name in files)
    if not tests or some[:1] != tests[:1] or not known or wanted.code != "0" or wanted.texts or wanted.absent:
        return ""
    whole = NamedThing("command", " ".join(tests))
    return next((one.text for one in reversed(record) if speaks(one, whole)), "")


def speaks(one: Evidence, wanted: NamedThing) -> bool | None:
    """Says whether a result shows (or refutes) that a command ends as it should; nothing when it tells neither."""
    if check := recognised(wanted.name):
        return _check_speaks(one, wanted, check.name.split())
    calls, ran = plain_calls(wanted.name), plain_calls(one.command)
    decides = _just(one, wanted) or bool(ran and calls and ran[-1].is_run_of(calls[-1]))
    if wanted.code == "0" and one.code == 0:
        # Everything that must succeed before it has succeeded, too.
        sure = decides or (calls and all(any(own.is_run_of(call) for own in ran) for call in calls))
        return holds(one.output, wanted) if sure else None
    if not decides or not (runs_alone(one.command) or _just(one, wanted)):
        return None
    fits = one.code != 0 if wanted.code == "!0" else str(one.code) == wanted.code
    return fits and holds(one.output, wanted)


def _check_speaks(one: Evidence, wanted: NamedThing, named: Sequence[str]) -> bool | None:
    """A check is shown by its own report, and only by a run that leaves out nothing of what is named."""
    check = one.check
    if check is None or check.ok is None or check.check.split()[:1] != named[:1]:
        return None
    if wanted.code != "0":
        fits = one.code != 0 if wanted.code == "!0" else str(one.code) == wanted.code
        return fits and holds(one.output, wanted)
    if not check.ok:
        return False if set(named) <= set(check.check.split()) else None
    return holds(one.output, wanted) if set(check.check.split()) <= set(named) else None


def holds(text: str, wanted: NamedThing) -> bool:
    """Whether the texts stand in it, and the others do not; in whatever case and spacing."""
    plain = _plain(text)
    return all(_stands_in(plain, one) for one in wanted.texts) and not any(
        _stands_in(plain, one) for one in wanted.absent
    )


def _stands_in(plain: str, text: str) -> bool:
    """A number, or a single sign, must stand alone: 5 is not in 15 or 0.5."""
    wanted = _plain(text)
    if not NUMBER.fullmatch(wanted):
        return wanted in plain
    return re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w]|\.\d)", plain) is not None


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
    return next((not one.ok for one in reversed(record) if one.ran and name in one.command), False)


def _is_own(one: Evidence, step: Step, files: Sequence[str], folder: Folder) -> bool:
    """Says whether a command was run for this step, and runs more than what stands in it."""
    call = deciding_call(one.command)
    if not call or not tries_out(one.command) or call[0] in ("test", "[", *COMPILERS):
        return False
    if SYNTAX_ONLY.get(call[0]) in call or any(RUNS_NOTHING.fullmatch(word) for word in call[1:]):
        return False
    if one.check:
        return one.check.ok is not None
    names = [path.rpartition("/")[2] for path in files]
    modules = [name.partition(".")[0] for name in names]
    if INLINE & set(call):
        return any(re.search(rf"(?:import|from|require)\W+{re.escape(module)}\b", one.command) for module in modules)
    if step.tasks:
        return one.command in [str(task.args.get("command", "")).strip() for task in step.tasks]
    return bool({*files, *names, *modules} & set(call))


def _just(one: Evidence, wanted: NamedThing) -> bool:
    """Says whether just this was run. With other arguments, or somewhere else, a failure may be of those."""
    ran = plain_calls(one.command)
    return one.command.split() == wanted.name.split() or (bool(ran) and ran == plain_calls(wanted.name))
