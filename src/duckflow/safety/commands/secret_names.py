"""Names of files that hold secrets, and of files that run by themselves later."""

import posixpath
import re

SECRET = re.compile(
    r"(?:^|/)(?:"
    r"\.env(?:\.(?!example|sample|template|dist|test)[\w.-]+)?|\.envrc"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)\w*|[\w.-]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc)"
    r"|\.netrc|\.pgpass|\.my\.cnf|\.git-credentials|\.htpasswd|\.vault-token|\.npmrc|\.pypirc|\.dockercfg"
    r"|credentials(?:\.\w+)?|\.credentials(?:\.\w+)?|secrets?\.(?:ya?ml|json|toml|txt|env)|service[-_]account[\w-]*\.json"
    r"|shadow|gshadow|sudoers|\w*_history|\.zhistory"
    r")$"
    r"|(?:^|/)\.(?:ssh|gnupg|aws|azure|kube|docker|password-store)(?:/|$)|(?:^|/)\.config/(?:gcloud|gh)(?:/|$)"
    r"|^/proc/[^/]+/environ$|^/etc/(?:shadow|gshadow|sudoers)",
    re.IGNORECASE,
)
PUBLIC = re.compile(r"\.pub$|(?:^|/)(?:known_hosts|config)$")
STARTS_BY_ITSELF = re.compile(
    r"(?:^|/)\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc"
    r"|inputrc|gitconfig|vimrc|emacs|xinitrc|xprofile|xsession|login|logout|bash_logout)$"
    r"|(?:^|/)\.git/(?:hooks/|config$)|(?:^|/)\.config/(?:fish|autostart|systemd)/"
    r"|(?:^|/)LaunchAgents/|(?:^|/)LaunchDaemons/"
    r"|(?:^|/)\.ssh/|(?:^|/)\.gnupg/|^/etc/|^/var/spool/cron|(?:^|/)authorized_keys$"
)


def is_secret(path: str) -> bool:
    """Looks like a file that holds keys, passwords or tokens."""
    name = posixpath.basename(path)
    return bool(SECRET.search(path)) and not PUBLIC.search(name)


def starts_by_itself(path: str) -> bool:
    """A file that a shell, git, ssh or the system reads and obeys on its own."""
    return bool(STARTS_BY_ITSELF.search(path))
