"""Where programs are taken from."""

TRUSTED_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/")


def is_trusted_place(program: str) -> bool:
    """A bare name, or a path into one of the system's own folders."""
    folder = program[: program.rfind("/") + 1]
    return not folder or folder in TRUSTED_FOLDERS
