"""Uses are told apart from names that are only spelled the same."""

from pathlib import Path

import pytest

from duckflow.code.store import CodeMap
from duckflow.code.uses import find_uses
from duckflow.safety.workspace import Workspace

PYTHON = {
    "shop/__init__.py": "from shop.till import Till, total\n",
    "shop/till.py": """\
class Till:
    def add(self, price): ...
    def close(self): return self.add(0)
class Drawer(Till):
    def open(self): self.add(1)
def total(items): return 0
def make() -> Till: return Till()
""",
    "shop/other.py": """\
class Bag:
    def add(self, thing): ...
def total(x): return x
def use(): Bag().add(1); total(2)
""",
    "use_import.py": "from shop.till import total\nprint(total([]))\n",
    "use_package.py": "from shop import total as t, Till\nt([])\nTill().add(1)\n",
    "use_module.py": "import shop.till\nshop.till.total([])\nfrom shop import other\nother.total(1)\n",
    "use_shadow.py": "from shop.till import total\ndef f(total):\n    return total\n",
    "use_typed.py": """\
from shop.till import Till, make
from shop.other import Bag
def a(till: Till, bag: Bag): till.add(1); bag.add(2)
def b(): made = make(); made.add(3)
class Holder:
    def __init__(self, till: "Till | None"): self.till = till
    def go(self): self.till.add(4)
def c(things: list[Till]):
    for one in things: one.add(5)
def d(anything): anything.add(6)
def e(x):
    if isinstance(x, Till): x.add(7)
""",
    "text.py": "# total([])\nnote = 'total'\ncall(total=1)\n",
}
SCRIPTS = {
    "src/money.ts": "export function total(a: number) { return a }\n"
    "export class Till { add(n: number) {} close() { this.add(0) } }\n",
    "src/other.ts": "export function total() {}\nexport class Bag { add() {} }\n",
    "src/a.ts": "import { total } from './money'\ntotal(1)\n// total(2)\n",
    "src/b.ts": "import { total } from './other'\ntotal()\n",
    "src/c.ts": "import { Till } from './money'\nfunction f() { const till = new Till(); till.add(1) }\n"
    "function g(x) { x.add(2) }\n",
}


def project(top: Path, files: dict[str, str]) -> CodeMap:
    for name, text in files.items():
        (top / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (top / "work" / name).write_text(text)
    code_map = CodeMap(Workspace(top / "work"), top / "map.db")
    code_map.refresh()
    return code_map


def places(code_map: CodeMap, qualified: str, path: str, means: str = "it") -> set[str]:
    name = qualified.rpartition(".")[2]
    [target] = [one for one in code_map.named(name) if one.qualified == qualified and one.path == path]
    uses = find_uses(code_map, target).uses
    return {f"{use.path}:{use.line}" for use in uses if use.means == means and use.role != "import"}


@pytest.fixture
def python(tmp_path: Path) -> CodeMap:
    return project(tmp_path, PYTHON)


def test_a_function_is_followed_through_imports_and_packages(python: CodeMap) -> None:
    assert places(python, "total", "shop/till.py") == {"use_import.py:2", "use_module.py:2"}
    assert places(python, "total", "shop/other.py") == {"shop/other.py:4", "use_module.py:4"}


def test_a_method_is_told_apart_by_what_its_object_is(python: CodeMap) -> None:
    found = places(python, "Till.add", "shop/till.py")
    own = {"shop/till.py:3", "shop/till.py:5", "use_package.py:3"}
    assert found == own | {f"use_typed.py:{line}" for line in (3, 4, 7, 9, 12)}
    assert places(python, "Till.add", "shop/till.py", "unsure") == {"use_typed.py:10"}
    assert "use_typed.py:3" in places(python, "Bag.add", "shop/other.py")


def test_a_member_of_an_unknown_object_means_the_only_definition_of_its_name(tmp_path: Path) -> None:
    files = {
        "a.py": "class A:\n    def unusual(self): ...\n",
        "b.py": "def f(x): x.unusual()\ndef g(unusual): unusual()\n",
    }
    assert places(project(tmp_path, files), "A.unusual", "a.py") == {"b.py:1"}


def test_a_function_in_a_function_is_no_member(tmp_path: Path) -> None:
    files = {"a.py": "def f():\n    def inner(): ...\n    inner()\n", "b.py": "def g(x): x.inner()\n"}
    assert places(project(tmp_path, files), "f.inner", "a.py") == {"a.py:3"}


def test_a_module_that_a_package_hands_on_is_followed(tmp_path: Path) -> None:
    files = {
        "nets/__init__.py": "from nets.algorithms import *\n",
        "nets/algorithms/__init__.py": "from nets.algorithms import pairs\n",
        "nets/algorithms/pairs.py": "def matrix(): ...\n",
        "nets/other.py": "def matrix(): ...\n",
        "use.py": "import nets as n\nn.pairs.matrix()\n",
    }
    code_map = project(tmp_path, files)
    assert places(code_map, "matrix", "nets/algorithms/pairs.py") == {"use.py:2"}
    assert places(code_map, "matrix", "nets/other.py") == set()


def test_imports_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    files = {
        "a.py": "from b import thing\nthing.go()\n",
        "b.py": "from a import thing\nthing.go()\n",
        "c.py": "class C:\n    def go(self): ...\nclass D:\n    def go(self): ...\n",
    }
    assert places(project(tmp_path, files), "C.go", "c.py", "unsure") == {"a.py:2", "b.py:2"}


def test_a_file_in_another_python_version_is_judged_by_its_text(tmp_path: Path) -> None:
    files = {"a.py": "def only(): ...\n", "old.py": "from a import only\nprint only()\n"}
    assert places(project(tmp_path, files), "only", "a.py") == {"old.py:2"}


def test_other_languages_go_by_imports_and_names_of_types(tmp_path: Path) -> None:
    scripts = project(tmp_path, SCRIPTS)
    assert places(scripts, "total", "src/money.ts") == {"src/a.ts:2"}
    assert places(scripts, "total", "src/other.ts") == {"src/b.ts:2"}
    assert places(scripts, "Till.add", "src/money.ts") == {"src/money.ts:2", "src/c.ts:2"}
    assert places(scripts, "Till.add", "src/money.ts", "unsure") == {"src/c.ts:3"}


def test_files_without_time_are_named(python: CodeMap) -> None:
    [target] = python.named("Till")
    assert find_uses(python, target, seconds=-1).not_looked_at[0] == "shop/till.py"
