"""Settings of tools in the home folder are there for commands, unless a login stands in them, in whatever form."""

from typing import Literal

import pytest

from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.settings import SandboxSettings
from tests.redteam.test_outside_files import SANDBOXES, said

POND = "the-pond-1234"
LOGINS_IN_SETTINGS = [
    (".gitconfig", f"[sendemail]\n\tsmtpPass = {POND}\n"),
    (".gitconfig", f"[imap]\n\tpass = {POND}\n"),
    (".gitconfig", f"[http]\n\tproxy = me:{POND}@proxy:8080\n"),
    (".gitconfig", f'[core]\n\tsshCommand = "sshpass -p {POND} ssh"\n'),
    (".gitconfig", f"[gitlab]\n\tpat = {POND}\n"),
    (".gitconfig", f"[github]\n\toauth = {POND}\n"),
    (".config/git/config", f"[sendemail]\n\t# smtpPass = {POND}\n"),
    (".bundle/config", f'---\nBUNDLE_GEMS__CONTRIBSYS__COM: "pond:{POND}"\n'),
    (".bundle/config", f'---\nBUNDLE_GEM__FURY__IO: "{POND}"\n'),
    (".m2/settings.xml", f"<profile><gpg.passphrase>{POND}</gpg.passphrase></profile>"),
    (".m2/settings.xml", f"<server><passphrase>{POND}</passphrase></server>"),
    (".m2/settings.xml", f"<!-- <password>{POND}</password> -->"),
    (".config/pip/pip.conf", f"[global]\nproxy = me:{POND}@proxy:3128\n"),
    (".config/mise/config.toml", f'[env]\nDB_PASS = "{POND}"\n'),
    (".composer/config.json", f'{{"bearer": {{"example.org": "x"}}, "pond": "ghp_{"A1b2" * 9}"}}'),
    (".cargo/config.toml", f'[http]\nproxy = "me:{POND}@proxy:1"\n'),
    (".condarc", f"proxy_servers:\n  https: me:{POND}@proxy:1\n"),
]
NO_LOGINS = [
    (".gitconfig", "[credential]\n\thelper = store\n[user]\n\temail = pond@example.org\n[core]\n\tpager = less -R\n"),
    (".gitconfig", '[url "git@github.com:"]\n\tinsteadOf = https://pond.example/\n'),
    (
        ".bundle/config",
        '---\nBUNDLE_PATH: "vendor/pond"\nBUNDLE_BUILD__NOKOGIRI: "--x"\nBUNDLE_GEM__TEST: "x"\n',
    ),
    (".cabal/config", "-- password:\n-- The token: see https://pond.example/\n"),
    (".m2/settings.xml", "<!-- A password goes to the pond. --><mirror><url>https://pond.example/</url></mirror>"),
]


@pytest.mark.parametrize("kind", SANDBOXES)
@pytest.mark.parametrize(("name", "text"), [*LOGINS_IN_SETTINGS, *NO_LOGINS])
def test_settings_with_a_login_in_any_form_are_not_there(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str, kind: Literal["landlock", "bubblewrap"]
) -> None:
    top = tmp_path_factory.mktemp("settings")
    path = top / "me" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (top / "work").mkdir()
    sandbox = choose(SandboxSettings(kind=kind), top / "work", home=top / "me")
    assert ("pond" in said(sandbox, f"cat '{path}' 2> /dev/null")) is ((name, text) in NO_LOGINS)
