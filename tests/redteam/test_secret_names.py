"""Secret files that a list of names misses: other names that people give them, links with the name of a secret, and a
repository that a command makes where there was none."""

import shutil
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.secret_index import secret_index
from duckflow.safety.secrets import secret_name
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import PLAIN_SECRET
from tests.redteam.test_secret_files import run, sent

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
NAMES = [
    ".envrc", ".env_prod", ".env-local", ".env~", ".env.bak.1", ".dev.vars", "terraform.tfstate", "AuthKey_X.p8",
    "terraform.tfstate.backup", ".vault_pass", "serviceAccountKey.json", "service_account.json", "x.keytab",
    "firebase-adminsdk-x.json", "secret.yaml", "app-secrets.yml", "local.settings.json", "auth.json", ".npmrc.bak",
    ".env (copy)", ".env copy", ".env - Copy", "Copy of .env", ".env(1)", ".env 2", "#.env#", ".#.env", ".env.swn",
    ".env.20240102", "copy_id_rsa", "old_id_rsa", "backup-id_ed25519", "key.pem (1)", "server.key.2023",
    "credentials (1).json", "Credentials Copy.json", ".netrc_old", "prod.env.2024-01-02", ".npmrc-backup",
    ".git-credentials.bak", "token.json", "password.txt", "deploy_key", ".secrets", "kubeconfig.yaml", "id_rsa.old",
    ".hgrc", "hgrc", "hgrc.bak", ".flaskenv", "netrc", ".mylogin.cnf", ".authinfo", ".authinfo.old", "rclone.conf",
    "kaggle.json", "rootkey.csv", "accessKeys.csv", "rootkey (1).csv", "aws_credentials", "deploy_rsa", ".password",
    ".openai_api_key", ".apikey", "api_key.txt", "apikey.json", "api-keys.yaml", "creds.json", "aws-creds.csv",
    "credentials.csv", "github_token.txt", "token.pickle", "oauth.json", "env.local", "env.production", "env_prod",
    "env.prod.bak", "gcp-key.json", "openai_key.txt", "aws_access_keys.csv", "key.properties", "cert.pkcs12",
]  # fmt: skip
PLAIN = [
    ".env.example", ".env-sample", ".env_template", "id_rsa.pub", "tokenizer.json", "tokens.json", "author.json",
    "reset-password.css", "passwords.php", "secrets.py", "design-tokens.json", "secrets.example.yaml", "data.old",
    "secrets.yml.example", "keys.json", "package.json", "libssl.so.1",
    "env.py", "env.d.ts", "environment.yml", "keyboard.json", "keymap.properties", "env.json", "monkey.csv",
    "api_keys.md", "api_key.py", "api-keys.example.json", "locale.properties", "tokens.txt", "keywords.txt",
    "copy.txt", ".envoy.yaml", "copy_env.py", ".env.example.bak", ".env.example copy", "1", "bak", "old.py",
]  # fmt: skip
LINKS = {
    "a file": {".env": "settings/local"},
    "a name in a deeper folder": {"conf/prod.env": "../settings/local"},
    "a whole path": {".env": "{work}/settings/local"},
    "a link to a link": {".env": "way", "way": "settings/local"},
    "a folder": {"secrets": "settings"},
    "a folder of logins": {"a/.aws": "../settings"},
    "through a linked folder": {".env": "way/local", "way": "settings"},
    "a link in a folder of secrets": {"secrets/current": "../settings/local"},
}
READ = "grep -rah PASSWORD . | rev; rev settings/* .en? secret*/* 2>/dev/null"
NEW_REPOSITORIES = [
    "git init -q .; {forge}",
    "git init -q .; {forge}; git -c user.name=a -c user.email=a@b commit -qm x",
    "git init -q --separate-git-dir=g .; {forge}",
    "git init -q y; cp -r y/.git .git; {forge}",
    "git init -q .; {forge}; git update-index --assume-unchanged .env",
    "git init -q .; {forge}; git update-index --skip-worktree .env",
]
FORGE = "touch x; b=$(git hash-object -w x); git update-index --add --cacheinfo 100644,$b,.env"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    secret_index.cache_clear()
    (tmp_path / "work/settings").mkdir(parents=True)
    return tmp_path / "work"


def leaks(story: Story) -> bool:
    text = sent(story)
    return PLAIN_SECRET in text or PLAIN_SECRET[::-1] in text


async def test_secrets_by_other_names_are_covered(tmp_path: Path, work: Path) -> None:
    for name in NAMES:
        (work / name).write_text(f"PASSWORD={PLAIN_SECRET}\n")
    story = await run(tmp_path, "ls -A | xargs -d '\\n' rev")
    assert "exit code" in story.all(ActionFinished)[0].result.for_model
    assert not leaks(story)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name)
    assert secret_name(f"deep/{name.upper()}")


@pytest.mark.parametrize("name", PLAIN)
def test_names_that_tell_no_secret(name: str) -> None:
    assert not secret_name(name)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("links", LINKS.values(), ids=list(LINKS))
async def test_a_link_with_the_name_of_a_secret_covers_what_it_leads_to(
    tmp_path: Path, work: Path, links: dict[str, str]
) -> None:
    (work / "settings/local").write_text(f"PASSWORD={PLAIN_SECRET}\n")
    for name, target in links.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).symlink_to(target.format(work=work))
    story = await run(tmp_path, READ, f"rm -rf {' '.join(links)}; true", READ)
    assert "exit code" in story.all(ActionFinished)[0].result.for_model
    assert not leaks(story)
    await story.close()
    secret_index.cache_clear()
    assert not leaks(await run(tmp_path, READ))


@pytest.mark.parametrize("path", [".env", "settings/local"])
async def test_a_file_tool_does_not_tell_what_such_a_link_leads_to(tmp_path: Path, work: Path, path: str) -> None:
    (work / "settings/local").write_text(f"PASSWORD={PLAIN_SECRET}\n")
    (work / ".env").symlink_to("settings/local")
    done = decide(respond("done"), step="PLANNING")
    story = Story(tmp_path, [decide(act("file_ops.read_file", path=path), next_step="continue"), done], mode="ask")
    await story.tell("go on")
    assert not leaks(story)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("made", NEW_REPOSITORIES)
async def test_a_new_repository_with_a_forged_entry_uncovers_nothing(tmp_path: Path, work: Path, made: str) -> None:
    (work / ".env").write_text(f"PASSWORD={PLAIN_SECRET}\n")
    story = await run(tmp_path, made.format(forge=FORGE), "rev .en*")
    assert story.all(ActionFinished)[0].result.ok
    assert not leaks(story)
    await story.close()
    secret_index.cache_clear()
    assert not leaks(await run(tmp_path, "rev .en*"))
