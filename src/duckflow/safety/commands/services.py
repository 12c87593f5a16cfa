"""Judges calls of git, services, databases and web requests, which can destroy things for good; and calls that send
secrets away."""

import re
from collections.abc import Iterator
from dataclasses import replace

from duckflow.safety.commands.paths import Scene, is_secret
from duckflow.safety.commands.reader_programs import DIFF_OPTIONS, GIT_READERS, read_table
from duckflow.safety.commands.verdict import CommandFinding, ask, danger
from duckflow.safety.commands.words import Call, Word, names, read_options

REVISION = re.compile(r"^[\w@][\w./@~^-]*$")
"""Matches revisions such as `HEAD~2` and `main^`, which every shell passes to git unchanged."""
SECOND_WORDS = frozenset(name.split()[1] for name in GIT_READERS if name.count(" ") == 2)
COMPARING = frozenset(read_table(f"diff | {DIFF_OPTIONS.replace('0-9', '')} Lcmt")["diff"].options)
NOTHING = frozenset[str]()
RECORDED: dict[str, frozenset[str]] = {
    **dict.fromkeys(names("branch tag for-each-ref show-ref rev-parse merge-base remote config ls-tree"), NOTHING),
    **dict.fromkeys(names("cat-file grep check-ignore worktree"), NOTHING),
    **dict.fromkeys(names("log rev-list shortlog reflog"), COMPARING),
    "ls-files": names("-m --modified"),
    "describe": names("--dirty"),
}
"""Git commands that read recorded history, each with the options that make it compare the contents of files. Without
these options git starts no program that the repository's settings name, because the variables in `GIT_ALONE` switch
such programs off for every command that runs unasked."""
OWN_HARMLESS = names("--no-pager -P --version -v --no-optional-locks --literal-pathspecs")
OWN_WITH_VALUE = names("--git-dir --work-tree --namespace --exec-path --config-env --attr-source")
SIGNED = re.compile(r"%G|signature")
RUNS_PROGRAMS = re.compile(
    r"alias\.|pager\.|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|sequence\.editor"
    r"|diff\.|credential\.|gpg\.|uploadpack\.|filter\.|merge\.|difftool\.|mergetool\.|browser\.|protocol\.|interactive\.",
    re.IGNORECASE,
)


def as_subcommand(call: Call) -> tuple[Call, tuple[tuple[str, str], ...]]:
    """Returns a call of git as a call of its subcommand (`git -C x log -1` becomes `git log` with `-1`), and git's own
    options with their values."""
    git_options, words = list[tuple[str, str]](), list(call.arguments)
    while words and words[0].text.startswith("-"):
        text = words.pop(0).text
        name, equals_sign, value = text.partition("=")
        if text[:2] in ("-C", "-c") and not text.startswith("--"):
            git_options.append((text[:2], text[2:] or (words.pop(0).text if words else "")))
        else:
            git_options.append(
                (name, value if equals_sign or name not in OWN_WITH_VALUE or not words else words.pop(0).text)
            )
    names = [words.pop(0)] if words else []
    if names and words and names[0].text in SECOND_WORDS and f"git {names[0].text} {words[0].text}" in GIT_READERS:
        names.append(words.pop(0))
    title = " ".join(("git", *(name.text for name in names)))
    is_literal_git = all(name.literal for name in names) and call.words[0].text == "git"
    program_word = Word(title, call.words[0].known and is_literal_git, call.words[0].literal and is_literal_git)
    return replace(call, words=(program_word, *words)), tuple(git_options)


def doubt_git(call: Call, own: tuple[tuple[str, str], ...], scene: Scene) -> Iterator[CommandFinding]:
    """Yields doubts about a call of git. Even a reading command runs programs if it compares contents and the
    repository's settings name such programs."""
    comparing_options = RECORDED.get(call.program.removeprefix("git ").partition(" ")[0])
    compares_files = comparing_options is None or read_options(call.arguments, "nSGUL").has(*comparing_options)
    if compares_files and scene.facts.git_runs_programs is None:
        yield ask("git_unchecked")
    elif compares_files and scene.facts.git_runs_programs:
        yield ask("git_runs_programs")
    if scene.place != "here":
        yield ask("git_elsewhere")
    for option, _ in own:
        if option not in OWN_HARMLESS:
            yield ask("option_changes", program="git", option=option)
    if any(SIGNED.search(text) for text in call.texts):
        yield ask("git_runs_programs")


def runs_by_git(call: Call, own: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Yields texts that git would pass to a shell: settings, and the words after `foreach` and `run`."""
    settings = [tuple(value.split("=", 1)) for option, value in own if option == "-c"]
    if call.program == "git config" and len(call.plain_words) > 1:
        settings.append(call.plain_words[:2])
    yield from (pair[1].removeprefix("!") for pair in settings if len(pair) == 2 and RUNS_PROGRAMS.match(pair[0]))
    for index, text in enumerate(call.texts[:3]):
        if text in ("foreach", "run"):
            yield " ".join(call.texts[index + 1 :]).removeprefix("--recursive")


def throws_away(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Judges `git checkout` and `git push` by their operands: a checkout of paths discards changes, and a push may
    overwrite or delete branches."""
    texts = call.texts
    if call.program == "git checkout":
        options = read_options(call.arguments, "bBU", ("--orphan", "--conflict", "--unified", "--inter-hunk-context"))
        words = [word.text for word in options.operands]
        paths_follow = "--" in texts and texts.index("--") < len(texts) - 1
        names_paths = len(words) > 1 or any(map(_looks_like_path, words))
        if paths_follow or (names_paths and not options.has("-b", "-B", "--orphan")):
            yield danger("git_discards", action="checkout")
    elif call.program == "git push":
        branches = [word.text for word in read_options(call.arguments, "o").operands[1:]]
        if any(branch.startswith("+") for branch in branches):
            yield danger("git_force_push")
        if any(re.match(":.", branch) for branch in branches):
            yield danger("git_deletes_remote")


def _looks_like_path(text: str) -> bool:
    return text in (".", "..", "*", ":/", ":/*") or text.startswith(("./", "../", ":")) or text.endswith("/")


SERVICES = names(
    # clouds
    "aws gcloud gsutil bq az azcopy doctl linode-cli hcloud oci ibmcloud scw vultr-cli aliyun openstack firebase eb sam"
    " cdk amplify copilot serverless sls cf wrangler cloudflared fastly"
    # clusters and infrastructure
    " kubectl oc helm helmfile eksctl kops argocd flux istioctl kustomize kind minikube k3d rancher nomad consul skopeo"
    " etcdctl crane oras cosign terraform tofu terragrunt pulumi cdktf packer vagrant multipass lxc incus virsh qm pct"
    " vboxmanage dnscontrol certbot acme.sh lego tailscale kong deck traefik haproxy snapper timeshift"
    # secrets and backups
    " vault op doppler infisical bw pass chamber sops ansible-vault rclone restic borg kopia duplicity velero mc s3cmd"
    " s5cmd b2 ipfs"
    # pipelines, messages, hosting
    " gh glab hub circleci travis gitlab-runner buildkite-agent drone jenkins-cli jenkins airflow dagster prefect dvc"
    " temporal tctl dbt jfrog jf nats rabbitmqctl rabbitmqadmin rpk kafkactl confluent heroku fly flyctl vercel netlify"
    " railway supabase pscale neonctl turso dokku surge atlas mongocli algolia stripe twilio sentry-cli datadog-ci"
    " newrelic splunk promtool amtool grafana-cli ldcli flipt unleash wandb huggingface-cli"
)
FAMILIES = ("kafka-", "rabbitmq", "aws-", "gcloud-", "pulsar-")
SUBCOMMAND = re.compile(r"^[a-zA-Z][\w:-]*$")
PARTS = re.compile(r"[-_:]|(?<=[a-z])(?=[A-Z])")
DESTROYING = names(
    "delete destroy purge wipe erase drop nuke terminate deregister unregister obliterate deleteall unpublish yank"
)
TAKING_AWAY = DESTROYING | names(
    "remove rm rb rmdir rmdirs rmi del deletefile disable revoke forget prune compact clear flush reset archive detach"
    " evict drain cordon uninstall rollback undo undefine invalidate expire unsubscribe offline seal rekey deactivate"
    " suspend unlink truncate cleanup trash discard cancel taint untaint"
)
OF_THEIR_OWN = {"rclone": "sync move moveto", "azcopy": "sync", "gsutil": "rsync mv", "mc": "mirror mv"}
HARMLESS = names(
    "list ls get describe show status info view head lookup read search check version diff plan whoami help stats cat"
    " find inspect explain create add new init start login download copy cp pull clone watch validate lint fmt invoke"
    " send publish"
)
KEEPS_SECRETS = names("secretsmanager ssm kms keyvault")
CHANGES = names("put update rotate set replace schedule")
OPTIONS = names("delete del purge remove destroy prune wipe reset")
UNASKED = names("-auto-approve --auto-approve --yes -y --skip-preview --force-destroy")
DRY = ("--dry-run", "--dryrun", "--dry_run", "--help", "--version")
MOST_WORDS = 8
LOCAL = names(
    "mkdir make cargo npm yarn pnpm bun go pytest tox nox vim nano emacs code open less more man gcc clang cmake ninja"
    " mvn gradle dotnet ruff mypy black jest vitest tsc eslint pip uv poetry brew apt apt-get logger say notify-send"
)
"""Programs whose arguments are names of files, tests and packages: there, a word such as `delete` is a name."""


def judge_service(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Judges a call of a service's client (such as `aws`) by its first word that names an action: `list` and `create`
    are harmless, `delete` is not."""
    is_service = call.program in SERVICES or call.program.startswith(FAMILIES)
    if any(text.startswith(DRY) and not text.endswith("=none") for text in call.texts):
        return
    words = [text for text in call.texts if SUBCOMMAND.match(text)][:MOST_WORDS]
    destroying_words = TAKING_AWAY | names(OF_THEIR_OWN.get(call.program, ""))
    if not is_service:
        # For a program that is not in any list, only plain words right after its name count.
        words = words[:2] if call.program not in LOCAL and words[:1] == list(call.texts[:1]) else []
        destroying_words = DESTROYING
    for word in (call.program, *words) if is_service else words:
        parts = {name_part.lower() for name_part in PARTS.split(word)} | {word.lower()}
        if parts & destroying_words:
            yield danger("service_destroys", program=call.program, action=word)
            return
        if is_service and parts & CHANGES and not KEEPS_SECRETS.isdisjoint(words):
            yield danger("changes_secret", program=call.program, action=word)
            return
        if parts & HARMLESS:
            return
    if is_service:
        yield from _judge_options(call, words)


def _judge_options(call: Call, words: list[str]) -> Iterator[CommandFinding]:
    """Judges dangerous options of services: `--delete`, `apply` and `up` with the question switched off, and scaling
    down to zero."""
    for text in call.texts:
        name = PARTS.split(text.lstrip("-").partition("=")[0])
        if text.startswith("-") and not OPTIONS.isdisjoint(name[:2]) and not text.endswith("=false"):
            yield danger("service_destroys", program=call.program, action=text)
            return
    if words[:1] in (["apply"], ["up"], ["deploy"]) and not UNASKED.isdisjoint(call.texts):
        yield danger("service_unasked", program=call.program, action=words[0])
    if words[:1] == ["scale"] and any(text.replace("=", " ").endswith("replicas 0") for text in call.texts):
        yield danger("service_destroys", program=call.program, action="scale")


CLIENTS = names(
    "psql mysql mariadb sqlite3 sqlite sqlcmd sqlplus duckdb clickhouse-client clickhouse cqlsh mongosh mongo redis-cli"
    " valkey-cli keydb-cli influx cockroach snowsql bq trino presto usql pgcli mycli litecli cypher-shell isql tsql"
    " supabase turso wrangler rails prisma spanner-cli arangosh"
)
STATEMENT = re.compile(
    r"\bdrop\s+\w+|\btruncate\s+[\w\"'`.]+|\balter\s+table\s+\S+\s+drop\b|\bdetach\s+delete\b|\bflush(?:all|db)\b"
    r"|\bdrop\w*\s*\(|\b(?:delete(?:Many|One)?|remove)\s*\(|\bshutdown\b|\bconfig\s+(?:set|rewrite)\b|\breset\s+master\b"
    r"|\bdel(?:ete)?\s+\*|\bpurge\s+binary\b|\bgrant\s+all\b|\bload_extension\b|\binto\s+outfile\b|\bwritefile\s*\(|^(?:del|unlink)$",
    re.IGNORECASE,
)
TRUE_CONDITION = re.compile(r"\bwhere\s+(?:1\s*=\s*1|true|1)\s*(?:;|$|[\"'])", re.IGNORECASE)
ALL_ROWS = re.compile(r"\bdelete\s+from\b|\bupdate\s+\S+\s+set\b", re.IGNORECASE)
TASK = re.compile(
    r"(?:^| )(?:(?:db|database|migrate|schema|ecto|doctrine:\w+|liquibase|flyway)[:. ](?:drop|reset|purge|truncate|wipe"
    r"|rollback|refresh|fresh|clean|schema:load|migrate:(?:reset|down|undo))\S*|flush|sqlflush|reset_db|flywayClean"
    r"|downgrade base|drop-?all)(?: |$)",
    re.IGNORECASE,
)
RUNNERS = names(
    "rails rake artisan php manage.py python django-admin prisma alembic sequelize knex typeorm mix symfony console"
    " flask aerich flyway liquibase mvn gradle gradlew sqlx diesel drizzle-kit supabase npm yarn pnpm make bin dotnet"
    " sequelize-cli"
)


def judge_database(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Judges statements for a database client that drop, empty or overwrite without a condition, and calls of tasks
    with names such as `db:drop`."""
    if call.program in CLIENTS:
        for text in (*call.texts, " ".join(call.texts), call.input_text or ""):
            match = STATEMENT.search(text)
            if match:
                yield danger("database", statement=match[0])
            for statement in filter(ALL_ROWS.search, text.split(";")):
                if "where" not in statement.lower() or TRUE_CONDITION.search(statement + ";"):
                    yield danger("database", statement=statement.strip())
    task = TASK.search(" ".join(call.plain_words[:4])) if call.program in RUNNERS else None
    if task:
        yield danger("database", statement=task[0].strip())


DELETING = frozenset(("DELETE", "PURGE"))
SENDING = frozenset(("POST", "PUT", "PATCH"))
METHOD = re.compile(r"(?:^| )(?:-\w*X ?|--(?:request|method)[= ])(\w+)")
DESTROYING_PATH = re.compile(
    r"(?:/|_|=|\?)(?:do)?(?:delete|destroy|purge|drop|wipe|truncate|terminate|shutdown|_?delete_by_query|_close|flush\w*)"
    r"(?:$|[/?&_])",
    re.IGNORECASE,
)
REQUEST_VALUES = dict.fromkeys(names("curl wget http https xh gh"), "XdFTHuoAebcxKmwrCEYyzDtQUPh") | {
    "rsync": "efBTM",
    "nc": "eciIpPqsTVwXx",
    **dict.fromkeys(("scp", "sftp"), "iFJlocPSXbB"),
}
UPLOADS = (
    *names("-d --data --data-binary --data-raw --data-urlencode -F --form -T --upload-file --json --post-data"),
    *names("--post-file --body-data --body-file"),
)
PIECES = re.compile(r"[@<=:,\s()\"'`]")
SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
RUNS_BEHIND = {
    "socat": re.compile(r"\b(?:EXEC|SYSTEM|SHELL):", re.IGNORECASE),
    **dict.fromkeys(("nc", "ncat", "netcat"), re.compile(r"^(?:-[a-z]*[ec]|--exec|--sh-exec|--lua-exec)$")),
}


def judge_request(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    line = " ".join(call.texts)
    methods = {method.upper() for method in METHOD.findall(line)} | set(call.plain_words[:1])
    sends_data = not SENDING.isdisjoint(methods) or read_options(call.arguments, REQUEST_VALUES["curl"]).has(*UPLOADS)
    asks_deletion = any(DESTROYING_PATH.search(text.partition("?")[0]) for text in call.texts if "/" in text)
    if not DELETING.isdisjoint(methods) or (sends_data and asks_deletion):
        yield danger("http_delete", program=call.program)
    yield from judge_sending(call, scene)


def judge_sending(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Judges calls that send a file which looks like a secret to another machine."""
    options = read_options(call.arguments, REQUEST_VALUES.get(call.program, ""), UPLOADS)
    sent_texts = [word.text for word in (*options.operands, *options.values(*UPLOADS))]
    sent_texts += [redirect.target.text for redirect in call.redirects if redirect.operator == "<"]
    if any(is_secret(text) for piped_call in call.piped for text in piped_call.texts):
        yield danger("sends_secret", path="")
    for path in (piece for text in sent_texts if "://" not in text or "$" in text for piece in PIECES.split(text)):
        if is_secret(path):
            yield danger("sends_secret", path=path)


def judge_sockets(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Judges network connections that could give another machine a shell here: bash opens them as `/dev/tcp/…`, and
    netcat and socat can connect a program to them."""
    words = (*call.texts, *(redirect.target.text for redirect in call.redirects))
    if any(map(SOCKET.search, words)) or any(map(RUNS_BEHIND.get(call.program, SOCKET).search, words)):
        yield danger("remote_shell", program=call.program)
