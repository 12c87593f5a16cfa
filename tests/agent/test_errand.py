"""The files that a request names, and whether it wants them written."""

import pytest

from duckflow.agent.led.errand import errand


@pytest.mark.parametrize(
    ("request_text", "writes"),
    [
        ("Read NOTES.md and implement the solution in tally.py.", ("tally.py",)),
        ("Create hello.py that prints hello, then read it back", ("hello.py",)),
        ("Fix the bug in src/app.py and show me main.py", ("src/app.py",)),
        ("write a summary of README.md into docs/short.md", ("docs/short.md",)),
        ("Add a test for calc.py", ()),
        ("Do not change config.py, but update loader.py", ("loader.py",)),
        ("explain what server.js does", ()),
        ("rename old.py to new.py", ()),
        ("Make a.py and b.py", ("a.py", "b.py")),
        ("we use Node.js and Python 3.11, e.g. for tests", ()),
        ("see https://example.org/page.html and say what you think", ()),
        ("Update `setup.cfg`. Use tox.ini as it is.", ("setup.cfg",)),
        ("NOTES.md を読んで、tally.py に実装してください。", ("tally.py",)),
        ("hello.pyを作って", ("hello.py",)),
        ("config.pyは変更しないで、loader.pyを直してください", ("loader.py",)),
        ("app.pyの説明をしてください", ()),
        ("prices.py の名前を list.py に変えてください", ()),
        ("古い.txt ではなく old.txt を消して", ()),
        ("Add Cart.remove(name) with a test", ()),
        ("Add an option 'indent' to Rule and Console.rule, and log it with console.log", ()),
        ("Cart.remove を追加してください", ()),
        ("Create conf/site.vhost and app.vue", ("conf/site.vhost", "app.vue")),
        ("", ()),
    ],
)
def test_a_file_counts_as_written_only_if_that_is_clearly_wanted(request_text: str, writes: tuple[str, ...]) -> None:
    assert errand(request_text).writes == writes


def test_every_named_file_is_known_once() -> None:
    assert errand("Read a.md, then change a.md and lib/b.py").names == ("a.md", "lib/b.py")


def test_files_to_be_moved_or_deleted_are_not_read() -> None:
    for text in ("Delete a.txt.", "rename a.txt to b.txt", "a.txt を削除して", "a.txt の名前を b.txt に変えて"):
        assert errand(text).names == (), text


@pytest.mark.parametrize(
    ("request_", "only"),
    [
        ("Read NOTES.md and implement the solution in tally.py. Keep the names.", True),
        ("Create hello.py that prints hello.", True),
        ("hello と表示する hello.py を作ってください。", True),
        ("Create hello.py that prints hello, then read it back.", False),
        ("Write tally.py and run it", False),
        ("Fix tally.py. Why does it fail?", False),
        ("tally.py を書いて、実行してください。", False),
        ("tally.py を直して、何が悪かったか教えて", False),
        ("Explain tally.py", False),
    ],
)
def test_a_request_for_nothing_but_writing_is_recognised(request_: str, only: bool) -> None:
    assert errand(request_).only_writes == only


@pytest.mark.parametrize(
    ("request_", "asks"),
    [
        ("What is this project?", True),
        ("このプロジェクトは何?", True),
        ("Explain what till.py does.", True),
        ("README.md の中身を見せてください。", True),
        ("Can you delete old.txt?", False),
        ("What would you change? Fix it.", False),
        ("old.txt を消してくれますか。", False),
        ("Create hello.py", False),
    ],
)
def test_a_request_that_is_only_a_question_is_recognised(request_: str, asks: bool) -> None:
    assert errand(request_).only_asks == asks
