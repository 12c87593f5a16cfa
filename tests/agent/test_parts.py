"""The parts that a request asks for."""

import pytest

from duckflow.agent.led.parts import OwedPart, parts


def told(part: OwedPart) -> str:
    about = part.command or ("?" if part.unclear else "tests" if part.tests else ",".join(part.files))
    return f"{part.kind} {about}".strip()


@pytest.mark.parametrize(
    ("request_", "owed"),
    [
        ("Write fizz.py that prints FizzBuzz, then run it", ["write fizz.py", "run fizz.py"]),
        ("Make a.py and b.py, and execute b.py.", ["write a.py", "write b.py", "run b.py"]),
        ("Write a script that prints the date and start it", ["write", "run"]),
        ("Run main.py and fix the error in calc.py", ["run main.py", "write calc.py"]),
        ("Fix calc.py and run `make check FAST=1`", ["write calc.py", "run make check FAST=1"]),
        ("Update a.py, then run pytest -q tests/test_a.py", ["write a.py", "run pytest -q tests/test_a.py"]),
        ("Update a.py and test it", ["write a.py", "run tests"]),
        ("Update a.py and make sure that all the tests still pass.", ["write a.py", "run tests"]),
        ("Update a.py, and see whether the unit tests are green", ["write a.py", "run tests"]),
        ("Update a.py and verify the program still runs", ["write a.py", "run a.py"]),
        ("Create a.py and tell me its output", ["write a.py", "run a.py", "answer"]),
        ("Run the linter and fix app.py", ["run ?", "write app.py"]),
        ("Could you write a.py and run the new script please?", ["write a.py", "run a.py"]),
        ("Read notes.md and summarize it", ["answer"]),
        ("Rename a.txt to b.txt and show it", ["deed a.txt,b.txt", "answer"]),
        ("Find all csv files and count them", ["look", "answer", "look", "answer"]),
        ("Delete a.txt. Which files are left?", ["deed a.txt"]),
        ("fizz.py を書いて、実行して", ["write fizz.py", "run fizz.py"]),
        ("fizz.py を作成し、動作確認をお願いします", ["write fizz.py", "run fizz.py"]),
        ("a.py を書いて、そのプログラムを実行してもらえますか？", ["write a.py", "run a.py"]),
        ("リンターを実行して、a.py を直して", ["run ?", "write a.py"]),
        ("main.py を実行して、結果を教えて", ["run main.py", "answer"]),
        ("main.py を実行してから calc.py を直してください", ["run main.py", "write calc.py"]),
        ("calc.py を直して、`make check` を実行してください", ["write calc.py", "run make check"]),
        ("a.txt の名前を b.txt に変えて、中身を見せて", ["deed a.txt,b.txt", "answer"]),
        ("csv ファイルを探して、いくつあるか教えて", ["look", "answer", "answer"]),
        ("a.py を直して、テストが通るか確認してください", ["write a.py", "run tests"]),
        ("a.py を直して、テストして", ["write a.py", "run tests"]),
        ("a.py を直して、ちゃんと動くことを確認して", ["write a.py", "run a.py"]),
        ("スクリプトを書いて、試してください", ["write", "run"]),
    ],
)
def test_a_request_is_taken_apart_in_its_order(request_: str, owed: list[str]) -> None:
    assert [told(part) for part in parts(request_).owed] == owed


@pytest.mark.parametrize(
    "request_",
    [
        "Write a.py but don't run it",
        "When I run app.py it fails. Fix app.py.",
        "Write count.py to read data.csv and count the rows",
        "Write a.py that can list files and run each of them",
        'Write a.py that prints "please run it, then tell me"',
        "Add a dry-run option to a.py",
        "Start over with a.py, then rewrite a.py",
        "Fix a.py. This is what I did:\n```\nrun it, then run it again\n```",
        "数えて表示する a.py を書いて",
        "a.py を実行するとエラーになります。a.py を直してください",
        "実行しないで a.py を書いて",
        "a.py を実行してもエラーが出ないように直して",
        "Fix a.py. " + "Somebody said: go and run it. " * 20,
    ],
)
def test_things_that_are_only_mentioned_are_not_ordered(request_: str) -> None:
    assert all(part.kind == "write" for part in parts(request_).owed)


@pytest.mark.parametrize(
    ("request_", "whole"),
    [
        ("Write a.py and run it", True),
        ("Write a.py, run it and commit it", False),
        ("Write a poem and explain it", False),
        ("Run the linter", False),
        ("Remove the second function from a.py and run the tests", False),
        ("a.py を書いて、実行して、コミットして", False),
        ("a.py を書いて、そのあと実行して", True),
    ],
)
def test_a_request_for_nothing_but_its_parts_is_recognised(request_: str, whole: bool) -> None:
    assert parts(request_).whole == whole
