"""Names of files that hold secrets, and of files that run by themselves later."""

import re
from functools import lru_cache

from duckflow.safety.secrets import secret_name

MORE_SECRETS = re.compile(
    r"(?:^|/)(?:\.envrc|\.vault-token|\.my\.cnf|\.dockercfg|gshadow|sudoers|\w*_history|\.zhistory|[\w.-]+\.ppk)$"
    r"|(?:^|/)\.config/(?:gcloud|gh)(?:/|$)|(?:^|/)\.(?:ssh|gnupg|aws|azure|kube|docker)(?:/|$)"
    r"|^/proc/[^/]+/environ$|^/etc/(?:shadow|gshadow|sudoers)"
)
PUBLIC = re.compile(r"\.pub$|(?:^|/)(?:known_hosts|config)$")
STARTS_BY_ITSELF = re.compile(
    r"(?:^|/)\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc"
    r"|inputrc|gitconfig|vimrc|emacs|xinitrc|xprofile|xsession|login|logout|bash_logout)$"
    r"|(?:^|/)\.git/(?:hooks/|config$)|(?:^|/)\.config/(?:fish|autostart|systemd)/"
    r"|(?:^|/)LaunchAgents/|(?:^|/)LaunchDaemons/"
    r"|(?:^|/)\.ssh/|(?:^|/)\.gnupg/|^/etc/|^/var/spool/cron|(?:^|/)authorized_keys$"
)


@lru_cache(4096)
def is_secret(path: str) -> bool:
    """Looks like a file that holds keys, passwords or tokens."""
    return (secret_name(path) or bool(MORE_SECRETS.search(path))) and not PUBLIC.search(path)


def starts_by_itself(path: str) -> bool:
    """A file that a shell, git, ssh or the system reads and obeys on its own."""
    return bool(STARTS_BY_ITSELF.search(path))
