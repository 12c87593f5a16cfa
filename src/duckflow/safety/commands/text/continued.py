"""Lines that end in a backslash go on in the next one."""

import re

CONTINUED = re.compile(r"'[^']*'|\\\r?\n|\\.", re.DOTALL)


def joined_lines(text: str) -> str:
    """As a shell joins them. Comments do not go on, so a text with a `#` is left to the grammar."""
    if "\\\n" not in text or "#" in text:
        return text
    return CONTINUED.sub(lambda found: "" if found[0] in ("\\\n", "\\\r\n") else found[0], text)
