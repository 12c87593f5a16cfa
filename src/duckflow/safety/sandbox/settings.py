"""Settings of the sandbox."""

from typing import Literal

from duckflow.state.data import Section


class SandboxSettings(Section):
    """The places that commands may reach beyond the work folder, and the kind of sandbox."""

    kind: Literal["auto", "bubblewrap", "landlock", "none"] = "auto"
    """The kind of sandbox; `auto` is the best one that works on this machine. If a named kind does not work here, there
    is no sandbox, and the user is asked before every command."""
    network: bool = False
    """True if every command may use the network; otherwise only commands that ask for it may."""
    unix_sockets: bool = False
    """True if commands may use local sockets. These reach the docker daemon, the keyring and the desktop; some test
    suites need sockets of their own."""
    writable: tuple[str, ...] = ()
    """Further folders that commands may write in, such as `~/.cache/pip`."""
    hidden: tuple[str, ...] = ()
    """Further files and folders that no command may read."""
    shown: tuple[str, ...] = ()
    """Places that are hidden by default, but that commands may read."""
