"""A call of git taken apart: options of git itself, the subcommand, and its arguments."""

from dataclasses import dataclass

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.text.words import Word

WITH_VALUE = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
    + ("--attr-source", "--list-cmds")
)


@dataclass(frozen=True, slots=True)
class GitCall:
    """`own`: options before the subcommand, each with its value."""

    own: tuple[tuple[str, str], ...]
    subcommand: str
    arguments: tuple[Word, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.arguments)


def read_git(call: Invocation) -> GitCall:
    own = list[tuple[str, str]]()
    words = list(call.arguments)
    while words:
        text = words.pop(0).text
        if text == "--":
            continue
        if not text.startswith("-"):
            return GitCall(tuple(own), text.lower(), tuple(words))
        name, equals, value = text.partition("=")
        if text[:2] in ("-C", "-c") and len(text) > 2 and not text.startswith("--"):
            own.append((text[:2], text[2:]))
        elif equals:
            own.append((name, value))
        elif name in WITH_VALUE and words:
            own.append((name, words.pop(0).text))
        else:
            own.append((name, ""))
    return GitCall(tuple(own), "", ())
