"""Stars and underscores that are no emphasis in Markdown: models write `src/*.py` and `__init__.py` in plain words."""

import re
from typing import Any

LITERAL = re.compile(
    r"(?<!\w)_{1,2}(?=[^\W_])\w*_{1,2}(?!\w)"
    r"|(?<=/)\*{1,2}"
    r"|(?<![\w*])\*{1,2}(?=[./][\w*])"
    r"|(?<=[A-Za-z0-9_.~$-])\*(?=[A-Za-z0-9_]|[./][\w*])(?!\*)"
)
"""A pattern for a single word such as `_cache_`, which is a name in code, and for a star beside a slash, before an
extension, or inside of a name or a product."""


def keep_literal_signs(reader: Any) -> None:
    """Adds the rule to a reader of markdown-it."""
    reader.inline.ruler.before("emphasis", "literal", _take)


def _take(state: Any, silent: bool) -> bool:
    match = LITERAL.match(state.src, state.pos) if state.src[state.pos] in "*_" else None
    if match is None:
        return False
    if not silent:
        state.pending += match[0]
    state.pos = match.end()
    return True
