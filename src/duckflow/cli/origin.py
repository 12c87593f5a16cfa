"""Where a value came from, in words."""

from duckflow.config.load import FROM_ENVIRONMENT
from duckflow.i18n.words import Words


def told_origin(name: str, origin: str, words: Words) -> str:
    """A file's path, or the environment with its variable, or the command line; nothing stands for the default."""
    match origin:
        case "":
            return words("origin.default")
        case "environment":
            variable = next((one for one, setting in FROM_ENVIRONMENT.items() if setting == name), "")
            return words("origin.environment", variable=variable)
        case "command line":
            return words("origin.flag")
        case _:
            return origin
