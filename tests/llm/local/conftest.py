"""A real small model for the tests: from the user's cache, else pulled into it once."""

import os
from pathlib import Path

import pytest

from duckflow.llm.local.weights import Weights, default_folder


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return Weights(default_folder(os.environ), os.environ).pull("smollm2-135m")
