"""One value changes in the user's file; everything else stays as it was written."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.config.edit import remove_value, set_value
from duckflow.config.toml_text import read_key, write_value
from duckflow.errors import UsageError

FILE = """\
# mine
language = "en"  # not "ja"

[llm]
# model = "x"
tries = 3 # few
[sandbox]
writable = [
  "~/a", # one = 1
]
"""


@pytest.mark.parametrize(
    ("key", "value", "was", "is_now"),
    [
        ("language", "ja", 'language = "en"  # not', 'language = "ja"  # not'),
        ("llm.tries", 5, "tries = 3 # few", "tries = 5 # few"),
        ("llm.model", "y", '# model = "x"\n', '# model = "x"\nmodel = "y"\n'),
        ("llm.window", 9, "# few\n", "# few\nwindow = 9\n"),
        ("sandbox.writable", ["~/b"], '[\n  "~/a", # one = 1\n]', '["~/b"]'),
        ("ui.emoji", False, "\n]\n", "\n]\n\n[ui]\nemoji = false\n"),
        ('llm.prices."gpt-5.1".input', 1.5, "\n]\n", '\n]\n\n[llm.prices."gpt-5.1"]\ninput = 1.5\n'),
    ],
)
def test_the_value_is_set_and_the_comments_stay(key: str, value: object, was: str, is_now: str) -> None:
    assert set_value(FILE, read_key(key), value) == FILE.replace(was, is_now)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("", "language", 'language = "ja"\n'),
        ("[llm]\ntries = 1", "language", 'language = "ja"\n[llm]\ntries = 1\n'),
        ("llm.tries = 1\r\n", "llm.model", 'llm.tries = 1\r\nllm.model = "ja"\r\n'),
        (
            "[a]\nx = '''\n[llm]\nmodel = 1\n'''\n",
            "llm.model",
            "[a]\nx = '''\n[llm]\nmodel = 1\n'''\n\n[llm]\nmodel = \"ja\"\n",
        ),
    ],
)
def test_a_value_is_set_in_odd_layouts(text: str, key: str, expected: str) -> None:
    assert set_value(text, read_key(key), "ja") == expected


@pytest.mark.parametrize("text", ["llm = { tries = 1 }\n", "llm = 5\n"])
def test_a_change_without_a_safe_way_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        set_value(text, ("llm", "model"), "x")
    assert refusal.value.values["line"] == 'llm.model = "x"'


def test_a_table_is_written_without_unset_values() -> None:
    changed = set_value("", read_key('llm.prices."a:b"'), {"input": 1.0, "cached": None})
    assert tomllib.loads(changed) == {"llm": {"prices": {"a:b": {"input": 1.0}}}}


def test_a_value_can_be_removed() -> None:
    assert remove_value(FILE, ("llm", "tries")) == FILE.replace("tries = 3 # few\n", "")
    with pytest.raises(UsageError):
        remove_value(FILE, ("llm", "model"))


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.booleans() | st.integers(-(2**60), 2**60) | st.lists(st.text("a\"'\\\n#=")),
)
def test_every_written_value_is_read_back(text: str, other: object) -> None:
    assert tomllib.loads(f"a = {write_value(text)}\nb = {write_value(other)}") == {"a": text, "b": other}
    assert tomllib.loads(set_value(FILE, ("llm", "model"), text))["llm"] == {"tries": 3, "model": text}
