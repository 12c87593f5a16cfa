"""Services, clouds, backups, secrets: told to delete, they do, and mostly for good."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.verdict import Finding, danger

SUBCOMMAND = re.compile(r"^[a-zA-Z][\w:-]*$")
PARTS = re.compile(r"[-_:]|(?<=[a-z])(?=[A-Z])")
DESTROYING = frozenset(
    ("delete", "destroy", "purge", "wipe", "erase", "drop", "nuke", "terminate", "deregister", "unregister")
    + ("obliterate", "deleteall", "delete-all", "dropdb", "unpublish", "yank")
)
TAKING_AWAY = frozenset(
    ("remove", "rm", "rb", "rmdir", "rmi", "del", "deletefile", "disable", "revoke", "forget", "prune", "compact")
    + ("clear", "flush", "reset", "archive", "detach", "evict", "drain", "uninstall", "rollback", "invalidate")
    + ("expire",)
    + ("unsubscribe", "offline", "seal", "rekey", "deactivate", "suspend", "unlink", "truncate", "cleanup")
    + ("trash", "discard", "cancel", "mb-rm")
)
HARMLESS = frozenset(
    ("list", "ls", "get", "describe", "show", "status", "info", "view", "head", "lookup", "read", "search")
    + ("check", "version", "diff", "plan", "whoami", "help", "stats", "cat", "find", "inspect", "explain")
    + ("create", "add")
    + ("new", "init", "start", "login", "download", "copy", "cp", "pull", "clone", "watch", "validate", "lint", "fmt")
)
SERVICES = frozenset(
    ("aws", "gcloud", "gsutil", "bq", "az", "azcopy", "doctl", "linode-cli", "hcloud", "oci", "ibmcloud")
    + ("scw", "vultr-cli")
    + ("aliyun", "openstack", "kubectl", "oc", "helm", "helmfile", "k9s", "eksctl", "kops", "argocd", "flux")
    + ("istioctl",)
    + ("kustomize", "kind", "minikube", "k3d", "velero", "rancher", "nomad", "consul", "vault", "op", "doppler")
    + ("infisical",)
    + ("bw", "pass", "chamber", "sops", "terraform", "tofu", "terragrunt", "pulumi", "cdk", "cdktf", "sam")
    + ("serverless",)
    + ("sls", "packer", "vagrant", "multipass", "lxc", "incus", "virsh", "vboxmanage", "qm", "pct", "rclone")
    + ("restic", "borg")
    + ("kopia", "duplicity", "duplicacy", "mc", "s3cmd", "s5cmd", "b2", "gh", "glab", "hub", "tea", "circleci")
    + ("travis",)
    + ("gitlab-runner", "buildkite-agent", "drone", "jenkins-cli", "nats", "rabbitmqctl", "rabbitmqadmin")
    + ("pulsar-admin",)
    + ("rpk", "kcat", "heroku", "fly", "flyctl", "vercel", "netlify", "wrangler", "railway", "render")
    + ("firebase", "supabase")
    + ("planetscale", "pscale", "neonctl", "turso", "eb", "ecs-cli", "copilot", "amplify", "cf", "dokku", "now")
    + ("surge",)
    + ("stripe", "braintree", "square", "twilio", "sentry-cli", "datadog-ci", "datadog", "dog", "newrelic")
    + ("pd", "splunk")
    + ("promtool", "amtool", "grafana-cli", "ldcli", "launchdarkly", "flipt", "unleash", "split", "kong")
    + ("deck", "apigee")
    + ("apigeecli", "traefik", "haproxy", "fastly", "cloudflared", "flarectl", "cfcli", "dnscontrol")
    + ("nsupdate", "certbot")
    + ("acme.sh", "lego", "etcdctl", "zkcli", "curator", "algolia", "meilisearch", "atlas", "mongocli", "ansible-vault")
    + ("jenkins", "kafkactl", "confluent", "temporal", "tctl", "airflow", "dagster", "prefect", "dbt", "dvc", "wandb")
    + ("huggingface-cli", "hf", "ollama", "jfrog", "jf", "quay", "skopeo", "crane", "regctl", "oras", "cosign")
    + ("tailscale",)
    + ("zerotier-cli", "wg", "ipfs", "timedatectl", "snapper", "timeshift", "sqs", "ses", "sendgrid", "mailgun")
    + ("postmark",)
)
OF_THEIR_OWN: dict[str, frozenset[str]] = {
    "rclone": frozenset(("sync", "move", "moveto", "dedupe")),
    "azcopy": frozenset(("sync",)),
    "gsutil": frozenset(("rsync", "mv")),
    "kubectl": frozenset(("cordon", "replace", "taint")),
    "terraform": frozenset(("force", "taint", "untaint")),
    "tofu": frozenset(("force", "taint", "untaint")),
    "vault": frozenset(("rotate", "step")),
    "vagrant": frozenset(("halt",)),
    "ollama": frozenset(()),
    "rabbitmqctl": frozenset(("stop", "shutdown", "close")),
    "jenkins-cli": frozenset(("quiet", "shutdown", "stop")),
    "virsh": frozenset(("undefine", "shutdown")),
    "mc": frozenset(("mirror", "mv")),
}
KEEPS_SECRETS = frozenset(("secretsmanager", "ssm", "kms", "keyvault"))
CHANGES = frozenset(("put", "update", "rotate", "set", "replace", "schedule"))
OPTIONS = (
    "--delete",
    "--purge",
    "--remove",
    "--destroy",
    "--prune",
    "--wipe",
    "--force-delete",
    "--del",
    "--reset",
) + ("-destroy",)
UNASKED = frozenset(("-auto-approve", "--auto-approve", "--yes", "-y", "--skip-preview", "--force-destroy"))
DRY = frozenset(("--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server", "--help", "-h", "--version", "--dry"))
MOST_WORDS = 8


def is_service(program: str) -> bool:
    return program in SERVICES or program.startswith(("kafka-", "rabbitmq", "aws-"))


def judge_service_call(call: Invocation) -> Iterator[Finding]:
    """The first telling word decides: `list` and `create` are harmless, `delete` is not."""
    if not DRY.isdisjoint(call.texts):
        return
    words = [text for text in call.texts if SUBCOMMAND.match(text)][:MOST_WORDS]
    yield from _judge_options(call)
    yield from _judge_approval(call, words)
    own = OF_THEIR_OWN.get(call.program, frozenset[str]())
    for word in words:
        parts = _parts(word)
        if parts & (DESTROYING | TAKING_AWAY | own):
            yield danger("service_destroys", program=call.program, action=word)
            return
        if parts & CHANGES and not KEEPS_SECRETS.isdisjoint(words):
            yield danger("changes_secret", program=call.program, action=word)
            return
        if parts & HARMLESS:
            return


def judge_unknown(call: Invocation) -> Iterator[Finding]:
    """A program nobody here knows, told in plain words to destroy something."""
    if not DRY.isdisjoint(call.texts):
        return
    for word in [text for text in call.texts if SUBCOMMAND.match(text)][:3]:
        parts = _parts(word)
        if parts & DESTROYING:
            yield danger("service_destroys", program=call.program, action=word)
            return
        if parts & HARMLESS:
            return


def _judge_options(call: Invocation) -> Iterator[Finding]:
    for text in call.texts:
        if text.startswith(OPTIONS) and not text.endswith("=false"):
            yield danger("service_destroys", program=call.program, action=text)
            return


def _judge_approval(call: Invocation, words: list[str]) -> Iterator[Finding]:
    """`apply` and `up` with the question switched off."""
    if words[:1] in (["apply"], ["up"], ["deploy"]) and not UNASKED.isdisjoint(call.texts):
        yield danger("service_unasked", program=call.program, action=words[0])
    if words[:1] == ["scale"] and any(text.replace("=", " ").endswith("replicas 0") for text in call.texts):
        yield danger("service_destroys", program=call.program, action="scale")


def _parts(word: str) -> set[str]:
    return {part.lower() for part in PARTS.split(word)} | {word.lower()}
