"""Finds logins (passwords, tokens) in files of settings that commands could otherwise read."""

import os
import re
import stat
from functools import lru_cache
from pathlib import Path

from duckflow.safety.files import read_plain
from duckflow.safety.secrets import secret_text

LARGEST_SETTINGS = 256 * 1024
COMMENTS = ("#", ";", "--", "<!--")
SECRET_WORD = r"pass(?:w\w*|phrase|wd|code)?(?![a-z])|pwd\b|token|secret|api[_-]?key|_auth\b|authorization|extraheader"
LOGIN = re.compile(
    rf"(?i){SECRET_WORD}|\b(?:oauth|pat|bearer)\s*[=:]|sshpass|/t/[a-z]{{2}}-|://(?!git@)[^/]+@|[\w.%-]+:[^\s@/:]+@[\w.-]"
    r"|BUNDLE_(?!(?:BUILD|MIRROR|LOCAL|PATH)__|GEM__(?!FURY))\w+__"
)
"""Matches a line with a login. Bundler keeps a login under the name of its host, with `__` for each dot."""
COMMENTED = re.compile(rf"(?i)(?:{SECRET_WORD})[\w-]*['\"]?\s*[=:>]\s*['\"]?(?!\S*://)\S{{6}}")
"""Matches a login that is commented out. Comments often speak of logins without holding one."""

USER = re.compile(
    r"(?<=://)(?!git@[^@/\s\"']*(?:[/\s\"']|$))[^/\s\"']+@|(?<=[\s\"'=])[^\s/@:=\"']+:[^\s/@\"']+@(?=[\w.-])"
)
"""Matches the name and password of an address, which may be one of a proxy without a scheme."""
SETTING = re.compile(r"(?m)^([ \t]*(?:\[[^\]\n]*\][ \t]*)?([\w-]+)[ \t]*=)([ \t]*(?:\\\n|.)*)")
KEY = re.compile(rf"(?i)(?:{SECRET_WORD}|^pat$|oauth$)")
IN_VALUE = re.compile(rf"(?i)(?:{SECRET_WORD})\w*['\"]?\s*[=:]\s*['\"]?[^\s$'\"]|sshpass|bearer\s")
SHORTEST = 6


def holds_login(path: str) -> bool:
    """Says whether a file of settings holds a password or a token, or cannot be read."""
    try:
        file_stat = Path(path).stat()
        return stat.S_ISREG(file_stat.st_mode) and _names_login(path, file_stat.st_ino, file_stat.st_mtime_ns)
    except FileNotFoundError:
        return False
    except OSError:
        return True


@lru_cache(64)
def _names_login(path: str, inode: int, changed_at: int) -> bool:
    text = read_plain(Path(path), LARGEST_SETTINGS).decode("utf-8", "replace")
    return secret_text(text) or any(
        (COMMENTED if line.lstrip().startswith(COMMENTS) else LOGIN).search(line) for line in text.splitlines()
    )


def without_logins(settings: Path) -> str | None:
    """Returns the text of git's settings without passwords and tokens, or None where there are none to remove. A link
    is not followed."""
    text = _text_of(settings)
    clean_text = SETTING.sub(_clean, USER.sub("", text))
    return clean_text if clean_text != text else None


def login_values(settings: Path) -> tuple[str, ...]:
    """Returns the values of git's settings that are passwords and tokens by their names."""
    values = (match[3].strip().strip('"') for match in SETTING.finditer(_text_of(settings)) if KEY.search(match[2]))
    return tuple(value for value in values if len(value) >= SHORTEST)


def _text_of(settings: Path) -> str:
    if os.path.realpath(settings) != str(settings):
        return ""
    try:
        return read_plain(settings, LARGEST_SETTINGS).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _clean(setting: re.Match[str]) -> str:
    setting_value = setting[3].replace("\\\n", "")
    if KEY.search(setting[2]) or IN_VALUE.search(setting_value):
        return setting[1]
    clean_value = USER.sub("", setting_value)
    return setting[0] if clean_value == setting_value else setting[1] + clean_value
