"""The evidence for a step is shown in the user's language."""

import pytest

from duckflow.i18n.words import Words
from duckflow.view.items import told_evidence


@pytest.mark.parametrize(
    ("on_record", "told", "in_english"),
    [
        ("make test: exit code 0", "make test（終了コード 0）", "make test: exit code 0"),
        (
            "there: a.py, b.py; make: exit code 0",
            "あることを確認: a.py, b.py; make（終了コード 0）",
            "exists: a.py, b.py; make: exit code 0",
        ),
        ("コア実装: there: game.py", "コア実装: あることを確認: game.py", "コア実装: exists: game.py"),
        (
            "✓ コア実装: 完了（there: game.py）",
            "✓ コア実装: 完了（あることを確認: game.py）",
            "✓ コア実装: 完了（exists: game.py）",
        ),
        (
            "gone: old.py; in README.md: install",
            "存在しないことを確認: old.py; README.md の中に確認: install",
            "does not exist: old.py; found in README.md: install",
        ),
        ("echo there: no", "echo there: no", "echo there: no"),
    ],
)
def test_evidence_is_put_into_words(on_record: str, told: str, in_english: str) -> None:
    assert told_evidence(on_record, Words("ja")) == told
    assert told_evidence(on_record, Words("en")) == in_english
