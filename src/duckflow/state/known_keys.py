"""Secret keys of endpoints that this process has used. They are removed from whatever is stored or sent to a collector,
since an endpoint may repeat a key in an error or in a reply."""

import json
import re

HIDDEN = "***"
SHORTEST, SURELY_SECRET = 7, 16
JSON_IN_JSON = 3
"""Number of spellings of a key. A reply is JSON, it may quote JSON, and it is stored as JSON."""
_spellings: dict[str, None] = {}


def remember_key(secret: str) -> None:
    """Remembers a key as secret. A short one, or a mere word, is a placeholder for servers that want any key (`x`,
    `lm-studio`)."""
    if len(secret) >= SURELY_SECRET or (len(secret) >= SHORTEST and re.search(r"\d", secret)):
        for _ in range(JSON_IN_JSON):
            _spellings[secret] = None
            secret = json.dumps(secret)[1:-1]


def without_keys(text: str) -> str:
    for spelled in _spellings:
        text = text.replace(spelled, HIDDEN)
    return text
