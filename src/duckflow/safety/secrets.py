"""What looks like a secret: file names, and the look of keys and tokens in a text."""

import re
from fnmatch import fnmatchcase

NAMES = (
    (".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".htpasswd", ".npmrc", ".pypirc", ".git-credentials")
    + ("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore")
    + ("*.kdbx", "*.ovpn", "credentials", "credentials.*", "secrets", "secrets.*", "*.secret", "*_token", "*.token")
    + ("service-account*.json", "client_secret*.json", "known_hosts", "authorized_keys", "shadow", "kubeconfig")
)
FOLDERS = frozenset((".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker", "secrets", ".password-store"))
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub", "*.example", "*.pem.txt")
CONTENTS = re.compile(
    r"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{20,}\b"
    r"|\bsk-(?:proj-|ant-|or-)?[A-Za-z0-9_-]{20,}\b"
    r"|\bAIza[0-9A-Za-z_-]{35}\b"
    r"|\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}"
    r"|(?i:\b(?:api[_-]?key|secret[_-]?key|access[_-]?token|password|passwd)\b\s*[:=]\s*['\"][^'\"\s]{12,}['\"])"
)


def secret_name(path: str) -> bool:
    """Whether a path looks like it holds a secret; templates and public keys do not."""
    *folders, name = path.lower().replace("\\", "/").split("/")
    if any(fnmatchcase(name, pattern) for pattern in HARMLESS):
        return False
    return any(fnmatchcase(name, pattern) for pattern in NAMES) or bool(FOLDERS & set(folders))


WHOLE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----.*?(?:-----END (?:[A-Z ]+ )?PRIVATE KEY-----|\Z)", re.S
)
BLOT = "•••"


def redacted(text: str) -> str:
    """The text with a blot in place of everything that looks like a key or a token."""
    return CONTENTS.sub(BLOT, WHOLE_KEY.sub(BLOT, text)) if secret_text(text) else text


def secret_text(text: str) -> bool:
    """Whether a text holds something that looks like a key or a token."""
    return CONTENTS.search(text) is not None
