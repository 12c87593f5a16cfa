"""Both languages say everything, with the same values."""

import ast
import errno
import os
import re
from pathlib import Path
from typing import get_args

import pytest

import duckflow
from duckflow import errors
from duckflow.commands.table import Commands
from duckflow.i18n.words import Words, catalogue, language_of
from duckflow.state.action import Effect
from duckflow.state.data import say
from duckflow.state.mode import OFFERED
from duckflow.state.phase import Phase, Status

SOURCE = Path(duckflow.__file__).parent
PLACEHOLDER = re.compile(r"\{(\w+)(?::[^}]*)?\}")
SPEAKERS = {"say", "words", "_words", *(name for name, value in vars(errors).items() if isinstance(value, type))}


def keys_spoken() -> set[str]:
    """Every key that is handed to a phrase, an error or a lookup in the code."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        found |= {key for call in calls if _name(call) in SPEAKERS for key in map(_key, call.args[:2]) if key}
    return found


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _key(node: ast.expr) -> str:
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", text) else ""


def test_both_catalogues_have_the_same_keys_with_the_same_values() -> None:
    english, japanese = catalogue("en"), catalogue("ja")
    assert english.keys() == japanese.keys()
    for key, text in english.items():
        assert set(PLACEHOLDER.findall(text)) == set(PLACEHOLDER.findall(japanese[key])), key


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.ECONNREFUSED, errno.EADDRINUSE, errno.EROFS])
@pytest.mark.parametrize(("key", "value"), [("config.unwritable", "reason"), ("model.no_connection", "detail")])
def test_the_systems_own_words_for_an_error_are_translated(number: int, key: str, value: str) -> None:
    reason = os.strerror(number)
    for language, is_english in ("en", True), ("ja", False), ("de", True):
        told = Words(language)(key, **{"path": "x", "where": "x", value: reason})
        assert (reason in told) == is_english, told


def test_other_words_are_never_taken_for_the_systems() -> None:
    name = os.strerror(errno.EACCES)
    assert name in Words("ja")("quote", text=name)
    assert name in Words("ja")("config.unwritable", path=name, reason="-")


@pytest.mark.parametrize("effect", sorted({*get_args(Effect)} - {"talk"}))
def test_what_is_being_done_is_said_in_words(effect: str) -> None:
    doing = {language: Words(language)(f"wait.effect.{effect}") for language in ("en", "ja")}
    assert doing["en"].isascii() and "." not in doing["en"] and not doing["ja"].isascii()


def test_steps_and_how_they_go_are_said_in_words() -> None:
    keys = [f"status.phase.{phase.lower()}" for phase in Phase] + [
        f"status.going.{status.lower()}" for status in Status
    ]
    for key in keys:
        assert Words("en")(key).islower() and not Words("ja")(key).isascii(), key


def test_every_phrase_in_the_code_has_words() -> None:
    assert keys_spoken() - catalogue("en").keys() == set()


def test_every_command_and_mode_is_explained_in_both_languages() -> None:
    for language in ("en", "ja"):
        words = Words(language)
        for command in Commands(words):
            assert words.phrase(command.help) != command.help.key
        assert all(mode in words("command.mode") for mode in OFFERED)


def test_the_language_is_the_configured_one_else_the_locales_else_english(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    assert language_of("") == "en"
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert language_of("") == "ja"
    assert language_of("en") == "en"


def test_a_phrase_nobody_knows_is_shown_roughly_instead_of_failing() -> None:
    assert Words("en").phrase(say("from.the.future", path="a.py")) == "from.the.future a.py"


def test_braces_from_outside_are_plain_text() -> None:
    assert Words("en")("tool.failed", reason="{x} {0} {") == "Not done: {x} {0} {"


def test_a_single_thing_is_not_called_many() -> None:
    words = Words("en")
    assert words("file.read", path="a.py", lines=1) == "Read a.py (1 line)"
    assert words("file.read", path="a.py", lines=21) == "Read a.py (21 lines)"
    cost_line = words("cost.line", calls="1", sent="1", cached="0", fresh="1", received="2")
    assert cost_line.startswith("1 call to the model · 1 tokens")


def test_counted_nouns_have_a_singular() -> None:
    counted = (
        r"\{(?!limit)\w+\} (?:more )?(?:steps|tasks|files|turns|messages|jobs|lines|times|questions|results|plans)\b"
    )
    assert not {key: text for key, text in catalogue("en").items() if re.search(counted, text)}
    told = Words("en")("plan.title", name="Snake", status="draft", done=0, total=1)
    assert told == "Snake (draft, 0 of 1 step)"
    assert Words("en")("undo.spared", count=1, names="a") == "1 file that may be yours stays as it is: a"
