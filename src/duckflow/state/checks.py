"""What a model says of its own checks: yes, or no with a reason. What is neither is asked for again."""

import re
import unicodedata

YES = r"(?:yes|true|y|ok|okay|not applicable|はい|うん|可|○|✓|n/a|none|該当なし|特になし|なし)(?![a-z])"
NO = r"(?:no|false|n|いいえ|いえ|否|不可|×|✗|ng)(?![a-z/])"
BUT = r"\b(?:but|however|except|although|though|unless)\b|ただし|しかし|けど|ですが|でも"
GOOD = (
    r"(?:\bconsisten|align|satisf|compl(?:y|ies|iant)|fulfil|meets?\b|keeps?\b|kept|serves?\b|match|within|respect|allow"
    r"|permit|support|適合|整合|一致|満た|守|遵守|従[うっい]|合致|合[うっい]|沿[っう])"
)
BAD = (
    r"(?:violat|break|broken|conflict|contradict|inconsisten|against|exceed|forbid|違反|矛盾|反[すし]|抵触|破[るっり]|超え|不適合"
    r"|不整合|不一致|逸脱|衝突|issues?|problem|concern|問題|支障)"
)
NOT = r"(?:\bno\b|\bnot\b|n['’]t\b|\bnone\b|\bnothing\b|\bnever\b|\bwithout\b|\bneither\b)"
NOT_JA = r"(?:ない|なし|ません|無[いし]|ず)"
NO_OBJECTION = (
    r"(?:none|nothing|not applicable|no (?:constraint|violation|issue|problem|conflict|concern)s?)"
    r"(?: (?:is|are|was|were|have been))?(?: (?:violated|broken|affected|found|given|set))?|reason"
)
"""What makes a yes of "no: …": nothing is objected to, or the prompt's own example was copied word for word."""


def read_check(text: str) -> str:
    """`yes`, `no`, `no: reason`, or nothing when it says neither."""
    plain = unicodedata.normalize("NFKC", text).strip().strip(".。\"'")
    if said := re.match(rf"(?i){YES}", plain):
        return "" if re.search(rf"(?i){BUT}", plain[said.end() :]) else "yes"
    if said := re.match(rf"(?i){NO}\s*(?:[:,.;、。—–-]\s*|$)", plain):
        reason = plain[said.end() :].strip()
        if re.fullmatch(rf"(?i){NO_OBJECTION}", reason):
            return "yes"
        return f"no: {reason}" if reason else "no"
    match _leaning(plain.casefold()):
        case 1:
            return "yes"
        case -1:
            return f"no: {plain}"
        case _:
            # "no it deletes the file": the sign after the no was left out.
            return f"no: {reason}" if (reason := re.sub(rf"(?i)^{NO}\s+", "", plain)) != plain else ""


def _leaning(text: str) -> int:
    """1 for what says that all is well, -1 for what says that something is wrong. A word that is denied says the
    opposite."""
    near = r"(?:\W+[\w'’]+){0,4}?\W+"
    spared = re.sub(rf"{NOT}{near}\w*{BAD}\w*|{BAD}[^、。]{{0,8}}?{NOT_JA}", " ", text)
    if re.search(BAD, spared) or re.search(rf"{NOT}{near}\w*{GOOD}|{GOOD}[^、。]{{0,8}}?{NOT_JA}", spared):
        return -1
    return 1 if spared != text or re.search(GOOD, spared) else 0
