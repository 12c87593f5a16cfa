"""Places that no tool opens, even where they lie inside the work folder: keys, logins, Duckflow's own state."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from duckflow.errors import PathRefused
from duckflow.safety.shown import shown


def _listed(text: str) -> tuple[str, ...]:
    return tuple(re.split(r",\s+", text.strip()))


IN_HOME = _listed("""
.ssh, .gnupg, .pki, .age, .config/sops, .password-store, .local/share/keyrings, .local/share/kwalletd, .config/op,
.config/1Password, .config/Bitwarden, .config/keepassxc, Library/Keychains, .Xauthority, .ICEauthority, .electrum,
.bitcoin, .ethereum,
.netrc, _netrc, .git-credentials, .config/git/credentials, .config/gh, .config/hub, .config/glab-cli,
.docker/config.json, .config/containers/auth.json, .npmrc, .yarnrc.yml, .pypirc, .config/pypoetry,
.cargo/credentials, .cargo/credentials.toml, .gem/credentials, .m2/settings-security.xml, .gradle/gradle.properties,
.pgpass, .my.cnf, .vault-token, .config/configstore, .config/rclone, .config/stripe, .s3cfg, .boto, .databrickscfg,
.snowflake, .huggingface, .cache/huggingface/token,
.aws, .azure, .config/gcloud, .kube, .oci, .bluemix, .fly, .config/doctl, .config/hcloud, .config/heroku,
.config/netlify, .netlify, .config/.wrangler, .wrangler, .terraform.d, .local/share/com.vercel.cli, .config/scw,
.claude, .claude.json, .codex, .gemini, .config/github-copilot, .config/anthropic, .config/openai, .aider.conf.yml,
.continue, .local/share/opencode,
.mozilla, .config/google-chrome, .config/chromium, .config/BraveSoftware, .config/microsoft-edge, .config/vivaldi,
.config/opera, .thunderbird, snap/firefox, snap/chromium, .var/app/org.mozilla.firefox, .var/app/com.google.Chrome,
.config/Slack, .config/discord, .config/Signal, Library/Application Support/Google/Chrome,
Library/Application Support/Firefox, Library/Application Support/BraveSoftware, Library/Cookies, Library/Safari,
Library/Mail, Library/Messages,
.bash_history, .zsh_history, .python_history, .psql_history, .mysql_history, .node_repl_history,
.local/share/fish/fish_history, .lesshst, .viminfo
""")
"""Keys and passwords; logins of tools; clouds; other assistants; browsers, mail and chat; what was typed."""
ON_THE_MACHINE = _listed("""
/etc/shadow, /etc/shadow-, /etc/gshadow, /etc/gshadow-, /etc/sudoers, /etc/sudoers.d, /etc/ssh/ssh_host_rsa_key,
/etc/ssh/ssh_host_ecdsa_key, /etc/ssh/ssh_host_ed25519_key, /etc/krb5.keytab, /etc/wireguard,
/etc/NetworkManager/system-connections, /etc/docker/key.json, /run/secrets, /run/credentials, /run/user,
/var/lib/docker, /var/lib/containerd, /var/spool/cron, /var/mail
""")


def private_places(folder: Path, home: Path, own: Iterable[Path], opened: Sequence[str] = ()) -> tuple[Path, ...]:
    """Those beneath the folder, whether they are there yet or not; and Duckflow's own ones around it as well. `opened`:
    what the user's settings let commands read, such as `~/.npmrc`."""
    top, real_home = os.path.realpath(folder), os.path.realpath(home)
    named = [f"{real_home}/{name}" for name in IN_HOME if f"~/{name}" not in opened]
    beneath = [path for path in named if path.startswith(top.rstrip("/") + "/")]
    # A link to a place of keys makes that place private too.
    places = {Path(path) for path in beneath} | {Path(os.path.realpath(path)) for path in beneath}
    places |= {Path(os.path.realpath(path)) for path in own}
    return tuple(sorted(path for path in places if path.is_relative_to(top) or Path(top).is_relative_to(path)))


def refuse_private(places: Iterable[Path], real: Path, given: str, whole: bool = False) -> None:
    """`whole`: all that lies in it is meant too, as when it is moved or deleted."""
    for place in places:
        if real.is_relative_to(place) or (whole and place.is_relative_to(real)):
            name = shown(given)
            raise PathRefused(
                f"{name} is private (keys, logins, or Duckflow's own state): no tool opens or changes it. "
                "Do without it, or tell the user.",
                "path.private",
                path=name,
            )


def path_of_handle(handle: int) -> Path | None:
    """Where an open folder really lies; nothing where the system does not tell."""
    try:
        return Path(f"/proc/self/fd/{handle}").readlink()
    except OSError:
        return None
