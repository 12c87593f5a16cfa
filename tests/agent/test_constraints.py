"""Sentences of a request that forbid something, and sentences that only sound like it."""

import pytest

from duckflow.agent.session import constraints_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Add a menu. Don't change the tests.", ["Don't change the tests"]),
        ("Please do not use the network, or delete files.", ["Please do not use the network, or delete files"]),
        ("Write it without any dependencies", ["Write it without any dependencies"]),
        ("Use only the standard library. No new packages.", ["Use only the standard library", "No new packages"]),
        ("テストは変えないでください。メニューを足して", ["テストは変えないでください"]),
        ("外部ライブラリは使わずに書いて", ["外部ライブラリは使わずに書いて"]),
        ("README だけを編集して", ["README だけを編集して"]),
        ("直して。でもtestsは変えないで @shop/cart.py @b.py", ["testsは変えないで"]),
        ("README を直して。新しいファイルは作らないでね", ["新しいファイルは作らないでね"]),
        ("動かないです。忘れないで、気にしないで", []),
        ("I don't know why it fails", []),
        ("It doesn't work. Why don't you look?", []),
        ("心配しないで、急がないから", []),
        ("Don't you agree?", []),
        ("Explain `don't do this`\n```\ndo not run\n```", []),
        ("`--help` then shows a section with one row for each that has a text of its own, in their order, "
         "and without any row there is none.", []),
        ("Do not change `core.py`.", ["Do not change `core.py`"]),
        (
            "Add a menu with the entries file, edit and view, each with its own letter, in the order of the old one, "
            "and do not touch the tests.",
            ["do not touch the tests"],
        ),
        ("yes please, and don't ask for that", []),
        ("はい、もう聞かないでください", []),
        ("yes, but don't touch the tests", ["yes, but don't touch the tests"]),
        ("Make a plan. Don't start yet.", []),
        ("Look at it, but don't change anything until I say so", []),
        ("Please don't run it yet", []),
        ("Do not touch core.py, and don't start yet", ["Do not touch core.py, and don't start yet"]),
        ("計画を立ててください。まだ始めないでください。", []),
        ("まだ何も変えないで", []),
        ("Don't push it before the tests pass", ["Don't push it before the tests pass"]),
        ("Don't change the tests yet", ["Don't change the tests yet"]),
        ("まだテストは変えないで", ["まだテストは変えないで"]),
        ("やっぱり今のはなしで", []),
        ("先ほどの変更はなしでお願いします。", []),
        ("いや、それは消さないで", []),
        ("コメントはなしで", ["コメントはなしで"]),
        ("ほかは触らないで", ["ほかは触らないで"]),
        ("Oh, don't do that, undo it", []),
        ("Actually, please don't keep it.", []),
        ("No, don't change it, and take that back", []),
        ("Look at config.py. Don't change it.", ["Don't change it"]),
        ("don't push", ["don't push"]),
        ("", []),
    ],
)  # fmt: skip
def test_constraints_are_found(text: str, found: list[str]) -> None:
    assert constraints_in(text) == found
