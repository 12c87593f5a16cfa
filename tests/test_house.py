"""The rules of the house: rooms stay small, names say what things are, both languages say the same."""

import ast
import re
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from benchmarks.house import SMALL, TOP, House, length, read_house
from tests.conftest import TABLES, long_tests

SOURCE = TOP / "src/duckflow"
LANGUAGES = SOURCE / "i18n"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
BANNED_NAMES = {"utils", "helpers", "manager", "core"}
SILENCED = re.compile(r"#\s*(type:\s*ignore|pyright:\s*ignore|noqa|TODO|FIXME|XXX)")


MAY_BE_SHORT = ("duckflow.agent.policies.", "duckflow.agent.led.", "duckflow.tools.")
PROGRAM = 'if __name__ == "__main__":'


@pytest.fixture(scope="module")
def house() -> House:
    return read_house(SOURCE)


def test_a_file_is_at_most_400_lines_a_class_250_and_the_loop_30(house: House) -> None:
    assert [name for name, module in house.modules.items() if module.lines > 400] == []
    classes = ((module.name, node) for module in house.modules.values() for node in module.classes)
    assert [(name, node.name) for name, node in classes if length(node) > 250] == []
    (loop,) = (node for node in house.modules["duckflow.agent.turn"].functions if node.name == "_loop")
    assert length(loop) <= 30


def test_a_module_says_what_it_is_and_silences_no_check(house: House) -> None:
    modules = house.modules.items()
    assert [name for name, module in modules if not ast.get_docstring(module.tree)] == []
    assert [name for name, module in modules if SILENCED.search(module.text)] == []
    assert [name for name in house.modules if BANNED_NAMES & set(name.split("."))] == []


def test_a_short_module_is_needed_in_three_places_or_lives_where_it_is_used(house: House) -> None:
    """Policies of a turn, tools, and programs of their own may be short."""
    short = {
        name
        for name, module in house.modules.items()
        if module.lines < SMALL and house.importers[name] < 3
        if module.path.name not in ("__init__.py", "__main__.py") and PROGRAM not in module.text
        if not name.startswith(MAY_BE_SHORT)
    }
    assert short == set()


def test_no_class_name_is_there_twice(house: House) -> None:
    assert house.doubled_classes == {}


def test_no_module_gives_a_name_twice(house: House) -> None:
    """The second meaning of a constant would replace the first one everywhere in the module."""
    twice = set[tuple[str, str]]()
    for name, module in house.modules.items():
        targets = [target for node in module.tree.body if isinstance(node, ast.Assign) for target in node.targets]
        given = Counter(target.id for target in targets if isinstance(target, ast.Name))
        twice |= {(name, constant) for constant, times in given.items() if times > 1}
    assert twice == set()


def test_nothing_imports_in_a_circle_not_even_later_or_for_types_only(house: House) -> None:
    assert house.module_cycles == []
    assert house.package_cycles == []
    assert house.lazy_cycles == []


def test_only_who_builds_a_conversation_knows_the_terminal(house: House) -> None:
    """The settings are composed of each room's own."""
    knowing = {
        (module.name, name)
        for module in house.modules.values()
        for name in module.imported
        if module.room not in ("ui", "cli", "api") and name.startswith("duckflow.ui.")
    }
    assert knowing == {("duckflow.config.settings", "duckflow.ui.settings")}


def test_front_ends_draw_items_and_interpret_no_events(house: House) -> None:
    """`remote` keeps what the conversation in another process knows."""
    rooms = ("ui", "editor", "server", "telemetry", "fleet", "web", "commands", "remote", "cli")
    reading = {name for name, module in house.modules.items() if module.room in rooms and house.interprets(module)}
    assert reading == {"duckflow.remote.conversation", "duckflow.remote.mirror"}


def test_processes_are_spawned_in_one_place(house: House) -> None:
    """What cannot wait in an event loop (a thread, a terminal's editor, a process that outlives this one) has Python's
    own `subprocess`."""
    spawning = {name for name, module in house.modules.items() if "create_subprocess" in module.text}
    assert spawning == {"duckflow.programs.launch"}


def test_no_pattern_needs_a_later_python(house: House) -> None:
    """Python 3.11.2, as plain Debian has it, matches groups that give nothing back (`(…)++`, `(?>…)`) wrongly."""
    texts = {name: module.text for name, module in house.modules.items()}
    texts |= {str(path): path.read_text(encoding="utf-8") for path in LANGUAGES.glob("*/patterns/*.txt")}
    assert not [name for name, text in texts.items() if re.search(r"\(\?>|\)[*+?}]\+(?!,)", text)]


def test_both_languages_have_the_same_templates_with_the_same_placeholders() -> None:
    english = {path.name: path for path in (LANGUAGES / "en/prompts").iterdir()}
    japanese = {path.name: path for path in (LANGUAGES / "ja/prompts").iterdir()}
    assert english.keys() == japanese.keys()
    for name, path in english.items():
        assert placeholders(path) == placeholders(japanese[name]), name


def placeholders(path: Path) -> set[str]:
    return set(PLACEHOLDER.findall(path.read_text(encoding="utf-8")))


def test_agents_file_stays_short() -> None:
    assert len((TOP / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_nothing_names_a_download_address() -> None:
    for path in (TOP / "constraints").iterdir():
        assert "://" not in path.read_text(encoding="utf-8"), path.name


def test_pins_name_the_extras_that_packages_ask_for() -> None:
    """An older pip takes a pin without the extra for another package, and wants the newest release of it."""
    pins = (TOP / "constraints/dev.txt").read_text(encoding="utf-8").splitlines()
    pinned = {pin.split("==")[0] for pin in pins if "==" in pin}
    names = {pin.split("[")[0] for pin in pinned}
    # A virtual environment may still hold packages that are no longer pinned.
    installed = (package for package in distributions() if package.name.lower().replace("_", "-") in names)
    wanted = [Requirement(text) for package in installed for text in package.requires or ()]
    for requirement in wanted:
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if requirement.extras and applies and requirement.name in names:
            assert f"{requirement.name}[{','.join(sorted(requirement.extras))}]" in pinned, str(requirement)


def test_few_files_ask_what_form_a_model_speaks_or_whether_it_is_small(house: House) -> None:
    """The form and the policies of a turn are chosen once; everybody else goes by them."""
    asking = {
        name
        for name, module in house.modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("led", "native_tools")
        if ast.unparse(node.value).endswith("profile")
    }
    assert asking == {
        "duckflow.agent.connection",
        "duckflow.agent.policies.policy",
        "duckflow.prompts.compile",
        "duckflow.work.agents",
        "duckflow.work.approval",
    }


def test_a_table_of_which_some_cases_are_tried_has_every_value_among_them(pytestconfig: pytest.Config) -> None:
    tables = pytestconfig.stash[TABLES].items()
    assert {name: places for name, table in tables if (places := table.never_tried())} == {}


def test_each_long_test_is_one_that_there_is() -> None:
    defined = {
        f"{file}::{node.name}"
        for file in {name.partition("::")[0] for name in long_tests()}
        for node in ast.walk(ast.parse((TOP / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert long_tests().keys() - defined == set()
