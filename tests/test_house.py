"""The rules of the house: rooms stay small, names say what things are, both languages say the same."""

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
SOURCE = TOP / "src/duckflow"
FILES = sorted(SOURCE.rglob("*.py"))
TEMPLATES = SOURCE / "prompts/templates"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
BANNED_NAMES = {"utils", "helpers", "manager", "core"}
SILENCED = re.compile(r"#\s*(type:\s*ignore|pyright:\s*ignore|noqa|TODO|FIXME|XXX)")


def named(path: Path) -> str:
    return str(path.relative_to(TOP))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_file_is_at_most_300_lines_its_classes_200_their_constructors_6_arguments(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            assert (node.end_lineno or 0) - node.lineno + 1 <= 200, node.name
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                    arguments = item.args.args[1:] + item.args.kwonlyargs
                    assert len(arguments) <= 6, f"{node.name} takes {len(arguments)}"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_module_says_what_it_is_and_silences_no_check(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module begins with one line that says what it is"
    assert not SILENCED.search(text)
    assert not BANNED_NAMES & set(path.relative_to(SOURCE).with_suffix("").parts)


def test_both_languages_have_the_same_templates_with_the_same_placeholders() -> None:
    english = {path.name: path for path in (TEMPLATES / "en").iterdir()}
    japanese = {path.name: path for path in (TEMPLATES / "ja").iterdir()}
    assert english.keys() == japanese.keys()
    for name, path in english.items():
        assert placeholders(path) == placeholders(japanese[name]), name


def placeholders(path: Path) -> set[str]:
    return set(PLACEHOLDER.findall(path.read_text(encoding="utf-8")))


def test_both_languages_describe_the_same_operations_in_the_same_order() -> None:
    def operations(language: str) -> list[str]:
        text = (TEMPLATES / language / "operations.md").read_text(encoding="utf-8")
        return [line.partition(":")[0] for line in text.splitlines()]

    assert operations("en") == operations("ja")


def test_agents_file_stays_short() -> None:
    assert len((TOP / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_nothing_names_a_download_address() -> None:
    for path in (TOP / "constraints").iterdir():
        assert "://" not in path.read_text(encoding="utf-8"), path.name
