"""Settings of the sandbox."""

from typing import Literal

from duckflow.state.noun import Section


class SandboxSettings(Section):
    """What commands may reach beyond the work folder."""

    kind: Literal["auto", "bubblewrap", "landlock", "none"] = "auto"
    """`auto`: the best this machine has. A named one that does not work here leaves no sandbox: every command asks."""
    network: bool = False
    """Every command may use the network; otherwise only those that ask for it."""
    unix_sockets: bool = False
    """Local sockets reach the docker daemon, the keyring and the desktop; some test suites need their own."""
    writable: tuple[str, ...] = ()
    """Further folders to write in, such as `~/.cache/pip`."""
    hidden: tuple[str, ...] = ()
    """Further files and folders that no command may read."""
    shown: tuple[str, ...] = ()
    """Of the places hidden by default, those that commands may read."""
