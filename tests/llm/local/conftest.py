"""A real small model for the tests: from the user's cache, else pulled into it once."""

import os
from pathlib import Path

import pytest

from duckflow.llm.local.weights import Weights
from duckflow.store.paths import Paths


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return Weights(Paths.of_user().models, os.environ).pull("smollm2-135m")
