"""Which words of a call are files that it reads."""

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.text.words import Word

NO_FILES = frozenset(
    ("echo", "printf", "true", "false", ":", "sleep", "seq", "expr", "which", "type", "whereis", "hash", "basename")
    + ("dirname", "cd", "pwd", "command", "whoami", "id", "date", "uname", "hostname", "printenv")
)
"""What they are given is not read."""
PATTERN_FIRST = frozenset(
    ("grep", "egrep", "fgrep", "zgrep", "rg", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq")
)
PATTERN_BY_OPTION = ("-e", "-f", "--regexp", "--file", "--expression", "--files")


def files_read(call: Invocation) -> list[Word]:
    """Everything that may be a file; for `--option=file` and `revision:file` the part behind the mark."""
    if not call.words or call.program in NO_FILES:
        return []
    words = list(call.arguments)
    if call.program in PATTERN_FIRST and not any(text.startswith(PATTERN_BY_OPTION) for text in call.texts):
        pattern = next((word for word in words if not word.text.startswith("-")), None)
        words = [word for word in words if word is not pattern]
    marks = "=:" if call.program == "git" else "="
    return [Word(_behind(word.text, marks), word.known, word.plain) for word in words]


def _behind(text: str, marks: str) -> str:
    return text[max(text.rfind(mark) for mark in marks) + 1 :]
