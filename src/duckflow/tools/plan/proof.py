"""Finds the evidence that a step is done: compares what its criterion names with the recorded results and the
work folder."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from duckflow.i18n.template import note
from duckflow.state.action import Evidence
from duckflow.state.agent import AgentState
from duckflow.state.checks import belongs_to_tests
from duckflow.state.data import Phrase, say
from duckflow.state.plan import Step
from duckflow.tools.plan.criterion import COMMAND, NamedThing, named_in
from duckflow.tools.plan.folder import WorkFolder, made_by
from duckflow.tools.shell.calls import SHELLS, deciding_call, plain_calls, runs_alone, tries_out
from duckflow.tools.shell.checkers import RUNS_NOTHING, recognised

SHOWN_FILES = 6
NUMBER = re.compile(r"-?[\d.]+|\w")
SYNTAX_ONLY = {**dict.fromkeys(SHELLS, "-n"), "node": "--check", "ruby": "-c", "perl": "-c", "php": "-l"}
"""Options by which a program only checks the syntax of its input."""
COMPILERS = ("py_compile", "compileall", "ast", "tokenize")
INLINE = frozenset(("-c", "-e", "-p", "--eval", "--print"))
"""Options after which a program runs code that is written in the command itself."""


def proof(state: AgentState, step: Step, folder: WorkFolder) -> str:
    """Returns the results that prove the step and are newer than the last change that concerns it; empty if it is not
    proved.

    Everything that the step's criterion names needs such a result. A file that was there before is none. If the
    criterion names nothing, these commands count: a task of the step, a run of one of its files, and a run of the
    tests. A step without any criterion is also proved by the files that it was to make."""
    if wanted_things := named_in(step.success):
        if unchecked(step):
            return ""
        made_paths = _meant(state, step)
        shown_texts = [show(thing, _unaltered(state, step), folder, made_paths) for thing in wanted_things]
        if not all(shown_texts):
            return ""
        was_there = [_was_there(thing, state, step, folder, made_paths) for thing in wanted_things]
        new_texts = [text for text, is_old in zip(shown_texts, was_there, strict=True) if not is_old]
        return "; ".join(dict.fromkeys(new_texts))
    files = made_by(step) or [path for path in state.files_changed if path in f"{step.description} {step.success}"]
    own_evidence = [thing for thing in state.evidence if _is_own(thing, step, files or state.files_changed, folder)]
    if own_evidence:
        return own_evidence[-1].text if own_evidence[-1].ok else ""
    runs_commands = any(task.effect == "run" for task in step.tasks)
    return (
        ""
        if step.success.strip() or runs_commands or not files or not all(map(folder.has_content, files))
        else _there(files)
    )


def _was_there(wanted: NamedThing, state: AgentState, step: Step, folder: WorkFolder, made: Sequence[str]) -> bool:
    """Says whether a wanted file stood there as it is before the step, so that it shows nothing. A file that the work
    before the step has changed shows one step only."""
    path = _place(wanted, folder, made) if wanted.kind == "file" else ""
    if not path or path in made_by(step) or (step.began and folder.was_written(path, step.began)):
        return False
    other_steps = [other for plan in state.plans.values() for other in plan.steps if other.step_id != step.step_id]
    return path not in state.files_changed or any(path in other.evidence for other in other_steps)


def _place(wanted: NamedThing, folder: WorkFolder, made: Iterable[str]) -> str:
    """Returns the path of a wanted file with content; empty if there is none. `made` are files that may be meant where
    the criterion gives only a name."""
    candidate_paths = [wanted.name, *(path for path in made if path.endswith(f"/{wanted.name}"))]
    return next((path for path in candidate_paths if folder.has_content(path)), "")


def lacking(state: AgentState, step: Step, folder: WorkFolder) -> str:
    """Returns the things that the step's criterion names and that no result shows."""
    made_paths, evidence = _meant(state, step), _unaltered(state, step)
    unshown_things = [thing for thing in named_in(step.success) if not show(thing, evidence, folder, made_paths)]
    return ", ".join(f"{thing.told()}{_changed_with(thing, state)}" for thing in unshown_things)


def _unaltered(state: AgentState, step: Step) -> list[Evidence]:
    """Returns the results that were not caused by a change of the check itself, such as its test files. If the step is
    about such a file, changing that file is the work, and the results count."""
    work = re.sub(COMMAND, "", f"{step.name} {step.description}")
    return [
        evidence for evidence in state.evidence if all(path.rpartition("/")[2] in work for path in evidence.altered)
    ]


def _changed_with(wanted: NamedThing, state: AgentState) -> str:
    """Returns a remark that a run of the wanted command proves nothing, since the work has changed the check itself;
    empty if it has not."""
    for evidence in reversed(state.evidence) if wanted.kind == "command" else ():
        names = evidence.altered or (evidence.check.in_doubt if evidence.check else ())
        if names and (evidence.check or speaks(evidence, wanted)):
            return f" ({note(state.language, 'check_changed', files=', '.join(names))})"
    return ""


def unchecked(step: Step) -> str:
    """Returns the parts of the step's criterion that are plain words which nothing can check."""
    return "; ".join(f"{thing.name}: {text}" for thing in named_in(step.success) for text in thing.unchecked)


def unproved(step: Step, lacking_text: str) -> Phrase:
    """Returns what the user is told of a step that is completed without proof: that a result is missing, or that plain
    words are all that its criterion has."""
    prose = "" if lacking_text else unchecked(step)
    return say("plan.step_unchecked" if prose else "plan.step_unverified", step=step.name, what=prose)


def _meant(state: AgentState, step: Step) -> list[str]:
    """Returns those of the made or changed files that the step's own text names by their whole paths."""
    return [path for path in dict.fromkeys((*made_by(step), *state.files_changed)) if path in step.text]


def refuted(step: Step, result: Evidence | None, changed: Sequence[str], folder: WorkFolder) -> str:
    """Returns the result that contradicts the proof of a step; empty if none does. `changed` are the files that were
    changed after the proof."""
    if result and not result.ran:
        result = None
    if result and not result.ok and f"{result.text.rpartition(': exit code')[0]}: exit code" in step.evidence:
        return result.text
    for thing in named_in(step.success):
        if (
            thing.kind == "command"
            and result
            and speaks(result, thing) is False
            and (result.check or _just(result, thing))
        ):
            return result.text
        is_thing_changed = any(path == thing.name or path.endswith(f"/{thing.name}") for path in changed)
        if thing.kind != "command" and is_thing_changed and not show(thing, (), folder, changed):
            return thing.told()
    return ""


def show(wanted: NamedThing, record: Sequence[Evidence], folder: WorkFolder, made: Iterable[str] = ()) -> str:
    """Returns the evidence for one thing that a criterion names; empty if there is none. `made` are files that may be
    meant where the criterion gives only a name."""
    if wanted.kind == "command":
        return next(
            (
                evidence.text if verdict else ""
                for evidence in reversed(record)
                if (verdict := speaks(evidence, wanted)) is not None and _is_part_of(evidence, wanted, folder)
            ),
            "",
        )
    made = list(made)
    if wanted.kind == "gone":
        candidate_paths = [wanted.name, *(path for path in made if path.endswith(f"/{wanted.name}"))]
        return "" if any(map(folder.exists, candidate_paths)) else f"gone: {wanted.name}"
    present_path = _place(wanted, folder, made)
    if not present_path or _failed_with(present_path, record):
        return ""
    if not wanted.texts and not wanted.absent:
        return _there([present_path])
    return f"in {present_path}: {_texts(wanted)}" if holds(folder.text(present_path), wanted) else ""


def speaks(evidence: Evidence, wanted: NamedThing) -> bool | None:
    """Returns True if a result shows that a command ended as the criterion wants, and False if it shows the opposite.
    Returns None if it shows neither."""
    wanted = wanted.as_run(evidence.command)
    if check := recognised(wanted.name):
        return _check_speaks(evidence, wanted, check.name.split())
    calls, ran_calls = plain_calls(wanted.name), plain_calls(evidence.command)
    decides_end = _just(evidence, wanted) or bool(ran_calls and calls and ran_calls[-1].is_run_of(calls[-1]))
    if wanted.code == "0" and evidence.code == 0:
        # If the last call succeeded, the calls that had to succeed before it have succeeded, too.
        is_certain = decides_end or (
            calls and all(any(ran_call.is_run_of(call) for ran_call in ran_calls) for call in calls)
        )
        return holds(evidence.output, wanted) if is_certain else None
    if not decides_end or not (runs_alone(evidence.command) or _just(evidence, wanted)):
        return None
    has_wanted_code = evidence.code != 0 if wanted.code == "!0" else str(evidence.code) == wanted.code
    return has_wanted_code and holds(evidence.output, wanted)


def _check_speaks(evidence: Evidence, wanted: NamedThing, named: Sequence[str]) -> bool | None:
    """Judges a check by its own report, and only by a run that leaves out none of the named tests."""
    check_report = evidence.check
    if check_report is None or check_report.ok is None or check_report.check.split()[:1] != named[:1]:
        return None
    if wanted.code != "0":
        has_wanted_code = evidence.code != 0 if wanted.code == "!0" else str(evidence.code) == wanted.code
        return has_wanted_code and holds(evidence.output, wanted)
    if not check_report.ok:
        return False if set(named) <= set(check_report.check.split()) else None
    return holds(evidence.output, wanted) if set(check_report.check.split()) <= set(named) else None


def _is_part_of(evidence: Evidence, wanted: NamedThing, folder: WorkFolder) -> bool:
    """Says whether the wanted check is part of the one that ran. A run of more than the wanted files shows nothing of a
    file or test that does not exist, nor of an option that it did not have."""
    wanted_check = recognised(wanted.as_run(evidence.command).name)
    if wanted_check is None or evidence.check is None:
        return True
    ran_words = evidence.check.check.split()
    are_tests = wanted_check.kind == "tests"
    return all(_is_there(word, folder, are_tests) for word in wanted_check.name.split() if word not in ran_words)


def _is_there(named: str, folder: WorkFolder, are_tests: bool) -> bool:
    """Says whether a folder, or a file with all the tests that are named in it, is in the work folder. The name may be
    a path, a path with tests (`tests/test_a.py::test_b`) or a module (`tests.test_a.Case.test_b`)."""
    path, *tests = named.removesuffix("...").rstrip("/").split("::")
    parts = path.split(".")
    modules = [("/".join(parts[:length]) + ".py", parts[length:]) for length in range(len(parts), 0, -1)]
    places = [(path, tests), *(modules if not tests else [])]
    for file, names in places:
        if folder.has_content(file):
            text = folder.text(file)
            return (belongs_to_tests(file) or not are_tests) and all(name.partition("[")[0] in text for name in names)
    return any(map(folder.is_folder, (path, "/".join(parts))))


def holds(text: str, wanted: NamedThing) -> bool:
    """Says whether the text contains all wanted texts and no unwanted one. Case and spacing do not matter."""
    plain_text = _plain(text)
    return all(_stands_in(plain_text, phrase) for phrase in wanted.texts) and not any(
        _stands_in(plain_text, phrase) for phrase in wanted.absent
    )


def _stands_in(plain: str, text: str) -> bool:
    """Says whether `plain` contains a text. A number, or a single character, must stand alone: 5 is not in 15 or
    0.5."""
    wanted_text = _plain(text)
    if not NUMBER.fullmatch(wanted_text):
        return wanted_text in plain
    return re.search(rf"(?<![\w.]){re.escape(wanted_text)}(?![\w]|\.\d)", plain) is not None


def _plain(text: str) -> str:
    """Normalizes case and spacing. The arguments of a call are dropped, because they may be written in different
    ways."""
    return " ".join(re.sub(r"\(.*\)$", "(", unicodedata.normalize("NFKC", text)).casefold().split())


def _texts(wanted: NamedThing) -> str:
    return ", ".join([f'"{phrase}"' for phrase in wanted.texts] + [f'no "{phrase}"' for phrase in wanted.absent])


def _there(files: Sequence[str]) -> str:
    return f"there: {', '.join(files[:SHOWN_FILES])}"


def _failed_with(path: str, record: Sequence[Evidence]) -> bool:
    """Says whether the latest command that names a file has failed."""
    name = path.rpartition("/")[2]
    return next((not evidence.ok for evidence in reversed(record) if evidence.ran and name in evidence.command), False)


def _is_own(evidence: Evidence, step: Step, files: Sequence[str], folder: WorkFolder) -> bool:
    """Says whether a command was run for this step, and runs more than the code written in it."""
    call = deciding_call(evidence.command)
    if not call or not tries_out(evidence.command) or call[0] in ("test", "[", *COMPILERS):
        return False
    if SYNTAX_ONLY.get(call[0]) in call or any(RUNS_NOTHING.fullmatch(word) for word in call[1:]):
        return False
    if evidence.check:
        # A check that a change of the step's files leaves valid, may have run before it, and says nothing of them.
        return evidence.check.ok is not None and (not files or any(map(evidence.outdated_by, files)))
    names = [path.rpartition("/")[2] for path in files]
    modules = [name.partition(".")[0] for name in names]
    if INLINE & set(call):
        return any(
            re.search(rf"(?:import|from|require)\W+{re.escape(module)}\b", evidence.command) for module in modules
        )
    if step.tasks:
        return evidence.command in [str(task.args.get("command", "")).strip() for task in step.tasks]
    return bool({*files, *names, *modules} & set(call))


def _just(evidence: Evidence, wanted: NamedThing) -> bool:
    """Says whether the evidence is a run of exactly this command. A run with other arguments, or in another place, may
    fail for other reasons."""
    ran_calls = plain_calls(evidence.command)
    return evidence.command.split() == wanted.name.split() or (
        bool(ran_calls) and ran_calls == plain_calls(wanted.name)
    )
