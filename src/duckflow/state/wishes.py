"""What the user forbids or demands in passing, found by rules: such words become constraints."""

import re

CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")
NOT_ORDERS = r"(?!you\b|know\b|think\b|understand\b|worry\b|mind\b|see\b|get\b|care\b|remember\b|have\b|want\b|need\b)"
FORBIDS = re.compile(
    r"(?:^|[,;:]\s*|\b(?:please|but|and|also|so)\s+)(?:please\s+)?(?:do not|don['’]t|never)\s+" + NOT_ORDERS + r"\w+"
    r"|\b(?:must not|mustn['’]t)\s+\w+"
    r"|\bwithout\s+(?:any|using|changing|touching|adding|new|external)\b"
    r"|\b(?:use only|only use)\s+\w+"
    r"|\bno\s+(?:new\s+|external\s+|third-party\s+)?(?:dependenc(?:y|ies)|packages|libraries|network|internet)\b"
    r"|(?<!心配)(?<!遠慮)(?<!無理)(?:しないで|せずに|してはいけ|しないこと|しては駄目|してはだめ)"
    r"|(?:使|変え|触ら|触れ|消さ|入れ|いじら)(?:わ|え|れ)?(?:ないで|ずに|ないこと)|なしで|禁止"
    r"|だけを?(?:使|変|編集|修正|直)",
    re.IGNORECASE,
)
MOST = 2


def constraints_in(text: str) -> list[str]:
    """The sentences that forbid something or narrow it down; a question does neither."""
    sentences = (match[0].strip(" 、,") for match in SENTENCE.finditer(CODE.sub(" ", text)))
    orders = [one for one in sentences if FORBIDS.search(one) and not one.endswith(("?", "？"))]
    return [one.rstrip(".。!！") for one in orders][:MOST]
