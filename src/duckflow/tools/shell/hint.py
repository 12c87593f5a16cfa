"""What a command's failure has to do with the sandbox, in a line for the model."""

import re

NO_NETWORK = re.compile(
    r"could not resolve|name resolution|network is unreachable|getaddrinfo|ENOTFOUND|EAI_AGAIN|no such host"
    r"|failed to establish a new connection|failed to lookup address|name or service not known",
    re.IGNORECASE,
)
REFUSED = re.compile(r"read-only file system|EROFS|permission denied|operation not permitted", re.IGNORECASE)


def hint(output: str, network: bool, writes: bool) -> str:
    """Nothing when the failure looks like the command's own."""
    if not network and NO_NETWORK.search(output):
        return "The sandbox has no network. If the command needs it, run it again with network=true."
    if not REFUSED.search(output):
        return ""
    if not writes:
        return "The command was taken for one that only reads, so it ran with everything read-only."
    return (
        "The sandbox lets commands write only in the work folder and in $TMPDIR, not in .git/hooks and .git/config; "
        f"it hides secrets{'' if network else ', and without network=true there is no network'}. "
        "Do not try to get around it: use another way, or ask the user."
    )
