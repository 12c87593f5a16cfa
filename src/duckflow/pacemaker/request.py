"""Reads what a request names: files, series of files, folders, and words of their names."""

import re

TERM = r"[a-z_]{4,}|[一-龠]{2,}|[ァ-ヶー]{3,}"
"""Matches a word that may name something, in any language."""
WORD = r"[A-Za-z0-9_-]+"
NAMED_FILE = r"[\w-]{2,}\.[A-Za-z]\w*"
NUMBER = r"[0-9]+"
ANY_NUMBER = r"[0-9]+|(?<![A-Za-z])[NX]+(?![A-Za-z])"
STEM = 3
LONG_WORD = 5
"""The fewest letters of an English word that can connect a changed text with the request."""


class UserRequest:
    """The user's request, with the goal and the plan if there are any."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = re.findall(WORD, text)
        self._terms = set(re.findall(TERM, text.casefold()))
        self.names_places = bool(re.search(NAMED_FILE, text))
        """True if the request names any file, so that work on other files may have nothing to do with it."""

    def names_file(self, path: str) -> bool:
        """Says whether the request names a file: by its name, its stem, or as one of a series (`m_01.py to m_24.py`,
        `m_NN.py`)."""
        name, stem = path.rpartition("/")[2], stem_of(path)
        if name in self._text or (len(stem) >= STEM and stem in self._words):
            return True
        name_pattern, numbers = re.sub(ANY_NUMBER, "#", stem), [int(number) for number in re.findall(NUMBER, stem)]
        if not numbers:
            return False
        words_like_it = [word for word in self._words if re.sub(ANY_NUMBER, "#", word) == name_pattern]
        numbers_of_words = [[int(number) for number in re.findall(NUMBER, word)] for word in words_like_it]
        if any(len(word_numbers) < len(numbers) for word_numbers in numbers_of_words):
            return True
        columns = zip(numbers, *numbers_of_words, strict=True)
        return bool(numbers_of_words) and all(min(others) <= number <= max(others) for number, *others in columns)

    def names_folder(self, path: str) -> bool:
        """Says whether the request names the folder of a file."""
        folder = path.rpartition("/")[0]
        return bool(folder) and f"{folder.rpartition('/')[2]}/" in self._text

    def asks_for(self, place: str) -> bool:
        """Says whether the request names a place, a folder that it lies in, or a word of its name."""
        *folders, name = place.split("/")
        words = re.findall(TERM, f"{' '.join(folders[-1:])} {name.replace('_', ' ')}".casefold())
        named_folders = {folder for folder in folders if len(folder) >= STEM}.intersection(self._words)
        return self.names_file(place) or bool(named_folders) or not self._terms.isdisjoint(words)

    def shares_words(self, text: str) -> bool:
        """Says whether a text and the request have a longer word in common."""
        words = set(re.findall(TERM, text.casefold())) & self._terms
        return any(len(word) >= LONG_WORD or not word.isascii() for word in words)


def stem_of(path: str) -> str:
    """Returns the file's name without folder and suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name
