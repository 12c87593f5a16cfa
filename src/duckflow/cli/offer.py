"""`python -m duckflow.cli.offer` writes what the model is told of every tool into the package; `make fix` runs it."""

import tempfile
from pathlib import Path

from duckflow.agent.session import begin
from duckflow.cli.wire import Wiring, wire
from duckflow.config.settings import Settings
from duckflow.i18n.words import Words
from duckflow.state.question import Answer, Question
from duckflow.store.paths import Paths
from duckflow.tools.offer import FILE, described


def offer() -> str:
    """The text that the file must have."""
    wiring = Wiring(Settings(), Paths.of_user(), Path.cwd(), Words("en"))
    with tempfile.TemporaryDirectory() as folder:
        session = begin(Path(folder) / "s.db", "s", Path.cwd(), "en")
        toolbox = wire(wiring, session, _nobody).toolbox
        text = described(toolbox.all())
        session.close()
    return text


async def _nobody(question: Question) -> Answer:
    """Nothing is run, so nobody is asked."""
    return Answer(choice="no")


if __name__ == "__main__":
    FILE.write_text(offer(), encoding="utf-8")
