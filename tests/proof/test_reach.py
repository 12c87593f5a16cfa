"""New names and keys without a mention are found; anything that may be a use counts as one."""

import pytest

from duckflow.proof.reach import new_names, unreached
from duckflow.safety.undo.facts import FileVersions

NEW = "def export_csv(rows):\n    return export_csv\n"


@pytest.mark.parametrize(
    ("text", "others", "found"),
    [
        (NEW, {}, ("export_csv",)),
        (NEW, {"cli.py": "export_csv([])"}, ()),
        (NEW, {"docs/use.md": "call `export_csv`"}, ()),
        (NEW, {"cli.py": "getattr(export, f'export_{kind}')"}, ()),
        ("@app.route('/x')\n" + NEW, {}, ()),
        ("@lru_cache(3)\n" + NEW, {}, ("export_csv",)),
        (NEW.replace("export_csv", "_export"), {}, ()),
        ("class Exporter:\n    def write_all(self):\n        pass\n", {"cli.py": "Exporter()"}, ("write_all",)),
        ("class Exporter(Base):\n    def write_all(self):\n        pass\n", {"cli.py": "Exporter()"}, ()),
        ("class Exporter:\n    @property\n    def rows_left(self):\n        return 1\n", {"cli.py": "Exporter()"}, ()),
        (NEW, {".coveragerc": "plugins =\n    export\n"}, ()),
        (NEW, {".coveragerc": "plugins =\n    export\n", "cli.py": "import export"}, ("export_csv",)),
        (NEW, {"notes.md": "We export much."}, ("export_csv",)),
    ],
)
def test_only_names_without_a_mention_are_unreached(text: str, others: dict[str, str], found: tuple[str, ...]) -> None:
    names = new_names([FileVersions("export.py", b"", text.encode())])
    assert unreached(names, {"export.py": text, **others}) == found


@pytest.mark.parametrize(("older", "told"), [(2, ("NewLocale",)), (3, ())])
def test_nothing_is_said_where_names_without_a_mention_are_usual(older: int, told: tuple[str, ...]) -> None:
    """Subclasses that a registry finds by itself stand beside each other, and no other line names them."""
    before = "".join(f"class Old{number}Locale:\n    names = []\n\n" for number in range(older))
    text = before + "class NewLocale:\n    names = []\n"
    names = new_names([FileVersions("locales.py", before.encode(), text.encode())])
    assert unreached(names, {"locales.py": text}) == told


@pytest.mark.parametrize(
    ("base", "told"),
    [
        ("class Base:\n    kinds = []\n    def __init_subclass__(cls):\n        Base.kinds.append(cls)\n", ()),
        ("class Base(metaclass=Kinds):\n    pass\n", ()),
        ("class Base:\n    pass\n\n\ndef kinds():\n    return Base.__subclasses__()\n", ()),
        ("class Base(metaclass=ABCMeta):\n    pass\n", ("CsvExporter",)),
        ("class Base:\n    pass\n", ("CsvExporter",)),
    ],
)
def test_a_class_that_its_base_may_know_is_reached(base: str, told: tuple[str, ...]) -> None:
    text = "class CsvExporter(exporters.Exporter):\n    pass\n"
    names = new_names([FileVersions("export.py", None, text.encode())])
    others = {"exporters.py": "class Exporter(Base):\n    pass\n", "base.py": base}
    assert unreached(names, {"export.py": text, **others}) == told


def test_a_name_that_was_only_moved_is_not_new() -> None:
    changes = [FileVersions("old.py", NEW.encode(), b""), FileVersions("new.py", None, NEW.encode())]
    assert new_names(changes) == []


READER = "read('{}')\nfor key in ('host', 'port', 'max_tries'):\n    use(host, port, max_tries)\n"


@pytest.mark.parametrize(
    ("path", "older", "line"),
    [
        ("app.toml", "host = 1\nport = 2\nmax-tries = 3\n", "max-rows = 5\n"),
        ("app.toml", "[web]\nhost = 1\nport = 2\nmax_tries = 3\n", '"max_rows" = 5\n'),
        ("etc/app.ini", "[web]\nhost = 1\nport = 2\nmax_tries = 3\n", "max_rows=5\n"),
        ("app.cfg", "host = 1\nport = 2\nmax_tries = 3\n", "  max_rows = 5\n"),
        ("app.json", '{\n "host": 1,\n "port": 2,\n "max_tries": 3', ',\n "max_rows": 5\n}\n'),
        ("app.json", '{ "host": 1\n, "port": 2\n, "max_tries": 3', '\n, "max_rows": 5 }\n'),
        ("app.yaml", "web:\n  host: 1\n  port: 2\n  max_tries: 3\n", "  max_rows: 5\n"),
        ("app.yml", "host: 1\nport: 2\nmax_tries: 3\n", "max-rows:\n  - 5\n"),
        (
            "app.py",
            "class WebSettings(Base):\n    host: str\n    port: int\n    max_tries = 3\n",
            "    max_rows: int = 5\n",
        ),
        (
            "app.py",
            "@dataclass\nclass Config:\n    host: str\n    port: int\n    max_tries: int\n",
            "    max_rows: int\n",
        ),
        ("app.py", "class Options:\n    host = ''\n    port = 1\n    max_tries = 3\n", "    max_rows = 5\n"),
    ],
)
def test_a_key_that_nothing_reads_is_told_where_the_keys_beside_it_are_read(path: str, older: str, line: str) -> None:
    text, name = older + line, "max-rows" if "-rows" in line else "max_rows"
    names = new_names([FileVersions(path, older.encode(), text.encode())])
    reader = READER.format(path.rpartition("/")[2])
    assert unreached(names, {path: text, "main.py": reader}) == (name,)
    assert unreached(names, {path: text, "main.py": reader + "use(max_rows)\n"}) == ()
    assert unreached(names, {path: text, "main.py": reader, "README.md": f"`{name}`: how many rows"}) == ()
    for_others = reader.replace("max_tries", "")
    assert unreached(names, {path: text, "main.py": for_others}) == (), "another key is read by nobody either"


@pytest.mark.parametrize(
    ("path", "older", "others"),
    [
        ("lint.toml", "host = 1\nport = 2\nmax_tries = 3\n", {"main.py": "use(host, port, max_tries)"}),
        ("app.toml", "host = 1\nport = 2\n", {"main.py": READER.format("app.toml")}),
        ("pyproject.toml", "host = 1\nport = 2\nmax_tries = 3\n", {"main.py": READER.format("pyproject.toml")}),
        (
            "app.toml",
            "host = 1\nport = 2\nmax_tries = 3\n" + "".join(f"key_{number} = 1\n" for number in range(300)),
            {"main.py": READER.format("app.toml") + "".join(f"use(key_{number})\n" for number in range(300))},
        ),
        ("tests/app.toml", "host = 1\nport = 2\nmax_tries = 3\n", {"main.py": READER.format("app.toml")}),
    ],
)
def test_keys_that_another_program_may_read_are_not_told(path: str, older: str, others: dict[str, str]) -> None:
    text = older + "max_rows = 5\n"
    names = new_names([FileVersions(path, older.encode(), text.encode())])
    assert unreached(names, {path: text, **others}) == ()


def test_other_languages_are_read_by_pattern() -> None:
    text = "export function exportCsv(rows) {\n}\n\nconst widen = (x) => x\n"
    assert [new.name for new in new_names([FileVersions("a.ts", None, text.encode())])] == ["exportCsv", "widen"]
