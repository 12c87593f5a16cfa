"""`@file` in what the user writes: which paths may be meant, told from addresses and decorators."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST = 10
LONGEST = 200
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
MENTION = re.compile(r'(?<![A-Za-z0-9_@./+-])[@＠](?:"([^"\n]{1,200})"|([^\s@＠"\'`<>|]+))')
ENDS = re.compile(r"[,;:!?)\]}。、！？」』）…]|\.(?=$|[,;:!?)\]}]|[^\x00-\x7f])|[^\x00-\x7f]")
"""What may stand right after a path."""
FILE_LIKE = re.compile(
    r"[\w~./-]*\w\.(?:py|md|txt|json|toml|ya?ml|cfg|ini|csv|tsv|log|xml|html?|css|[jt]sx?|go|rs|java|kt|c|h|cpp|cc|cs|rb"
    r"|php|swift|sh|sql|lock|ipynb)"
)
ELSEWHERE = ("~/", "../")


@dataclass(frozen=True, slots=True)
class Mention:
    """What stands behind an `@`: the paths it may be, the longest first."""

    paths: tuple[str, ...]

    @property
    def file_like(self) -> str:
        """The path that is meant when none of them exists, if it looks like one; a decorator or a name does not."""
        return next((path for path in self.paths if FILE_LIKE.fullmatch(path) or path.startswith(ELSEWHERE)), "")


def mentions(text: str) -> list[Mention]:
    """In the order of the text; what stands in code is code."""
    found = dict.fromkeys(_found(CODE.sub(lambda match: " " * len(match[0]), text)))
    return list(found)[:MOST]


def _found(text: str) -> Iterator[Mention]:
    for match in MENTION.finditer(text):
        quoted, bare = match[1], match[2]
        yield Mention((quoted,)) if quoted else Mention(tuple(_paths(bare[:LONGEST])))


def _paths(token: str) -> Iterator[str]:
    """The whole word, then what is left when what may follow a path is taken off: Japanese has no spaces."""
    yield token
    for length in range(len(token) - 1, 0, -1):
        if ENDS.match(token, length):
            yield token[:length]
