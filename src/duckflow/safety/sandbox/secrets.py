"""Where people keep what a command must not read: keys, tokens, cookies, histories."""

IN_HOME = (
    # keys and passwords
    ".ssh", ".gnupg", ".pki", ".age", ".config/sops", ".password-store", ".local/share/keyrings",
    ".local/share/kwalletd", ".config/op", ".config/1Password", ".config/Bitwarden", ".config/keepassxc",
    "Library/Keychains", ".Xauthority", ".ICEauthority", ".electrum", ".bitcoin", ".ethereum",
    # logins of tools
    ".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli",
    ".docker/config.json", ".config/containers/auth.json", ".npmrc", ".yarnrc.yml", ".pypirc", ".config/pypoetry",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".pgpass", ".my.cnf", ".vault-token", ".config/configstore", ".config/rclone",
    ".config/stripe", ".s3cfg", ".boto", ".databrickscfg", ".snowflake", ".huggingface", ".cache/huggingface/token",
    # clouds
    ".aws", ".azure", ".config/gcloud", ".kube", ".oci", ".bluemix", ".fly", ".config/doctl", ".config/hcloud",
    ".config/heroku", ".config/netlify", ".netlify", ".config/.wrangler", ".wrangler", ".terraform.d",
    ".local/share/com.vercel.cli", ".config/scw",
    # other assistants
    ".claude", ".claude.json", ".codex", ".gemini", ".config/github-copilot", ".config/anthropic", ".config/openai",
    ".aider.conf.yml", ".continue", ".local/share/opencode",
    # browsers, mail, chat
    ".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".config/vivaldi", ".config/opera", ".thunderbird", "snap/firefox", "snap/chromium",
    ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", ".config/Slack", ".config/discord", ".config/Signal",
    "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware", "Library/Cookies", "Library/Safari", "Library/Mail",
    "Library/Messages",
    # what was typed
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history",
    ".local/share/fish/fish_history", ".lesshst", ".viminfo",
)  # fmt: skip

ON_THE_MACHINE = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key",
    "/etc/krb5.keytab", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/docker/key.json",
    "/run/secrets", "/run/credentials", "/run/user", "/var/lib/docker", "/var/lib/containerd",
    "/var/spool/cron", "/var/mail",
)  # fmt: skip
