"""A model file of a few bytes, for the tests of downloads."""

import hashlib

from duckflow.llm.local.catalogue import LocalModel, Part


def tiny_model(content: bytes, parts: tuple[Part, ...] = ()) -> LocalModel:
    return LocalModel(
        name="tiny",
        file="tiny.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        context=512,
        parts=parts,
        hub="someone/tiny",
    )
