"""`duckflow doctor`: what is set up, what is not, and how to fix it."""
from duckflow.cli.arguments import Options
from duckflow.store.paths import Paths
from duckflow.ui.i18n.words import Words
def doctor(options: Options, words: Words, paths: Paths) -> int:
    return 0
