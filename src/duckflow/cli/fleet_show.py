"""The parts of `duckflow fleet` that show or answer something: fleets, workers, a task and its log, open questions,
reports."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from duckflow.cli.fleet_table import agreed, aligned, as_csv, as_markdown, fleet_line, table_lines, tell
from duckflow.cli.parser import Options
from duckflow.commands.export.document import save_output
from duckflow.errors import UsageError
from duckflow.fleet.engine import AttemptState
from duckflow.fleet.ranking import side_by_side, why_first
from duckflow.fleet.task import Answered, Asked
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, age
from duckflow.ui.console.question_panel import print_question
from duckflow.ui.streams import print_err, print_out

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine


def show_inbox(engine: "Engine", fleet: str, options: Options, words: Words) -> int:
    """Asks the open questions if a person sits at the terminal; otherwise lists them."""
    open_questions = engine.inbox(fleet)
    if options.json:
        print_out(json.dumps([_as_json(open_question, words) for open_question in open_questions], ensure_ascii=False))
    elif not open_questions:
        tell(words("fleet.inbox_empty"))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        go_through(engine, fleet, words)
    else:
        for open_question in open_questions:
            tell(f"{open_question.asked_id}  {_who(open_question, open_questions, words)}")
            print_question(open_question.question, words)
        tell(words("fleet.inbox_how"))
    return 0


def go_through(engine: "Engine", fleet: str, words: Words) -> None:
    """Asks one question after the other, including those that come meanwhile. An empty line leaves a question for
    later."""
    later_ids: set[str] = set()
    while open_questions := [
        open_question for open_question in engine.inbox(fleet) if open_question.asked_id not in later_ids
    ]:
        first_question = open_questions[0]
        tell(_who(first_question, open_questions, words))
        print_question(first_question.question, words)
        try:
            line = input("> ").strip()
        except EOFError:
            return
        later_ids.add(first_question.asked_id)
        if line:
            same_question_count = len(_same(first_question, open_questions))
            for_all_same = bool(same_question_count) and agreed("fleet.for_all", words, count=same_question_count)
            fleet_answer = Answered(asked_id=first_question.asked_id, text=line, for_all_same=for_all_same)
            tell(_answer_note(engine.answer(fleet_answer), words))


def answer(engine: "Engine", options: Options, words: Words) -> int:
    """Answers a question by its id (`fleet answer ID WORDS…`), for scripts and for people who saw the question
    elsewhere."""
    wanted_id, *answer_words = options.words or [""]
    fitting_questions = (
        [open_question for open_question in engine.inbox() if open_question.asked_id.startswith(wanted_id)]
        if wanted_id
        else []
    )
    if not answer_words or len(fitting_questions) != 1:
        raise UsageError("fleet.answer_which" if wanted_id else "fleet.answer_usage", asked=wanted_id)
    text, all_same = " ".join(answer_words), bool(options.all_same)
    count = engine.answer(Answered(asked_id=fitting_questions[0].asked_id, text=text, for_all_same=all_same))
    tell_or_json(options, {"answered": count}, _answer_note(count, words))
    return 0 if count else 1


def tell_or_json(options: Options, fields: Mapping[str, Any], text: str) -> None:
    """Prints the result of a command: as JSON for scripts, or as a sentence for people."""
    if options.json:
        print_out(json.dumps(fields, ensure_ascii=False))
    else:
        tell(text)


def _as_json(asked: Asked, words: Words) -> dict[str, Any]:
    """Returns the question as JSON: its fields, and its texts as people read them."""
    question = asked.question
    texts = [words.phrase(phrase) for phrase in (question.title, *question.details)]
    choices = {choice.key: words.phrase(choice.label) for choice in question.choices}
    return asked.model_dump(mode="json") | {"text": "\n".join(texts), "choices": choices}


def _who(open_question: Asked, asked: Sequence[Asked], words: Words) -> str:
    same_question_count = len(_same(open_question, asked))
    text = words("fleet.who", task=open_question.task, attempt=open_question.attempt, fleet=open_question.fleet)
    return f"{text} {words('fleet.who_same', count=same_question_count)}" if same_question_count else text


def _same(open_question: Asked, asked: Sequence[Asked]) -> list[Asked]:
    """Returns the other open questions that an answer "for all" also answers: equal questions of the same fleet."""
    same_questions = [
        other for other in asked if (other.fleet, other.same) == (open_question.fleet, open_question.same)
    ]
    return [other for other in same_questions if other.asked_id != open_question.asked_id]


def _answer_note(count: int, words: Words) -> str:
    return words("fleet.answered", count=count) if count else words("fleet.answered_before")


FOLLOW_SECONDS = 0.5
NO_LIMIT = 1_000_000


def require_few(options: Options, most: int) -> None:
    if extra_words := options.words[most:]:
        raise UsageError("fleet.too_many", words=" ".join(extra_words))


def wanted_task(engine: "Engine", wanted: Sequence[str]) -> tuple[str, str]:
    """Returns the fleet and the task that the words name. Without a fleet it is the latest one; an empty task means all
    tasks."""
    fleets = [fleet.fleet for fleet in engine.fleets()]
    if not fleets:
        raise UsageError("fleet.none")
    if len(wanted) == 1 and wanted[0] in [state.task.name for state in engine.tasks(fleets[0])]:
        return fleets[0], wanted[0]
    first_word, *task_words = wanted or [""]
    fitting_fleets = [fleet for fleet in fleets if first_word and fleet.startswith(first_word)]
    fleet, task_words = (fitting_fleets[0], task_words) if len(fitting_fleets) == 1 else (fleets[0], [*wanted])
    if not task_words:
        return fleet, ""
    names = [state.task.name for state in engine.tasks(fleet)]
    if len(task_words) > 1:
        raise UsageError("fleet.too_many", words=" ".join(task_words[1:]))
    if task_words[0] not in names:
        raise UsageError("fleet.no_task", task=task_words[0], fleet=fleet)
    return fleet, task_words[0]


def wanted_fleet(engine: "Engine", options: Options) -> str:
    """Returns the fleet that the command line names; an empty text means all fleets."""
    require_few(options, 1)
    fitting_fleets = [
        state.fleet for state in engine.fleets() if options.words and state.fleet.startswith(options.words[0])
    ]
    if options.words and len(fitting_fleets) != 1:
        raise UsageError("fleet.no_fleet", fleet=options.words[0])
    return fitting_fleets[0] if fitting_fleets else ""


def show_workers(engine: "Engine", options: Options, words: Words) -> int:
    workers = engine.workers()
    if options.json:
        print_out(json.dumps([worker.model_dump(mode="json") for worker in workers]))
        return 0
    for worker in workers:
        key = "fleet.workers.line" if worker.lives else "fleet.workers.dead"
        values = worker.model_dump(include={"worker", "place", "running"})
        tell(words(key, **values, age=age(worker.seen, time.time(), words)))
    if not any(worker.lives for worker in workers):
        tell(words("fleet.workers.none"))
    return 0


def write_report(engine: "Engine", options: Options, words: Words) -> int:
    """Writes a report: Markdown for people, CSV for tables. A fleet that was removed is found by its whole name."""
    require_few(options, 1)
    fleet = (
        options.words[0]
        if options.words and engine.figures(options.words[0])
        else wanted_task(engine, options.words)[0]
    )
    _require_format(options, "md", "csv")
    rows = engine.figures(fleet)
    if options.json:
        text = json.dumps([row.model_dump(mode="json") for row in rows], ensure_ascii=False)
    else:
        text = as_csv(rows) if options.format == "csv" else as_markdown(fleet, rows, words)
    _write(text, options)
    return 0


def _require_format(options: Options, *known: str) -> None:
    if options.format not in ("", *known):
        raise UsageError("usage.choice", option="--format", value=options.format, known=", ".join(known))


def _write(text: str, options: Options) -> bool:
    """Writes the text to a file or to standard output. Says whether it was written to a file."""
    if not options.output or options.output == "-":
        print_out(text)
        return False
    save_output(options.output, f"{text}\n")
    return True


async def export(engine: "Engine", options: Options, words: Words) -> int:
    """Writes predictions in the format of SWE-bench, one a line, to a file or to standard output."""
    from duckflow.fleet.task_file import predictions

    _require_format(options, "swebench")
    fleet, task = wanted_task(engine, options.words)
    states = [state for state in engine.tasks(fleet) if task in ("", state.task.name)]
    rows = await predictions(states, engine.attempts(fleet, task))
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    if _write(text, options):
        print_err(plain(words("fleet.predictions", count=len(rows), path=options.output)))
    return 0


def show(engine: "Engine", options: Options, words: Words) -> int:
    """Carries out `list`, `show` and `logs`."""
    if options.what == "list":
        require_few(options, 0)
        fleets = engine.fleets()
        if options.json:
            print_out(json.dumps([fleet.model_dump(mode="json") for fleet in fleets], ensure_ascii=False))
        for fleet in () if options.json else fleets:
            first_line, *warning = fleet_line(fleet, words).split("\n")
            tell("\n".join([f"{first_line}  {age(fleet.started, time.time(), words)}", *warning]))
        if not fleets and not options.json:
            tell(words("fleet.none"))
        return 0
    fleet, task = wanted_task(engine, options.words)
    if options.what == "logs":
        return _logs(engine, fleet, task, options, words)
    if options.json:
        print_out(json.dumps(as_json(engine, fleet, task), ensure_ascii=False))
        return 0
    states = [state for state in engine.tasks(fleet) if task in ("", state.task.name)]
    attempts = engine.attempts(fleet, task)
    (fleet_state,) = [state for state in engine.fleets() if state.fleet == fleet]
    if fleet_state.forsaken:
        tell(fleet_line(fleet_state, words))
    for line in table_lines(states, attempts, words, NO_LIMIT):
        tell(line)
    for attempt in attempts if task else ():
        for line in _report_lines(attempt, words):
            tell(line)
    reports = [attempt.report for attempt in attempts if attempt.report]
    if task and len(reports) > 1:
        for line in (*aligned(side_by_side(reports, words)), *why_first(reports, words)):
            tell(line)
    return 0


def _report_lines(attempt: AttemptState, words: Words) -> list[str]:
    """Returns lines about the result of one attempt."""
    report = attempt.report
    if report is None:
        return []
    lines = ["", f"#{attempt.number} {report.branch} {report.commit[:12]}".rstrip()]
    lines += [f"  {words.phrase(report.open)}"] if report.open else []
    lines += [f"  $ {check.command}: {check.code}" for check in report.checks]
    lines += [f"    {line}" for check in report.checks if check.code for line in check.output.split("\n")]
    lines += [f"  {file.path} (+{file.added} −{file.removed})" for file in report.files]
    lines += [f"  {finding}" for finding in report.findings]
    return lines


def _logs(engine: "Engine", fleet: str, task: str, options: Options, words: Words) -> int:
    last_line = 0
    while True:
        for line in engine.logs(fleet, task, options.attempt or 0, last_line):
            last_line, clock_time = line.line, time.strftime("%H:%M:%S", time.localtime(line.at))
            if options.json:
                fields = line.model_dump(mode="json") | {"said": words.phrase(line.said)}
                print_out(json.dumps(fields, ensure_ascii=False))
                continue
            attempt = f"#{line.attempt}" if line.attempt else ""
            tell(f"{clock_time} {line.task}{attempt} {words.phrase(line.said)}")
        has_ended = all(state.ended for state in engine.fleets() if state.fleet == fleet)
        if not options.follow or has_ended:
            return 0
        time.sleep(FOLLOW_SECONDS)


def as_json(engine: "Engine", fleet: str, task: str = "") -> dict[str, Any]:
    """Returns the state of a fleet, its tasks and its attempts, for scripts."""
    (state,) = [candidate for candidate in engine.fleets() if candidate.fleet == fleet]
    tasks = [
        task_state.model_dump(mode="json") for task_state in engine.tasks(fleet) if task in ("", task_state.task.name)
    ]
    return {
        **state.model_dump(mode="json"),
        "tasks": tasks,
        "attempts": [attempt.model_dump(mode="json") for attempt in engine.attempts(fleet, task)],
    }
