"""What the user wants to keep above all, in words."""

from duckflow.memory.terms import terms
from duckflow.memory.unit import Unit


class Focus:
    """Weighs what stays by how much it has to do with the words."""

    def __init__(self, text: str) -> None:
        self._words = terms(text)

    def weight(self, unit: Unit) -> float:
        shared = self._words & terms(" ".join(one.message.text for one in unit.entries))
        return 1.0 + 4 * len(shared) / max(1, len(self._words))
