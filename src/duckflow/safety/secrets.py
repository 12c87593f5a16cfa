"""Recognises secrets: names of files, keys and tokens in a text, logins in settings, and the contents of the folder's
secret files."""

import codecs
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.files import read_plain

NAMES = frozenset(
    (".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".htpasswd", ".npmrc", ".pypirc", ".git-credentials", ".boto")
    + (".my.cnf", ".dockercfg", ".s3cfg", "known_hosts", "authorized_keys", "shadow", "kubeconfig", ".vault-token")
    + (".vault_pass", ".vault-pass", ".dev.vars", ".secrets", "deploy_key", "hgrc", ".hgrc", ".flaskenv", "netrc")
    + (".mylogin.cnf", "pgpass.conf", ".authinfo", "rclone.conf", "kaggle.json", "rootkey.csv", "accesskeys.csv")
    + ("secring.gpg", ".password", "vault_pass.txt", "aws_credentials", "deploy_rsa")
)
BEGINNINGS = (".env.", ".env-", ".env_", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
ENDINGS = (
    ".env", ".pem", ".key", ".p12", ".p8", ".pfx", ".jks", ".keystore", ".keytab", ".kdbx", ".ovpn", ".ppk", ".tfvars",
    ".tfstate", ".secret", "_token", ".token", "api_key", "apikey", ".pkcs12",
)  # fmt: skip
HARMLESS = re.compile(r".*[._-](?:example|sample|template|dist|pub)(?:\.(?:ya?ml|json|toml|ini|txt|env))?|.*\.pem\.txt")
COPY = r"(?:copy|copie|kopie|bak|backup|old|orig|save|sw[a-p]|un)"
COPIED = re.compile(
    rf"[~#]+$|(?:[ ._-]+\(?(?:{COPY}\d*|\d+)\)?|\(\d+\))+[~#-]*(?=(?:\.[a-z]\w{{0,9}})?$)"
    rf"|^(?:[.#]*#|(?:{COPY}|\d[\d-]*)[ _-]+(?:of )?)"
)
"""Matches the parts that an editor or a person adds to the name of a copy. A copy of a secret file is a secret too."""
LONGEST_NAME = 255
TELLING_WORDS = re.compile("creds|credential|secret|passw|auth|token|account|kubeconfig|firebase|settings|key|env")
WORDS = re.compile(
    r"(?:credentials|secrets)(?:\..*)?|(?:service[-_]?account|client_secret|.*firebase-adminsdk).*\.json"
    r"|(?:auth|oauth2?|token|local\.settings)\.json|(?:.*[._-])?token\.(?:txt|pickle)|kubeconfig\.ya?ml"
    r"|env[._-](?:local|dev(?:elopment)?|test|ci|staging|prod(?:uction)?)"
    r"|(?:aws|gcp|google|azure|openai|anthropic)[._-]?(?:access[._-]?)?keys?\.(?:json|txt|csv)"
    r"|(?:key|keystore)\.properties"
    r"|(?:.*[._-])?(?:credentials?|creds|secrets?|passwords?|passwd|api[._-]?keys?)(?:[._-].*)?"
    r"\.(?:json|ya?ml|toml|ini|cfg|conf|csv|txt|properties)"
)
FOLDERS = frozenset((".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker", "secrets", ".password-store"))
CODE = (
    ".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte", ".go", ".rs", ".java", ".kt", ".rb",
    ".php", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift", ".scala", ".ex", ".md", ".rst", ".html",
    ".pyc", ".so", ".o", ".class",
)  # fmt: skip
"""Endings of files with code. A word in such a file's name says little; a key in it is recognised by its form."""
KEYS = (
    r"AKIA[0-9A-Z]{16}\b",
    r"gh[pousr]_[A-Za-z0-9]{30,}\b",
    r"xox[abprs]-[A-Za-z0-9-]{20,}\b",
    r"github_pat_[A-Za-z0-9_]{30,}\b",
    r"glpat-[A-Za-z0-9_-]{18,}",
    r"npm_[A-Za-z0-9]{30,}\b",
    r"hf_[A-Za-z0-9]{30,}\b",
    r"rk_live_[A-Za-z0-9]{16,}\b",
    r"sk_live_[A-Za-z0-9]{16,}\b",
    r"sk-(?:proj-|ant-|or-)?[A-Za-z0-9_-]{20,}\b",
    r"AIza[0-9A-Za-z_-]{35}\b",
    r"eyJ[A-Za-z0-9_-]{15,999}+\.eyJ[A-Za-z0-9_-]{15,}+\.[A-Za-z0-9_-]{15,}",
)
SETTINGS = (
    r"[Aa](?<!\w.)(?i:pi[_-]?key|ccess[_-]?token)",
    r"[Ss](?<!\w.)(?i:ecret[_-]?key)",
    r"[Pp](?<!\w.)(?i:assword|asswd)",
)
CONTENTS = "|".join(
    (
        "-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----",
        *(rf"{key[0]}(?<!\w.){key[1:]}" for key in KEYS),
        r"[Aa](?<!\w.)(?i:uthorization:\s{0,9}(?:basic|bearer)\s{1,9})[\w.~+/=-]{8,}",
        rf"((?:{'|'.join(SETTINGS)})\b\s*[:=]\s*['\"])[^'\"\s]{{12,}}(?=['\"])",
    )
)
"""Matches keys and tokens that begin a word. A search is five times as fast when each pattern begins with a letter, so
the pattern checks only after that letter that a word begins there."""


@lru_cache(8192)
def secret_name(path: str) -> bool:
    """Says whether a path has the name of a secret. Templates, public keys and code do not count. Answers are cached,
    because before each command all names in the folders of programs are checked."""
    *folders, name = path.lower().replace("\\", "/").split("/")
    name = _original(name)
    tells_secret = own_secret_name(name) or name.endswith(ENDINGS)
    if not tells_secret and not name.endswith(CODE):
        tells_secret = (
            not FOLDERS.isdisjoint(folders) or (TELLING_WORDS.search(name) and WORDS.fullmatch(name)) is not None
        )
    return tells_secret and not HARMLESS.fullmatch(name)


def own_secret_name(path: str) -> bool:
    """Says whether people give this name to their own secrets, and packages hardly ever give it to a file of theirs."""
    name = _original(path.rpartition("/")[2].lower())
    return (name in NAMES or name.startswith(BEGINNINGS)) and not HARMLESS.fullmatch(name)


def _original(name: str) -> str:
    """Returns the name of the file that a copy was made of, such as `.env` for `.env copy`. A name that is too long for
    any file is returned unchanged."""
    return (len(name) <= LONGEST_NAME and COPIED.sub("", name)) or name


WHOLE_KEY = r"(?s)-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----.*?(?:-----END (?:[A-Z ]+ )?PRIVATE KEY-----|\Z)"
KEY_LINE = (
    r"(?m)^((?:\d{1,7}[:+-])?[^\w\n/+]{0,40})"
    r"(?=[A-Za-z0-9+/]{0,63}[a-z])(?=[A-Za-z0-9+/]{0,63}[A-Z])(?=[A-Za-z0-9+/]{0,63}\d)"
    r"[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{6}|[A-Za-z0-9+/]{12})?={0,2}(?=[^\w\n/+]{0,40}$)"
)
"""Matches a line that may be one of a private key which begins elsewhere. Lines of certificates look the same."""
BLOT = "•••"


IN_PASSING = (
    r"(?m)^([ \t]*(?:export[ \t]+)?[A-Z][A-Z0-9_]{0,40}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD)=['\"]?)"
    r"(?=[^\s'\"]{0,100}\d)(?![^\s'\"]{0,100}[(\[{$<])[^\s'\"]{8,}"
    r"|(://[^\s/:@]{1,100}:)(?=[^\s/@]{0,100}\d)[^\s/@]{8,100}(?=@)"
    r"|(://)[A-Za-z0-9_-]{20,200}(?=@)"
)
"""Matches secrets in settings of a shell and in addresses. Harmless texts often look like them, so the user is not
asked about them; they are only hidden in texts that are passed on. The pattern is compiled when it is first used."""


class Masked(NamedTuple):
    """A text that may be passed on, and the number of places in it that were hidden."""

    text: str
    hidden: int = 0


Hide = Callable[[str], Masked]
"""A function that hides the secrets in a text."""


async def hiding_by_look() -> Hide:
    """Returns a function that hides what looks like a key or a token, and no other secret."""
    return mask


def mask(
    text: str, lines: frozenset[str] = frozenset(), values: Iterable[str] = (), open_texts: Sequence[str] = ()
) -> Masked:
    """Hides everything that looks like a key or a token; `lines` and `values` are hidden everywhere in the text. A
    secret that stands in one of the `open_texts` is not hidden."""
    hidden_count = 0
    for value in values:
        if value in text and not _is_open(value, open_texts):
            hidden_count += text.count(value)
            text = text.replace(value, BLOT)
    if lines:
        lines = lines.difference(line.strip() for open_text in open_texts for line in open_text.split("\n"))
        cleaned_lines = [_without(line, lines) for line in text.split("\n")]
        hidden_count += sum(line is not None for line in cleaned_lines)
        text = "\n".join(old if new is None else new for old, new in zip(text.split("\n"), cleaned_lines, strict=True))

    def hidden(match: re.Match[str]) -> str:
        nonlocal hidden_count
        if _is_open(match[0], open_texts):
            return match[0]
        hidden_count += 1
        return next(filter(None, match.groups()), "") + BLOT

    for pattern in (IN_PASSING, WHOLE_KEY, KEY_LINE, CONTENTS):
        text = re.sub(pattern, hidden, text)
    return Masked(text, hidden_count)


def _is_open(secret: str, open_texts: Sequence[str]) -> bool:
    return any(secret in open_text for open_text in open_texts)


def _without(line: str, secret: frozenset[str]) -> str | None:
    """Returns the line with its end hidden if that end, or the whole line, is one of the secret lines; otherwise None.
    The beginning may be a file's name, a number or a mark that a program puts before a line of a file."""
    if line.strip() in secret:
        return BLOT
    for mark_match in islice(re.finditer(MARKS, line), MARKS_LOOKED_AT):
        if line[mark_match.end() :].strip() in secret:
            return line[: mark_match.end()] + BLOT
    return None


MARKS = r"[:+\-|>\s]+"
MARKS_LOOKED_AT = 40


def redacted(text: str) -> str:
    """Returns the text with a mark in place of everything that looks like a key or a token."""
    return mask(text).text


def secret_text(text: str) -> bool:
    """Says whether a text holds something that looks like a key or a token."""
    return re.search(CONTENTS, text) is not None


FILE_BYTES = 256 * 1024
SHORTEST_LINE = 6
SETTING = r"""["']?([\w.-]{1,100})["']?[ \t]*[=:][ \t]*["']?([^\s"',;}]+)"""
WHOLE_SETTING = (
    r"(?m)^[ \t]*(?:export[ \t]+|set[ \t]+)?[\"']?([\w.-]{1,100})[\"']?[ \t]*[=:][ \t]*([^\n]{1,1000}?)[ \t,]*$"
)
LOGIN_VALUE = (
    r"(?im)(?:(?:\blogin[ \t]+\S+[ \t]+password|^[ \t]*password)[ \t]+(?=\S+[ \t]*$)"
    r"|^[ \t]*(?:password|passwd|secret|token)[\w-]*:[ \t]*[|>][+-]?\s+)(\S+)"
)
"""Matches a login in a `.netrc`, and a block of text in YAML."""
ADDRESS_PASSWORD = r"(?m)(?:://[^\s/:@]*:([^\s/@]+)@|^[^\s:]+:\d+:[^\s:]*:[^\s:]*:(\S+)$)"
TELLING = r"(?i)key|token|secret|pass|pwd|credential|auth"
SHORTEST_VALUE, SHORTEST_RANDOM = 8, 16


class KnownSecrets(NamedTuple):
    """Whole secret lines, and the values in them that can only be secrets."""

    lines: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()
    """Secret values, the longest first: one may be a part of another."""

    def joined(self, other: "KnownSecrets") -> "KnownSecrets":
        values = sorted({*self.values, *other.values}, key=len, reverse=True)
        return KnownSecrets(self.lines | other.lines, tuple(values))


def known_secrets(folder: Path, files: Iterable[str]) -> KnownSecrets:
    """Returns the lines and values of these files; only the beginning of a large one is read."""
    lines: set[str] = set()
    values: set[str] = set()
    for path in files:
        text = _beginning(folder / path)
        lines.update(_lines(text))
        values.update(value for value in _values(text) if len(value) >= SHORTEST_VALUE)
    return KnownSecrets(frozenset(lines), tuple(sorted(values, key=len, reverse=True)))


def _values(text: str) -> Iterator[str]:
    """Yields the values in a secret file that can only be secrets: of settings that stand anywhere in a line, of logins
    as `.netrc` and addresses have them, and the only line of a file that has no other."""
    yield from (setting[2] for setting in re.finditer(SETTING, text) if _secret_value(setting[1], setting[2]))
    # A value may hold signs that end others.
    settings = ((setting[1], setting[2].strip("\"'")) for setting in re.finditer(WHOLE_SETTING, text))
    yield from (value for name, value in settings if re.search(TELLING, name) and _secret_value(name, value))
    yield from (login[1] for login in re.finditer(LOGIN_VALUE, text))
    yield from (address[1] or address[2] for address in re.finditer(ADDRESS_PASSWORD, text))
    line = text.strip()
    if line and not re.search(r"[\s=]", line):
        yield line.rpartition(":")[2]


def secret_parts(secrets: Iterable[str]) -> tuple[str, ...]:
    """Returns the parts of these values that are secret in any text: each whole value, its lines, and the values that
    settings in these lines have. The longest part comes first."""
    return tuple(sorted({part for value in secrets for part in _parts(value)}, key=len, reverse=True))


def _parts(value: str) -> set[str]:
    """Returns the secret parts of a value. The set is empty if much of the value consists of short lines, which cannot
    be distinguished from other text."""
    lines = [line.strip() for line in re.split(r"[\r\n]+|\\[rn]", value)]
    short_lines = "".join(line for line in lines if len(line) < SHORTEST_LINE)
    parts = {line for line in lines if len(line) >= SHORTEST_LINE}
    if not parts or len(re.findall(r"\w", short_lines)) >= SHORTEST_LINE:
        return set()
    settings = (re.match(SETTING, line) for line in parts)
    parts |= {setting[2] for setting in settings if setting and _secret_value(setting[1], setting[2])}
    parts.add(value.strip())
    # Programs also print values as JSON.
    return parts | {json.dumps(part, ensure_ascii=escapes)[1:-1] for part in parts for escapes in (True, False)}


def _secret_value(name: str, value: str) -> bool:
    if "://" in value:
        return False
    if re.search(TELLING, name):
        return len(value) >= SHORTEST_VALUE
    has_letters_and_digits = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return has_letters_and_digits and len(value) >= SHORTEST_RANDOM


def _beginning(path: Path) -> str:
    """Returns the beginning of a text file; an empty text if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            content = file.read(FILE_BYTES)
    except OSError:
        return ""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_wide else "utf-8-sig", "replace")


def _lines(text: str) -> Iterator[str]:
    for line in map(str.strip, text.splitlines()):
        if len(line) >= SHORTEST_LINE and not line.startswith("#"):
            yield line


SECRETS = "DUCKFLOW_SECRETS"
"""The variable in which users name, separated by commas, secret variables that commands may get. The values are masked
in what the model sees."""


def named_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the secret variables that commands get because the user has named them."""
    return {name: variables[name] for name in variables.get(SECRETS, "").split(",") if name in variables}


LARGEST_SETTINGS = 256 * 1024
COMMENT_SIGNS = ("#", ";", "--", "<!--")
LOGIN_WORD = r"pass(?:w\w*|phrase|wd|code)?(?![a-z])|pwd\b|token|secret|api[_-]?key|_auth\b|authorization|extraheader"
LOGIN = re.compile(
    rf"(?i){LOGIN_WORD}|\b(?:oauth|pat|bearer)\s*[=:]|sshpass|/t/[a-z]{{2}}-|://(?!git@)[^/]+@|[\w.%-]+:[^\s@/:]+@[\w.-]"
    r"|BUNDLE_(?!(?:BUILD|MIRROR|LOCAL|PATH)__|GEM__(?!FURY))\w+__"
)
"""Matches a line with a login. Bundler keeps a login under the name of its host, with `__` for each dot."""
COMMENTED_LOGIN = re.compile(rf"(?i)(?:{LOGIN_WORD})[\w-]*['\"]?\s*[=:>]\s*['\"]?(?!\S*://)\S{{6}}")
"""Matches a login that is commented out. Comments often speak of logins without holding one."""

ADDRESS_USER = re.compile(
    r"(?<=://)(?!git@[^@/\s\"']*(?:[/\s\"']|$))[^/\s\"']+@|(?<=[\s\"'=])[^\s/@:=\"']+:[^\s/@\"']+@(?=[\w.-])"
)
"""Matches the name and password of an address, which may be one of a proxy without a scheme."""
GIT_SETTING = re.compile(r"(?m)^([ \t]*(?:\[[^\]\n]*\][ \t]*)?([\w-]+)[ \t]*=)([ \t]*(?:\\\n|.)*)")
LOGIN_KEY = re.compile(rf"(?i)(?:{LOGIN_WORD}|^pat$|oauth$)")
LOGIN_IN_VALUE = re.compile(rf"(?i)(?:{LOGIN_WORD})\w*['\"]?\s*[=:]\s*['\"]?[^\s$'\"]|sshpass|bearer\s")
SHORTEST_LOGIN = 6


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
        (COMMENTED_LOGIN if line.lstrip().startswith(COMMENT_SIGNS) else LOGIN).search(line)
        for line in text.splitlines()
    )


def without_logins(settings: Path) -> str | None:
    """Returns the text of git's settings without passwords and tokens, or None where there are none to remove. A link
    is not followed."""
    text = _text_of(settings)
    clean_text = GIT_SETTING.sub(_clean, ADDRESS_USER.sub("", text))
    return clean_text if clean_text != text else None


def login_values(settings: Path) -> tuple[str, ...]:
    """Returns what `without_logins` takes away from git's settings, as far as it can be told from other text: values
    with a login, line by line, and the name and password of an address."""
    text = _text_of(settings)
    taken_values = (setting[3] for setting in GIT_SETTING.finditer(text) if _is_login(setting))
    values = [line.strip().strip('"') for value in taken_values for line in value.split("\\\n")]
    # A name such as `alice@` stands in other texts, too, so it is only known with what stands before it.
    values += [f"://{user[0]}" if ":" not in user[0] else user[0] for user in ADDRESS_USER.finditer(text)]
    return tuple(value for value in values if len(value) >= SHORTEST_LOGIN)


def _text_of(settings: Path) -> str:
    if os.path.realpath(settings) != str(settings):
        return ""
    try:
        return read_plain(settings, LARGEST_SETTINGS).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _is_login(setting: re.Match[str]) -> bool:
    return bool(LOGIN_KEY.search(setting[2]) or LOGIN_IN_VALUE.search(setting[3].replace("\\\n", "")))


def _clean(setting: re.Match[str]) -> str:
    setting_value = setting[3].replace("\\\n", "")
    if _is_login(setting):
        return setting[1]
    clean_value = ADDRESS_USER.sub("", setting_value)
    return setting[0] if clean_value == setting_value else setting[1] + clean_value
