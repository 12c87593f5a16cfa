"""The evidence for a step is shown in the user's language."""

import pytest

from duckflow.i18n.words import Words
from duckflow.view.items import told_evidence


@pytest.mark.parametrize(
    ("on_record", "told"),
    [
        ("make test: exit code 0", "make test（終了コード 0）"),
        ("there: a.py, b.py; make: exit code 0", "存在: a.py, b.py; make（終了コード 0）"),
        ("コア実装: there: game.py", "コア実装: 存在: game.py"),
        ("✓ コア実装: 完了（there: game.py）", "✓ コア実装: 完了（存在: game.py）"),
        ("gone: old.py; in README.md: install", "なし: old.py; README.md の中: install"),
        ("echo there: no", "echo there: no"),
    ],
)
def test_evidence_is_put_into_words(on_record: str, told: str) -> None:
    assert told_evidence(on_record, Words("ja")) == told
    assert told_evidence(on_record, Words("en")) == on_record
