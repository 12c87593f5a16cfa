"""What is empty leaves no trace."""

from duckflow.i18n.template import PLACEHOLDER, fill, load

TEMPLATE = "Head\nGoal: {goal}\nBoth: {a}, {b}\nRules:\n{rules}\nEnd"


def test_values_are_put_in() -> None:
    text = fill(TEMPLATE, {"goal": "g", "a": "1", "b": "", "rules": "r1\nr2"})
    assert text == "Head\nGoal: g\nBoth: 1, \nRules:\nr1\nr2\nEnd"


def test_an_empty_value_takes_its_line_and_its_label_with_it() -> None:
    assert fill(TEMPLATE, {"goal": "", "a": "", "b": "", "rules": ""}) == "Head\nEnd"


def test_braces_in_a_value_stay_as_they_are() -> None:
    assert fill("{goal}", {"goal": "{a} {{b}} {"}) == "{a} {{b}} {"


def test_every_note_for_the_model_is_there_in_both_languages_with_the_same_places_to_fill() -> None:
    english, japanese = (
        {
            name: set(PLACEHOLDER.findall(text))
            for name, _, text in (line.partition(": ") for line in load(language, "notes").split("\n"))
        }
        for language in ("en", "ja")
    )
    assert list(english) == list(japanese) and english == japanese
