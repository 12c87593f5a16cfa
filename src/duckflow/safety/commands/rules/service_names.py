"""Command-line programs of services, by what they look after."""

CLOUDS = frozenset(
    ("aws", "gcloud", "gsutil", "bq", "az", "azcopy", "doctl", "linode-cli", "hcloud", "oci", "ibmcloud", "scw")
    + ("vultr-cli", "aliyun", "openstack", "firebase", "amplify", "eb", "ecs-cli", "copilot", "sam", "cdk")
    + ("serverless", "sls", "cf", "wrangler", "flarectl", "cfcli", "cloudflared", "fastly")
)
CLUSTERS = frozenset(
    ("kubectl", "oc", "helm", "helmfile", "eksctl", "kops", "argocd", "flux", "istioctl", "kustomize", "kind")
    + ("minikube", "k3d", "rancher", "nomad", "consul", "etcdctl", "skopeo", "crane", "regctl", "oras", "cosign")
)
INFRASTRUCTURE = frozenset(
    ("terraform", "tofu", "terragrunt", "pulumi", "cdktf", "packer", "vagrant", "multipass", "lxc", "incus")
    + ("virsh", "vboxmanage", "qm", "pct", "dnscontrol", "certbot", "acme.sh", "lego", "tailscale", "zerotier-cli")
    + ("kong", "deck", "apigeecli", "traefik", "haproxy", "snapper", "timeshift")
)
SECRETS = frozenset(("vault", "op", "doppler", "infisical", "bw", "pass", "chamber", "sops", "ansible-vault"))
BACKUPS = frozenset(
    ("rclone", "restic", "borg", "kopia", "duplicity", "duplicacy", "velero", "mc", "s3cmd", "s5cmd", "b2", "ipfs")
)
PIPELINES = frozenset(
    ("gh", "glab", "hub", "tea", "circleci", "travis", "gitlab-runner", "buildkite-agent", "drone", "jenkins-cli")
    + ("jenkins", "airflow", "dagster", "prefect", "temporal", "tctl", "dbt", "dvc", "jfrog", "jf")
)
MESSAGING = frozenset(("nats", "rabbitmqctl", "rabbitmqadmin", "pulsar-admin", "rpk", "kafkactl", "confluent"))
HOSTING = frozenset(
    ("heroku", "fly", "flyctl", "vercel", "netlify", "railway", "supabase", "pscale", "neonctl", "turso", "dokku")
    + ("surge", "atlas", "mongocli", "algolia", "stripe", "twilio", "sentry-cli", "datadog-ci", "newrelic", "splunk")
    + ("promtool", "amtool", "grafana-cli", "ldcli", "flipt", "unleash", "wandb", "huggingface-cli", "hf", "ollama")
)
SERVICES = CLOUDS | CLUSTERS | INFRASTRUCTURE | SECRETS | BACKUPS | PIPELINES | MESSAGING | HOSTING
FAMILIES = ("kafka-", "rabbitmq", "aws-", "gcloud-", "pulsar-")


def is_service(program: str) -> bool:
    return program in SERVICES or program.startswith(FAMILIES)
