"""`python -m tests.tools.offer` writes what the tools say about themselves into the package; `make fix` runs it."""

import json
import tempfile
from pathlib import Path

from duckflow.agent.session import begin
from duckflow.cli.build import build_conversation
from duckflow.cli.setup import Setup
from duckflow.cli.toolset import GROUPS
from duckflow.config.settings import Settings
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import PACKAGED


def packaged_tools() -> list[AnyTool]:
    """Returns all tools that exist in every folder."""
    setup = Setup(Settings(), Paths.of_user(), Path.cwd(), Words("en"))
    with tempfile.TemporaryDirectory() as folder:
        session = begin(Path(folder) / "s.db", "s", Path.cwd(), "en")
        toolbox = build_conversation(setup, session).toolbox
        tools = [*toolbox.at_hand(), *(tool for group in GROUPS for tool in toolbox.group(group))]
        session.close()
    return tools


def offer() -> str:
    """Returns the text that the file must have."""
    described = [tool.describe().model_dump(exclude_defaults=True) for tool in packaged_tools()]
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PACKAGED.write_text(offer(), encoding="utf-8")
