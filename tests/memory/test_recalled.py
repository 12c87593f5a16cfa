"""Automatic recall brings up only relevant messages of the archive."""

from duckflow.memory.archive_hit import ArchiveHit, select_relevant

ASKED = "Make the total of the shopping cart never negative"
SAID = "We decided that the shopping cart may have a negative total, never a negative price"
READ = "src/shop/cart.py: class Cart: total of the shopping cart, never negative"


def hit(session: str, text: str, operation: str = "") -> ArchiveHit:
    role = "tool" if operation else "user"
    return ArchiveHit(0, text, session, role, operation, 0.0, text, share=0.9)


def test_another_sessions_same_request_and_file_reads_are_not_recalled() -> None:
    found = [hit("before", ASKED), hit("before", READ, "file_ops.read_file"), hit("before", SAID)]
    assert [one.text for one in select_relevant(found, ASKED, "now")] == [SAID]
    assert len(select_relevant(found, ASKED, "before")) == 3, "of this one it does: it may have been pruned"
    assert len(select_relevant(found, f"{ASKED}, as I said before", "now")) == 3, "it is referred to"
