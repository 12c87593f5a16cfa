"""The findings of the red team, a class each: `python -m benchmarks.redteam [REVISION] [-n PROCESSES]`.

Runs every try of `tests/redteam` and its neighbours against the working tree, or against another revision, and prints
for each finding how many tries there are and how many got through. A try got through where its test fails by an
assertion, or stands still until it is ended; where the older program has not even what the test talks to, it counts as
not comparable. Of an older program the count is an upper bound: a test may also assert what was spelled otherwise
then."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from benchmarks.revisions import TOP, unpack

R, HISTORY = "tests/redteam", "tests/safety/sandbox/test_git_history.py"
SMALL = f"{R}/test_small_ways.py"


class Finding(NamedTuple):
    """A class of ways in, and the tests that try its spellings."""

    number: str
    title: str
    tests: tuple[str, ...]


FINDINGS = (
    Finding("1", "a trusted hook runs what the model wrote later", (
        f"{R}/test_brought_programs.py::test_what_the_model_writes_after_the_yes_stays_in_the_sandbox",
        f"{R}/test_brought_programs.py::test_with_any_more_right_only_the_copy_runs",
        f"{R}/test_brought_programs.py::test_the_users_own_hooks_take_nothing_from_the_folder",
        f"{R}/test_brought_programs.py::test_with_more_rights_a_way_to_the_folder_leads_to_the_copy",
    )),
    Finding("1", "a module of the folder runs in Duckflow itself", (
        f"{R}/test_own_modules.py::test_no_module_of_the_folder_is_loaded",
        f"{R}/test_own_modules.py::test_a_place_in_the_folder_or_around_it_is_left_out",
        f"{R}/test_own_modules.py::test_a_missing_program_makes_nobody_import_a_package",
    )),
    Finding("1", "a guard that is broken is not there", (
        f"{R}/test_brought_programs.py::test_a_guard_that_cannot_run_asks",
        f"{R}/test_brought_programs.py::test_a_guard_is_not_disarmed_by_taking_away_what_it_needs",
    )),
    Finding("1", "a hook of the user's own runs what the model wrote", (
        f"{R}/test_own_hooks.py::test_what_the_model_wrote_gets_no_more_rights_by_a_hook_of_the_users",
    )),
    Finding("2", "an agreed server runs what the model wrote later", (
        f"{R}/test_brought_servers.py::test_a_server_of_the_folder_runs_as_it_was_at_the_yes",
    )),
    Finding("3", "the question about servers hides something, or gives a key away", (
        f"{R}/test_brought_servers.py::test_the_question_shows_all_and_no_provider_key_is_given",
    )),
    Finding("4", "secrets in a form that no filter knows", (
        f"{R}/test_secret_files.py::test_no_disguise_brings_a_secret_to_the_model",
    )),
    Finding("4", "secrets uncovered by number, place, move or a forged entry", (
        f"{R}/test_secret_ways.py::test_no_folder_is_left_out",
        f"{R}/test_secret_ways.py::test_no_move_takes_a_secret_out_of_sight",
        f"{R}/test_secret_ways.py::test_decoys_do_not_uncover_the_real_one",
        f"{R}/test_secret_ways.py::test_a_forged_entry_of_git_uncovers_nothing_later",
        f"{R}/test_secret_ways.py::test_what_stands_in_its_place_among_packages_uncovers_nothing",
        f"{R}/test_secret_ways.py::test_nothing_is_made_outside_by_a_link_on_the_way_to_a_cover",
        f"{R}/test_secret_ways.py::test_another_name_of_a_secret_file_is_covered_too",
    )),
    Finding("4", "a secret file among skills and descriptions of agents", (
        f"{R}/test_skill_secrets.py::test_a_secret_file_of_a_skill_is_given_by_no_spelling",
        f"{R}/test_skill_secrets.py::test_a_link_to_a_secret_in_the_place_of_an_extension_is_none",
        f"{R}/test_skill_secrets.py::test_the_copy_that_commands_see_has_no_secret_file",
    )),
    Finding("5", "files of people outside, by links and by names", (
        f"{R}/test_outside_files.py::test_the_homes_of_people_are_not_read",
        f"{R}/test_outside_files.py::test_a_repository_that_holds_a_home_does_not_open_it",
    )),
    Finding("5", "a place that PATH or the settings name, swapped for a link", (
        f"{R}/test_outside_files.py::test_a_place_that_was_swapped_for_a_link_opens_nothing",
    )),
    Finding("6", "git's history lost for good", (
        f"{R}/test_lost_history.py::test_undo_brings_back_what_a_script_threw_away",
        f"{HISTORY}::test_no_command_loses_history_for_good",
    )),
    Finding("7", "a look by git runs a program of the folder", (
        f"{R}/test_git_inside.py::test_a_program_named_further_in_is_asked_about",
        f"{R}/test_git_inside.py::test_a_bare_repository_further_in_is_asked_about",
        f"{R}/test_git_inside.py::test_reading_what_is_recorded_starts_no_program",
        f"{R}/test_git_inside.py::test_a_free_git_command_has_that_environment",
    )),
    Finding("7", "git by a hook of the user's own, or by /commit, runs a program of the folder unseen", (
        f"{R}/test_trust.py::test_a_hook_of_the_users_own_starts_no_program_of_an_untrusted_folder",
        f"{R}/test_trust.py::test_the_question_before_a_commit_names_what_git_starts",
    )),
    Finding("8", "a free command is a program of the folder", (
        f"{R}/test_rules_and_names.py::test_a_free_command_is_not_a_program_of_the_folder",
    )),
    Finding("9", "a text or a reply that makes it stand still", (
        f"{R}/test_time.py::test_judging_any_text_is_soon_over",
        f"{R}/test_time.py::test_the_loop_goes_on_while_a_command_is_judged",
        f"{R}/test_time.py::test_more_calls_than_anybody_can_follow_are_not_made",
        f"{R}/test_time.py::test_the_loop_goes_on_while_a_broken_reply_is_read",
        f"{R}/test_time.py::test_a_reply_without_an_end_is_cut_off",
        f"{R}/test_time.py::test_what_a_command_names_is_soon_known",
        f"{R}/test_time.py::test_a_reply_of_many_brackets_is_soon_read",
        f"{R}/test_time.py::test_no_command_breaks_the_turn_off",
        f"{R}/test_time.py::test_ignore_rules_without_number_are_soon_looked_through",
        f"{R}/test_time.py::test_finding_the_place_of_an_edit_is_soon_over",
    )),
    Finding("9", "a file in place of one that is read back", (
        f"{R}/test_read_back.py::test_what_stands_in_place_of_a_report_is_no_report",
        f"{R}/test_read_back.py::test_nothing_that_lies_in_the_folder_stops_a_conversation",
        f"{R}/test_read_back.py::test_what_a_command_puts_in_place_of_a_file_stops_nothing",
        f"{R}/test_read_back.py::test_a_run_that_replaces_its_report_leaves_the_loop_alone",
    )),
    Finding("10", "a rule for a tool covers another place or target", (
        "tests/safety/commands/test_project_runs.py"
        "::test_a_rule_for_a_tool_does_not_cover_another_place_environment_or_target",
    )),
    Finding("15", "in mode auto a file is lost that undo does not keep", (
        "tests/journeys/test_mode_auto.py::test_what_could_lose_a_file_that_undo_does_not_keep_is_asked_for",
        "tests/journeys/test_mode_auto.py::test_git_that_puts_files_in_place_may_lose_an_ignored_one",
    )),
    Finding("10", "a rule covers more than was agreed", (
        f"{R}/test_rules_and_names.py::test_a_rule_whose_second_word_is_an_option_covers_that_command_alone",
        f"{R}/test_rules_and_names.py"
        "::test_a_rule_for_a_command_that_names_files_or_values_covers_that_command_alone",
    )),
    Finding("11", "a caller chooses mode and folder", (
        f"{R}/test_callers.py::test_a_caller_chooses_no_folder_that_was_not_named",
        f"{R}/test_callers.py::test_a_caller_chooses_no_mode_beyond_the_users",
        f"{R}/test_callers.py::test_home_and_above_are_refused_on_the_command_line",
    )),
    Finding("12", "trust by a pointer to a trusted repository", (
        f"{R}/test_trust.py::test_a_pointer_to_a_trusted_repository_makes_nothing_trusted",
    )),
    Finding("13", "a tool that says something else after the yes", (
        f"{R}/test_brought_servers.py::test_a_tool_that_says_something_else_of_itself_is_asked_about_again",
    )),
    Finding("14", "names that make code run later", (
        "tests/journeys/test_risky_names.py::test_asked_for_where_edits_pass",
        "tests/journeys/test_risky_names.py::test_told_where_nothing_is_asked",
        "tests/journeys/test_risky_names.py::test_git_itself_asks_in_every_mode_and_spelling",
        "tests/journeys/test_risky_names.py::test_moved_into_place_is_the_same",
    )),
    Finding("15", "hooks and settings of git that undo leaves, under Landlock", (
        f"{SMALL}::test_undo_takes_back_what_makes_git_run_programs_under_landlock",
    )),
    Finding("15", "an agent bound to nothing", (
        f"{SMALL}::test_an_agent_is_bound_to_something",
        f"{SMALL}::test_a_pattern_binds_an_agent_to_what_it_fits",
    )),
    Finding("15", "connections to the page that are left open", (
        "tests/web/test_page_lock.py::test_connections_that_are_left_open_lock_nobody_out",
    )),
    Finding("15", "a key that the endpoint says back", (
        f"{R}/test_echoed_keys.py::test_a_key_that_is_said_back_is_stored_nowhere",
    )),
    Finding("15", "a server's question that looks like a Gate", (
        f"{SMALL}::test_what_a_server_asks_looks_like_nothing_of_ours",
    )),
    Finding("15", "a language server without a sandbox that covers secrets", (
        f"{R}/test_checkers.py::test_no_language_server_starts_without_bubblewrap",
    )),
    Finding("15", "data folders open to others", (f"{SMALL}::test_data_folders_are_closed_to_others",)),
    Finding("15", "a client that allows everything opens a home", (
        f"{R}/test_callers.py::test_a_client_that_allows_everything_opens_no_home",
    )),
    Finding("15", "values of options judged wrongly", (
        f"{R}/test_rules_and_names.py::test_a_value_glued_to_an_option_is_no_option",
        f"{R}/test_rules_and_names.py::test_force_is_still_seen_among_letters",
        f"{R}/test_rules_and_names.py::test_a_value_after_an_option_is_no_operand",
    )),
    Finding("15", "fleet merge brings programs in without a word", (
        "tests/fleet/test_merge.py::test_what_comes_in_and_runs_programs_or_leads_out_is_told",
    )),
    Finding("–", "out of bubblewrap through its own first process", (f"{R}/test_first_process.py",)),
    Finding("–", "a file that is one with a file elsewhere, by a hard link", (
        f"{R}/test_hard_links.py::test_a_command_does_not_write_through_a_hard_link",
    )),
    Finding("–", "what lies beside a place of programs", (
        f"{R}/test_outside_files.py::test_a_place_of_programs_does_not_show_what_lies_beside_it",
    )),
    Finding("–", "what lies neither in a home nor in the work folder", (
        f"{R}/test_outside_files.py::test_only_the_systems_own_places_are_there",
    )),
    Finding("–", "logins beside what tools need in the home", (
        f"{R}/test_outside_files.py::test_logins_beside_what_tools_need_are_not_there",
    )),
    Finding("–", "secrets by other names, behind links, in a new repository", (
        f"{R}/test_secret_names.py::test_names_of_secrets",
        f"{R}/test_secret_names.py::test_a_link_with_the_name_of_a_secret_covers_what_it_leads_to",
        f"{R}/test_secret_names.py::test_a_file_tool_does_not_tell_what_such_a_link_leads_to",
        f"{R}/test_secret_names.py::test_a_new_repository_with_a_forged_entry_uncovers_nothing",
    )),
    Finding("–", "an added folder", (f"{R}/test_added_folders.py",)),
    Finding("–", "a rule covers an option or another task", (
        f"{R}/test_rules_and_names.py::test_a_rule_covers_no_option_and_no_other_task",
    )),
    Finding("–", "an editor chooses a mode beyond the settings", (
        f"{R}/test_callers.py::test_an_editor_chooses_no_mode_beyond_the_users",
    )),
    Finding("–", "words answer another Gate of an editor", (
        "tests/editor/test_asker.py::test_words_answer_the_gate_that_they_were_asked_for",
    )),
    Finding("–", "a journal that a container left", (f"{R}/test_believed_journals.py",)),
    Finding("–", "lost for good behind undo's back", (f"{R}/test_undo_gaps.py",)),
    Finding("–", "a hook with more rights finds the real folder by another spelling", (
        f"{R}/test_names_of_the_folder.py",
    )),
    Finding("–", "a pointer of git that no system takes breaks the turn", (
        f"{R}/test_trust.py::test_a_pointer_that_no_system_takes_breaks_nothing",
    )),
    Finding("–", "a question hides a part of what it is about", (f"{R}/test_hidden_questions.py",)),
    Finding("–", "a file that git's settings name", (
        f"{R}/test_named_by_git.py::test_a_file_that_git_runs_is_asked_about",
        f"{R}/test_named_by_git.py::test_a_command_that_writes_it_is_asked_about",
    )),
    Finding("–", "a new repository starts programs without a word", (
        f"{R}/test_named_by_git.py::test_a_new_repository_that_starts_programs_is_told",
    )),
)  # fmt: skip
THROUGH = ("AssertionError", "assert ", "Failed: DID NOT RAISE")
"""The beginnings of a failure's message."""
ENDED = "crashed while running"
"""The test stood still, and its process was ended."""
NO_SUCH_ANSWER = "AssertionError: (Question("
"""The story of a test gave an answer that the older program does not know."""
STANDS_STILL = 60
Results = dict[str, Counter[str]]
"""By test, the number of tries that got through, held, and could not be compared."""


def overlaid(revision: str, folder: Path) -> Path:
    """The tree of another revision, with today's tests of the findings in it."""
    unpack(revision, folder, "")
    files = {test.partition("::")[0] for finding in FINDINGS for test in finding.tests}
    for path in (*files, *(str(path.relative_to(TOP)) for path in (TOP / R).glob("*.py"))):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes((TOP / path).read_bytes())
    return folder


def run(tree: Path, processes: int) -> Results:
    tests = [test for finding in FINDINGS for test in finding.tests]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        options = ("-o", "addopts=", "-m", "slow or not slow", "-q", "--no-header", "--tb=line", "-W", "ignore")
        options += ("-o", f"faulthandler_timeout={STANDS_STILL}", "-o", "faulthandler_exit_on_timeout=true")
        files = sorted({test.partition("::")[0] for test in tests})
        names = " or ".join(sorted(set(map(_name, tests))))
        command = [sys.executable, "-m", "pytest", *options, "-n", str(processes), "--junitxml", str(report)]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([*command, "-k", names, *files], cwd=tree, env=environment, check=False, stdout=sys.stderr)
        return dict(_read(report))


def _read(report: Path) -> Iterator[tuple[str, Counter[str]]]:
    results: Results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        test, outcome = case.get("name", "").partition("[")[0], _outcome(case)
        for name in (test, case.get("classname", "").rpartition(".")[2]):
            results.setdefault(name, Counter())[outcome] += 1
    yield from results.items()


def _name(test: str) -> str:
    """Returns the name of one test, or of the file whose tests all belong to a finding."""
    file, _, name = test.partition("::")
    return name or Path(file).stem


def _outcome(case: ElementTree.Element) -> str:
    if case.find("skipped") is not None:
        return "skipped"
    failure = next((mark for name in ("failure", "error") if (mark := case.find(name)) is not None), None)
    if failure is None:
        return "held"
    if ENDED in f"{failure.get('message')} {failure.text}":
        return "through"
    if failure.get("message", "").startswith(NO_SUCH_ANSWER):
        return "not comparable"
    return "through" if failure.get("message", "").startswith(THROUGH) else "not comparable"


def table(results: Results) -> Iterator[str]:
    yield "| finding | class | tries | got through | not comparable |"
    yield "|---|---|---|---|---|"
    total = Counter[str]()
    for finding in FINDINGS:
        counts = Counter[str]()
        for test in finding.tests:
            counts += results.get(_name(test), Counter({"not comparable": 1}))
        total += counts
        yield _row(finding.number, finding.title, counts)
    yield _row("", "together", total)


def _row(number: str, title: str, counts: Counter[str]) -> str:
    tries = counts["through"] + counts["held"]
    return f"| {number} | {title} | {tries} | {counts['through']} | {counts['not comparable']} |"


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("revision", nargs="?")
    reader.add_argument("-n", dest="processes", type=int, default=2)
    options = reader.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tree = overlaid(options.revision, Path(scratch)) if options.revision else TOP
        print("\n".join(table(run(tree, options.processes))))


if __name__ == "__main__":
    main()
