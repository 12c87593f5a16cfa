"""`duckflow config`: shows and changes settings, and says where each value came from."""

import errno
import json
import os
from pathlib import Path
from typing import Any

from duckflow.cli.parser import Options
from duckflow.config.edit import read_text, remove_value, set_value, write_text
from duckflow.config.load import FROM_ENVIRONMENT, PROJECT_FILE, Loaded, load, require_project_may
from duckflow.config.settings import Settings
from duckflow.config.toml_text import Key, read_key, write_key
from duckflow.config.value import explain_unknown_setting, list_setting_names, list_settings, parse_value, show_value
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, language_of
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_err, print_out


def describe_origin(name: str, origin: str, words: Words) -> str:
    """Describes where a value came from: a file's path, a variable of the environment, the command line, or the
    default."""
    match origin:
        case "":
            return words("origin.default")
        case "environment":
            variable = next((key for key, setting in FROM_ENVIRONMENT.items() if setting == name), "")
            return words("origin.environment", variable=variable)
        case "command line":
            return words("origin.flag")
        case _:
            return origin


def run_config(options: Options, words: Words, paths: Paths) -> int:
    match options.what:
        case "get":
            _get(options, words, paths)
        case "set":
            _set(options, words, paths)
        case "unset":
            _unset(options, words, paths)
        case _:
            return _list(options, words, paths)
    return 0


def _load(options: Options, words: Words, paths: Paths) -> Loaded:
    loaded_config = load(paths.user_config, Path.cwd(), {"language": options.lang})
    words.language = language_of(loaded_config.settings.language)
    return loaded_config


def _list(options: Options, words: Words, paths: Paths) -> int:
    """Lists the settings. If a config file cannot be understood, the problem is reported and the defaults are shown."""
    problem = None
    try:
        loaded_config = _load(options, words, paths)
    except UsageError as error:
        problem, loaded_config = error, Loaded(Settings(), {})
        print_err(f"{words.error(problem)}\n{words('config.defaults_follow')}")
    rows = [row for row in list_settings(loaded_config.settings) if _is_within(row[0], options.name)]
    if not rows:
        raise explain_unknown_setting(options.name, words("origin.flag"))
    if options.changed:
        rows = [row for row in rows if row[0] in loaded_config.origins]
    if options.json:
        print_out(json.dumps({name: _as_json(name, value, loaded_config) for name, value in rows}, ensure_ascii=False))
    else:
        for name, value in rows:
            print_out(plain(f"{name} = {show_value(name, value)}  # {_describe_origin_of(name, loaded_config, words)}"))
    return problem.exit_code if problem else 0


def _get(options: Options, words: Words, paths: Paths) -> None:
    """Prints the bare value on stdout, for scripts, and where it came from on stderr."""
    key = _require_known(options.name, words)
    loaded_config = _load(options, words, paths)
    matches = [
        (name, value) for name, value in list_settings(loaded_config.settings) if _is_within(name, write_key(key))
    ]
    for name, value in matches:
        if len(matches) == 1 and isinstance(value, str):
            print_out(plain(str(_hide_secret(name, value))))
        else:
            print_out(plain(show_value(name, value) if len(matches) == 1 else f"{name} = {show_value(name, value)}"))
        print_err(plain(f"· {_describe_origin_of(name, loaded_config, words)}"))


def _set(options: Options, words: Words, paths: Paths) -> None:
    key = _require_known(options.name, words)
    name, path = write_key(key), _file(options, paths)
    if options.project:
        require_project_may({name}, path)
    text = read_text(path)
    if options.value is None:
        raise UsageError("usage.required", names="VALUE", prog="duckflow config set")
    value = parse_value(key, options.value, words("origin.flag"))
    write_text(path, set_value(text, key, value))
    print_out(plain(words("config.written", name=name, value=show_value(name, value), path=str(path))))
    value_origin = _load(options, words, paths).origins.get(name, "")
    if value_origin and value_origin != str(path):
        print_err(plain(words("config.overruled", name=name, origin=describe_origin(name, value_origin, words))))


def _unset(options: Options, words: Words, paths: Paths) -> None:
    """Removes a value from the file, even one that is no setting: Duckflow does not start while the file has such a
    value."""
    key, path = read_key(options.name), _file(options, paths)
    try:
        text = remove_value(read_text(path), key)
    except UsageError:
        _require_known(options.name, words)
        raise
    write_text(path, text)
    print_out(plain(words("config.removed", name=write_key(key), path=str(path))))


def _file(options: Options, paths: Paths) -> Path:
    if not options.project:
        return paths.user_config
    path = Path.cwd() / PROJECT_FILE
    if not path.resolve().is_relative_to(Path.cwd()):
        # The folder may be a stranger's, and its link may lead to a file of the user's.
        raise UsageError("config.unwritable", path=str(path), reason=os.strerror(errno.ELOOP))
    return path


def _require_known(name: str, words: Words) -> Key:
    """Returns the parts of a setting's name. In some tables the user chooses the names; there every name is
    accepted."""
    if not name:
        raise UsageError("usage.required", names="SETTING", prog="duckflow config")
    key = read_key(name)
    names = list_setting_names(Settings)
    if not key or not any(_is_within(known_name, name) or _is_within(name, known_name) for known_name in names):
        raise explain_unknown_setting(name, words("origin.flag"))
    return key


def _is_within(name: str, prefix: str) -> bool:
    return not prefix or name == prefix or name.startswith(f"{prefix}.")


def _as_json(name: str, value: Any, loaded: Loaded) -> dict[str, Any]:
    return {"value": _hide_secret(name, value), "origin": loaded.origins.get(name, "default")}


def _hide_secret(name: str, value: Any) -> Any:
    """Returns the value for JSON output, with secrets hidden."""
    import tomllib

    return tomllib.loads(f"value = {show_value(name, value)}")["value"] if isinstance(value, str) else value


def _describe_origin_of(name: str, loaded: Loaded, words: Words) -> str:
    return describe_origin(name, loaded.origins.get(name, ""), words)
