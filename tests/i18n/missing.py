"""Prints what each language's folder lacks: there English is spoken. `make check` runs it, and does not fail by it."""

import json
import sys
from collections.abc import Iterator

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.words import FOLDER, languages, own_piece


def missing(language: str) -> Iterator[str]:
    """A line for each file that is missing, or that lacks entries of the default language's file."""
    for file in sorted(path for path in (FOLDER / DEFAULT_LANGUAGE).rglob("*") if path.is_file()):
        parts = file.relative_to(FOLDER / DEFAULT_LANGUAGE).parts
        own, whole = own_piece(language, *parts), file.read_text(encoding="utf-8")
        name = "/".join(parts)
        if not own:
            yield name
        elif name in ("words.json", "tools.json"):
            known, all_keys = json.loads(own), json.loads(whole)
            if lacking := len(all_keys.keys() - known.keys()):
                yield f"{name} ({lacking} of {len(all_keys)})"


if __name__ == "__main__":
    for language in languages():
        if pieces := list(missing(language)):
            sys.stdout.write(f"{language} speaks {DEFAULT_LANGUAGE} for want of: {', '.join(pieces)}\n")
