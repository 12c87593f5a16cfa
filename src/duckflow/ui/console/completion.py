"""Completions for the typed line: commands with their help, files, programs."""

import os
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

from prompt_toolkit.completion import Completion
from prompt_toolkit.document import Document

from duckflow.events.ports import Conversation
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words

MOST = 40


class LineCompletions:
    """Finds completions. Its methods are called in a thread of their own, since reading folders may take time."""

    def __init__(self, conversation: Conversation, words: Words) -> None:
        self._conversation = conversation
        self._words = words

    def of(self, document: Document) -> Iterator[Completion]:
        text_before = document.text_before_cursor
        word = document.get_word_before_cursor(WORD=True)
        if word.startswith(("@", "＠")):
            yield from self._files(word[1:].strip('"'), len(word), "@")
        elif text_before.startswith(("/", "／")):
            yield from self._slash(unicodedata.normalize("NFKC", text_before[1:]))
        elif text_before.startswith(("!", "！")):
            yield from self._shell(text_before[1:].lstrip(), word)

    def _slash(self, typed: str) -> Iterator[Completion]:
        name, space, typed_word = typed.partition(" ")
        if space:
            typed_command = next((command for command in self._conversation.commands if command.name == name), None)
            offered_words = map(str, typed_command.words) if typed_command else ()
            yield from (
                _completion(word, typed_word, word)
                for word in offered_words
                if word.startswith(typed_word) and word != typed_word
            )
            return
        beginning_commands = [command for command in self._conversation.commands if command.name.startswith(name)]
        containing_commands = [
            command
            for command in self._conversation.commands
            if name in command.name and command not in beginning_commands
        ]
        for command in [*beginning_commands, *containing_commands]:
            yield _completion(f"/{command.name}", f"/{name}", self._words.phrase(command.help))

    def _files(self, wanted: str, length: int, sign: str) -> Iterator[Completion]:
        for path in self._conversation.find_files(wanted, MOST):
            text = f'{sign}"{path}"' if " " in path else f"{sign}{path}"
            yield Completion(text, start_position=-length, display=plain(path))

    def _shell(self, typed: str, word: str) -> Iterator[Completion]:
        if " " in typed:
            yield from self._files(word, len(word), "") if word else ()
        elif typed:
            fitting_names = [name for name in programs(os.environ.get("PATH", "")) if name.startswith(typed)]
            yield from (Completion(name, start_position=-len(typed)) for name in fitting_names[:MOST])


def _completion(text: str, typed: str, help_text: str) -> Completion:
    return Completion(text, start_position=-len(typed), display=text, display_meta=plain(help_text))


@cache
def programs(path: str) -> list[str]:
    """Returns the names of all programs in the folders of `path`."""
    return sorted({name for folder in path.split(os.pathsep) for name in _runnable(folder)})


def _runnable(folder: str) -> Iterable[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if os.access(entry.path, os.X_OK) and not entry.is_dir()]
    except OSError:
        return []
