"""A word of a command: what the program would get, and how sure that is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """`known`: `text` is exactly what the program gets. `plain`: and any shell would read it so."""

    text: str
    known: bool = True
    plain: bool = True
    origins: tuple[str, ...] = ()
    """Programs whose output is part of the word."""


UNKNOWN = Word("…", known=False, plain=False)
"""A word that is only there at run time, such as what xargs adds."""


def literal(text: str) -> Word:
    return Word(text)


def joined(words: tuple[Word, ...]) -> Word:
    """Several words as one text, as `eval` and `echo` make of them."""
    return Word(
        " ".join(word.text for word in words),
        all(word.known for word in words),
        all(word.plain for word in words),
        tuple(origin for word in words for origin in word.origins),
    )
