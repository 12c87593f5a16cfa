"""The environment that commands get: the user's harmless variables, and settings that keep programs from waiting."""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from duckflow.safety.secrets import named_secrets

SEEN = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "VIRTUAL_ENV", "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME",
    "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "LC_MEASUREMENT",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "DUCKFLOW_FLEET_ATTEMPT",
)  # fmt: skip
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
ALWAYS = {
    "AI_AGENT": "duckflow",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
GIT_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "submodule.recurse": "false",
    **dict.fromkeys(("gpg.program", "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program"), "false"),
}
GIT_ALONE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": str(len(GIT_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(GIT_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(GIT_SETTINGS.values())},
}
"""With these variables, git 2.31 or newer starts no program that a repository names while it reads what is recorded: no
file monitor, no hook, no signature check, and no download of a missing object. Comparing the contents of files may
still start one (`safety/commands/services.py`)."""
# These tools refuse to work when they cannot write to their cache in the home folder.
CACHES = {"GOCACHE": "go-build", "UV_CACHE_DIR": "uv", "npm_config_cache": "npm"}
CACHES_IN_FOLDER = {"RUFF_CACHE_DIR": "ruff", "MYPY_CACHE_DIR": "mypy"}
PYTEST_OPTIONS = "PYTEST_ADDOPTS"
SECRET_NAME = r"(?i)key|token|secret|passw|passwd|pwd$|credential|auth|cookie|session|private|signature|dsn$|_url$"
SECRET_VALUE = (
    r"\b(sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|hf|xox[abprs]|npm|pypi|AKIA|ASIA|AIza|eyJ)[-_]?[\w-]{16,}"
    r"|://[^/\s:@]*:[^/\s@]+@|-----BEGIN"
)
HARMLESS_VARIABLE = (
    r"(?:CI|NO_COLOR|FORCE_COLOR|NODE_ENV|TZ|TERM|COLUMNS|LANG|LC_[A-Z]+|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    r"|RUST_BACKTRACE)"
)
"""Matches variables that change how a program prints, and not what it runs."""


def environment(variables: Mapping[str, str], also: Iterable[str] = (), network: bool = False) -> dict[str, str]:
    """Returns the user's harmless variables, and settings that keep programs from waiting for a person."""
    named_variables = frozenset(also)
    unsure_names = (*named_variables, *(name for proxy in PROXIES for name in (proxy, proxy.upper()) if network))
    seen_variables = {
        name: value
        for name, value in variables.items()
        if _matches(name, SEEN)
        or name in named_variables
        or (_matches(name, unsure_names) and not looks_secret(name, value))
    }
    return seen_variables | named_secrets(variables) | ALWAYS


def caches(seen: Mapping[str, str], temporary: str) -> dict[str, str]:
    """Returns places for the caches that would otherwise be in the home folder, where commands cannot write."""
    return {name: str(Path(temporary) / folder) for name, folder in CACHES.items() if name not in seen}


def folder_caches(seen: Mapping[str, str], temporary: str) -> dict[str, str]:
    """Returns places for the caches that would otherwise be in the work folder, for a command that cannot write
    there."""
    places = {name: str(Path(temporary) / folder) for name, folder in CACHES_IN_FOLDER.items() if name not in seen}
    pytest_options = f"{seen.get(PYTEST_OPTIONS, '')} -o cache_dir={Path(temporary) / 'pytest'}".strip()
    return {**places, PYTEST_OPTIONS: pytest_options}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def looks_secret(name: str, value: str) -> bool:
    return bool(re.search(SECRET_NAME, name) or re.search(SECRET_VALUE, value))
