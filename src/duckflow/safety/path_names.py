"""Names of paths: how they are shown, which names mean the same file, and which files no tool opens (keys, logins,
Duckflow's own state)."""

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from duckflow.errors import PathRefused

ESCAPED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
JOINERS = "\u200c\u200d"
"""Characters that join others in ordinary words and emoji; they are shown as they are."""


def shown(text: str) -> str:
    """Returns the text as one line, with line breaks, control characters, direction marks and broken bytes as
    escapes."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def shown_line(line: str) -> str:
    """Returns a line of a file as it is shown to people; tabs stay."""
    return "\t".join(shown(part) for part in line.split("\t"))


def shown_size(size: int) -> str:
    """Returns a size as people read it: `512 B`, `1.5 KB`, `2.0 GB`."""
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KB", "MB", "GB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TB"


def _visible(char: str) -> str:
    if unicodedata.category(char) not in ESCAPED or char in JOINERS:
        return char
    return char.encode("unicode_escape").decode("ascii")


MAX_PATH = 4096
MAX_NAME = 255
MAX_DEPTH = 200
SHOWN_LENGTH = 120


def names_of(path: str, root: os.stat_result) -> list[str]:
    """Returns the names that a path consists of. `..` stays; it is resolved when the path is followed. Only `/`
    separates: look-alikes of it, backslashes and drive letters are ordinary characters of a name."""
    _check(path)
    if path == "~" or path.startswith("~/"):
        path = _home() + path[1:]
    names = beneath(path, root) if path.startswith("/") else split(path)
    if len(names) > MAX_DEPTH or any(len(os.fsencode(name)) > MAX_NAME for name in names):
        raise _unusable(path, "has a name longer than 255 bytes or too many folders")
    return names


def split(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def beneath(path: str, root: os.stat_result) -> list[str]:
    """Returns the part of an absolute path after the work folder. The folder is recognised by its device and inode, not
    by its spelling, so it may be reached through links. The part before the work folder is never used to open files:
    the rest is followed from the work folder's own handle."""
    names = split(path)
    inner_names: list[str] | None = None
    current_folder = Path("/")
    for count in range(len(names) + 1):
        if count:
            current_folder = current_folder / names[count - 1]
        try:
            is_root = os.path.samestat(current_folder.stat(), root)
        except OSError:
            break
        if is_root:
            inner_names = names[count:]
    if inner_names is None:
        raise outside(path)
    return inner_names


def outside(path: str) -> PathRefused:
    name = _short(path)
    return PathRefused(
        f"{name} is outside the work folder. Use a path inside it, relative to the folder.", "path.outside", path=name
    )


def _check(path: str) -> None:
    if not path.strip():
        raise PathRefused("The path is empty. Give a path relative to the work folder, or `.`.", "path.empty")
    if "\0" in path:
        raise _unusable(path, "contains a NUL character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise _unusable(path, "contains characters that are no valid text") from None
    if size >= MAX_PATH:
        raise _unusable(path, f"is longer than {MAX_PATH} bytes")


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        raise _unusable("~", "needs a home folder, and there is none") from None


def _unusable(path: str, why: str) -> PathRefused:
    name = _short(path)
    return PathRefused(f"The path {name} {why}. Use another one.", "path.unusable", path=name)


def _short(path: str) -> str:
    return shown(path if len(path) <= SHOWN_LENGTH else path[:SHOWN_LENGTH] + "…")


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
"""Private places in the home folder: keys and passwords; logins of tools; clouds; other assistants; browsers, mail and
chat; shell histories."""
ON_THE_MACHINE = _listed("""
/etc/shadow, /etc/shadow-, /etc/gshadow, /etc/gshadow-, /etc/sudoers, /etc/sudoers.d, /etc/ssh/ssh_host_rsa_key,
/etc/ssh/ssh_host_ecdsa_key, /etc/ssh/ssh_host_ed25519_key, /etc/krb5.keytab, /etc/wireguard,
/etc/NetworkManager/system-connections, /etc/docker/key.json
""")
"""Keys of the machine among the system's own files. The sandbox shows commands only places in `SYSTEM`, so others need
no entry here."""


SYSTEM = _listed("""
/bin, /sbin, /lib, /lib32, /lib64, /libx32, /usr, /etc, /opt, /nix, /gnu, /snap, /sys/devices/system, /sys/fs/cgroup,
/run/current-system, /run/booted-system, /run/opengl-driver, /run/systemd/resolve, /run/resolvconf,
/var/lib/dpkg, /var/lib/rpm, /var/lib/pacman, /var/lib/gems, /var/lib/ghc, /var/lib/texmf,
/var/lib/alternatives, /var/lib/snapd/snap, /var/lib/flatpak/exports, /var/lib/ca-certificates, /var/cache/fontconfig,
/var/usrlocal, /var/guix/profiles
""")
"""Places that belong to the system: programs, libraries, settings of the machine, and lists of installed packages."""
TOOLS_IN_HOME = _listed("""
.cargo/bin, .cargo/registry, .cargo/git, .rustup, go/bin, go/pkg, .m2/repository, .m2/wrapper, .gradle/caches,
.gradle/wrapper, .gradle/jdks, .gradle/native, .ivy2/cache, .ivy2/local, .sbt/boot, .sbt/launchers, .sdkman/candidates,
.jenv, .jabba, .konan, .android/debug.keystore, .android/build-cache, .android/cache, Android/Sdk, .npm/_cacache,
.npm/_npx, .nvm, .fnm, .volta, .nodenv, .node-gyp, .yarn/berry, .yarn/bin, .pnpm-store, .local/share/pnpm, .bun/bin,
.bun/install, .deno/bin, .pyenv, .virtualenvs, .conda/pkgs, .conda/envs, miniconda3, miniforge3, mambaforge, anaconda3,
.rye/py, .rye/shims, .rye/self, .rye/tools, .local/share/uv/python, .local/share/uv/tools, .local/share/virtualenvs,
.local/pipx, .local/share/pipx, .rbenv, .rvm, .gem/ruby, .gem/specs, .bundle/cache, .bundle/plugin, .asdf,
.local/share/mise/installs, .local/share/mise/shims, .local/share/mise/plugins, .local/share/fnm, .nuget/packages,
.dotnet/sdk, .dotnet/shared, .dotnet/host, .dotnet/packs, .dotnet/tools, .dotnet/dotnet, .cabal/packages, .cabal/store,
.cabal/bin, .ghcup, .stack/snapshots, .stack/programs, .stack/pantry, .opam, .julia/packages, .julia/artifacts,
.julia/compiled, .julia/environments, .julia/registries, .julia/scratchspaces, .julia/juliaup, .juliaup,
.composer/vendor, .config/composer/vendor, .mix/archives, .mix/elixir, .mix/escripts, .hex/packages, .pub-cache/hosted,
.pub-cache/git, .pub-cache/bin, .pub-cache/global_packages, flutter, .swiftpm/cache, perl5, .nix-profile, .local/bin,
.local/lib, bin, .editorconfig, .tool-versions,
.cache/pip, .cache/uv, .cache/pypoetry/virtualenvs, .cache/pypoetry/cache, .cache/pipenv, .cache/pre-commit,
.cache/go-build, .cache/golangci-lint, .cache/yarn, .cache/pnpm, .cache/node, .cache/node-gyp, .cache/deno,
.cache/bazel, .cache/bazelisk, .cache/ccache, .cache/sccache, .cache/zig, .cache/rebar3, .cache/composer,
.cache/coursier, .cache/dart, .cache/ms-playwright, .cache/puppeteer, .cache/selenium, .cache/Cypress, .cache/electron,
.cache/huggingface/hub, .cache/huggingface/datasets, .cache/torch, .cache/whisper, .cache/matplotlib, .cache/fontconfig,
.cache/nix, .cache/typescript
""")
"""Places in the home folder that tools need: toolchains, packages and caches. Logins that lie beside them are not named
here, so commands cannot see them."""
SETTINGS_IN_HOME = _listed("""
.gitconfig, .config/git/config, .config/git/ignore, .config/git/attributes, .config/pip/pip.conf, .config/uv/uv.toml,
.config/go/env, .config/pnpm/rc, .condarc, .cargo/config, .cargo/config.toml, .cargo/env, .m2/settings.xml,
.gradle/init.gradle, .nuget/NuGet/NuGet.Config, .cabal/config, .bundle/config, .stack/config.yaml,
.config/mise/config.toml, .sbt/repositories, .rye/config.toml, .composer/config.json, .config/composer/config.json
""")
"""Settings of tools in the home folder. A file with a login in it is hidden from commands."""


def holds_home(folder: Path, home: Path) -> bool:
    """Says whether the folder is the user's home, or a folder above the home such as `/`. Such a folder is no
    project."""
    return f"{os.path.realpath(home)}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/")


def private_places(folder: Path, home: Path, own: Iterable[Path], opened: Sequence[str] = ()) -> tuple[Path, ...]:
    """Returns the private places beneath the folder, whether they exist yet or not, and Duckflow's own folders (`own`)
    if one of them lies in the folder or holds it. `opened` lists places that the user's settings let commands read,
    such as `~/.npmrc`."""
    real_folder, real_home = os.path.realpath(folder), os.path.realpath(home)
    named_paths = [f"{real_home}/{name}" for name in IN_HOME if f"~/{name}" not in opened]
    inner_paths = [path for path in named_paths if path.startswith(real_folder.rstrip("/") + "/")]
    # A link to a place with keys makes that place private too.
    private_paths = {Path(path) for path in inner_paths} | {Path(os.path.realpath(path)) for path in inner_paths}
    private_paths |= {Path(os.path.realpath(path)) for path in own}
    return tuple(
        sorted(
            path for path in private_paths if path.is_relative_to(real_folder) or Path(real_folder).is_relative_to(path)
        )
    )


def refuse_private(places: Iterable[Path], real: Path, spelling: str, whole: bool = False) -> None:
    """Refuses a path in a private place. With `whole`, a path that contains a private place is refused too, as when a
    folder is moved or deleted."""
    for private_path in places:
        if real.is_relative_to(private_path) or (whole and private_path.is_relative_to(real)):
            name = shown(spelling)
            raise PathRefused(
                f"{name} is private (keys, logins, or Duckflow's own state): no tool opens or changes it. "
                "Do without it, or tell the user.",
                "path.private",
                path=name,
            )


def path_of_handle(handle: int) -> Path | None:
    """Returns the real path of an open file or folder, or None where the system does not tell it."""
    try:
        return Path(f"/proc/self/fd/{handle}").readlink()
    except OSError:
        return None


def names_file(text: str, subject: str) -> bool:
    """Says whether a text names this very file or program. A name in capitals needs no ending: `the README`."""
    name = subject.rpartition("/")[2]
    stem = name.partition(".")[0]
    spellings = (name, stem) if stem != stem.lower() else (name,)
    return any(re.search(rf"(?<![\w.-]){re.escape(spelling)}(?![A-Za-z0-9_-])", text) for spelling in spellings)


def named_files(text: str, subjects: Iterable[str], mark: str) -> tuple[str, list[str]]:
    """Replaces the names of these files in the text by a mark, and returns the text and the files that were named. A
    name that several of these files share stays in the text, and so does the name of any other file."""
    by_name: dict[str, list[str]] = {}
    for subject in subjects:
        name = subject.rpartition("/")[2]
        stem = name.partition(".")[0]
        for spelling in {subject, name, *([stem] if stem != stem.lower() else [])}:
            by_name.setdefault(spelling, []).append(subject)
    file_names: list[str] = []

    def marked(spelled: re.Match[str]) -> str:
        files = by_name[spelled[0]]
        file = spelled[0] if spelled[0] in files else files[0] if len(files) == 1 else ""
        file_names.extend([file] if file else [])
        return mark if file else spelled[0]

    names = "|".join(map(re.escape, sorted(filter(None, by_name), key=len, reverse=True)))
    text = re.sub(rf"(?<![A-Za-z0-9_./-])(?:{names})(?![A-Za-z0-9_-]|\.\w|/)", marked, text) if names else text
    return text, list(dict.fromkeys(file_names))


def escaped(path: str) -> str:
    """Returns the glob pattern that matches this path and nothing else."""
    return re.sub(r"([*?\[\\{])", r"\\\1", path)
