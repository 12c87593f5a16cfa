"""The plainest memory to compare with: the last messages that fit, and nothing is found again."""

from collections import deque

from benchmarks.real_tokens import real_tokens

MESSAGE_OVERHEAD = 4


class KeepLast:
    """Counts with the real tokenizer, so that it wastes no room."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._kept: deque[tuple[str, str, int]] = deque()
        self._tokens = 0

    def add(self, message_id: str, _: str, text: str) -> None:
        size = real_tokens(text) + MESSAGE_OVERHEAD
        self._kept.append((message_id, text, size))
        self._tokens += size
        while self._tokens > self._budget:
            self._tokens -= self._kept.popleft()[2]

    def context(self) -> list[tuple[str, str]]:
        return [(message_id, text) for message_id, text, _ in self._kept]

    def recall(self, _: str, __: int) -> list[str]:
        return []
