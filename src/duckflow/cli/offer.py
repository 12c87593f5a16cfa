"""`python -m duckflow.cli.offer` writes what the model is told of every tool into the package; `make fix` runs it."""

from pathlib import Path

from duckflow.cli.wire import Sandboxes, Wiring, make_tools
from duckflow.config.settings import Settings
from duckflow.events.types import Event
from duckflow.store.paths import Paths
from duckflow.tools.offer import FILE, described
from duckflow.tools.toolbox import Toolbox
from duckflow.ui.i18n.words import Words


def offer() -> str:
    """The text that the file must have."""
    wiring = Wiring(Settings(), Paths.of_user(), Path.cwd(), Words("en"))
    toolbox = Toolbox((), lambda: make_tools(wiring, Sandboxes(wiring, _unheard)))
    return described(toolbox.all())


def _unheard(event: Event) -> None:
    """Nothing is run, so nobody needs to hear."""


if __name__ == "__main__":
    FILE.write_text(offer(), encoding="utf-8")
