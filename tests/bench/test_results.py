"""The page of results says what was recorded, and nothing else."""

from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any

from benchmarks.results import PAGE, RECORDED, newest_page
from benchmarks.runaway import adapt


def test_the_page_is_made_of_the_newest_record() -> None:
    assert PAGE.read_text("utf-8") == newest_page()
    assert f"results/{max(RECORDED.glob('*.jsonl')).name}" in PAGE.read_text("utf-8")


def test_of_two_lines_for_the_same_the_later_one_counts() -> None:
    assert newest_page().count("`runaway`, duckflow ") == 1


def first_like(names: dict[str, Any], *words: str) -> str | None:
    return next((name for word in words for name in names if word in name), None)


class Offered:
    """The tools of a request, as the scorer reads them."""

    folder: Any = None

    def __init__(self, tools: dict[str, Any]) -> None:
        self.tools = tools

    def fields(self, name: str) -> Any:
        return self.tools[name]

    def filled(self, name: str, values: dict[str, Any]) -> Any:
        return name, values


class Model:
    """A model of the scorer, which gives relative paths."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.native = Offered(request["tools"])

    def _call(self, kind: str, what: str) -> Any:
        return kind, what

    def call(self, kind: str, what: str) -> Any:
        return self._call(kind, what)


def test_a_scripted_model_gives_a_program_the_paths_and_tools_it_takes() -> None:
    oracle = SimpleNamespace(Native=Offered, named=first_like)
    runaway = SimpleNamespace(Speaker=Model)
    adapt(oracle, runaway)
    tools = {"todowrite": {}, "write": {"filePath": "an absolute path"}, "edit": {"path": "a path"}}
    model = Model({"tools": tools, "messages": [f"You are in {gettempdir()}/tmpa_b/work, with git."]})
    assert runaway.named(tools, "write") == "write"
    assert model.native.filled("write", {"filePath": "a.py"}) == (
        "write",
        {"filePath": f"{gettempdir()}/tmpa_b/work/a.py"},
    )
    assert model.native.filled("edit", {"path": "a.py"}) == ("edit", {"path": "a.py"})
    assert model.call("grep", "lost words") == ("run", "grep -rn 'lost words' .")
