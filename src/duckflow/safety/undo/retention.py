"""What is forgotten, so that undo does not fill the disk: the oldest turns."""

from duckflow.safety.undo.settings import MB
from duckflow.safety.undo.site import Site
from duckflow.safety.undo.turn import UndoTurn

SLACK = 5
"""Turns are forgotten when this share of the allowed number has come on top of it."""


def retain(site: Site, current: UndoTurn) -> None:
    """Forget turns beyond the allowed number, then until little enough is kept. The current turn always stays.

    Sweeping looks at everything that is kept, so turns are forgotten some at a time and not one with every turn."""
    older = [turn for turn in site.ledger.oldest_first() if turn != current]
    beyond = len(older) + 1 - site.settings.kept_turns
    excess = older[:beyond] if beyond > site.settings.kept_turns // SLACK else []
    for turn in excess:
        site.ledger.forget(turn)
    if excess or site.database.size > site.settings.kept_mb * MB:
        _sweep(site)
    for turn in older[len(excess) :]:
        if site.database.size <= site.settings.kept_mb * MB:
            return
        site.ledger.forget(turn)
        _sweep(site)


def _sweep(site: Site) -> None:
    """Drop contents that neither a turn nor the next command's undo needs."""
    needed = site.ledger.blobs() | {seen.fact.blob for seen in site.baseline.entries.values()}
    site.vault.forget_all_but(needed)
