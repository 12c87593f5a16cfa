"""Arguments split the usual way: options, their values, and operands."""

from collections.abc import Iterable
from dataclasses import dataclass

from duckflow.safety.commands.text.words import Word

SHORTEST_LONG = 3


@dataclass(frozen=True, slots=True)
class Options:
    """`given`: options one by one (`-rf` is `-r`, `-f`), each with its value, if it has one."""

    given: tuple[tuple[str, Word | None], ...]
    operands: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        return any(_means(option, name) for option, _ in self.given for name in names)

    def values(self, *names: str) -> list[Word]:
        return [value for option, value in self.given if value and any(_means(option, name) for name in names)]


def _means(option: str, name: str) -> bool:
    """Long options may be shortened: `--forc` is `--force`."""
    if option == name:
        return True
    return len(option) >= SHORTEST_LONG and option.startswith("--") and name.startswith(option)


def read_options(words: Iterable[Word], with_value: str = "", long_with_value: Iterable[str] = ()) -> Options:
    """`with_value`: letters of short options that take a value, attached or next."""
    given, operands = list[tuple[str, Word | None]](), list[Word]()
    waiting = list(words)[::-1]
    long_names = frozenset(long_with_value)
    while waiting:
        word = waiting.pop()
        text = word.text
        if text == "--":
            operands.extend(reversed(waiting))
            break
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            if equals:
                given.append((name, Word(value, word.known, word.plain, word.origins)))
            elif name in long_names and waiting:
                given.append((name, waiting.pop()))
            else:
                given.append((name, None))
        elif text.startswith("-") and len(text) > 1:
            _short(word, waiting, with_value, given)
        else:
            operands.append(word)
    return Options(tuple(given), tuple(operands))


def _short(word: Word, waiting: list[Word], with_value: str, given: list[tuple[str, Word | None]]) -> None:
    text = word.text
    for place, letter in enumerate(text[1:], 1):
        if letter in with_value:
            rest = text[place + 1 :]
            value = Word(rest, word.known, word.plain, word.origins) if rest else waiting.pop() if waiting else None
            given.append((f"-{letter}", value))
            return
        given.append((f"-{letter}", None))
