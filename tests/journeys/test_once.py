"""What one message costs inside the program: the model reads a file, edits it after a Gate, and answers."""

from benchmarks.trace import trace


def test_what_a_turn_needs_is_made_once_and_what_small_models_need_is_not_made() -> None:
    figures = trace(typed=True).figures()
    assert figures["actions"] == figures["argument_checks"] == 3
    assert figures["make_profile"] == figures["form_of"] == 1
    assert figures["read_line"] == figures["read_answer"] == 1, "the yes that was typed"
    assert figures["errand"] == figures["read_decision"] == figures["decision_schema"] == 0
