"""What a model says of its own checks, read into the words that a Decision holds."""

import re
import unicodedata

from duckflow.i18n.patterns import fullmatch, joined, search

WELL, WRONG = "[○✓]", "[×✗]"


def read_check(text: str) -> str:
    """`yes`, `no`, `no: reason`, or nothing when it says neither."""
    plain = unicodedata.normalize("NFKC", text).strip().strip(".。\"'")
    yes, no = joined("checks.yes", plain), joined("checks.no", plain)
    if said := re.match(rf"(?i)(?:{yes}|{WELL})(?![a-z])", plain):
        return "" if search("checks.but", plain[said.end() :]) else "yes"
    if said := re.match(rf"(?i)(?:{no}|{WRONG})(?![a-z/])\s*(?:[:,.;、。—–-]\s*|$)", plain):
        reason = plain[said.end() :].strip()
        if fullmatch("checks.no_objection", reason):
            return "yes"
        return f"no: {reason}" if reason else "no"
    match _leaning(plain.casefold()):
        case 1:
            return "yes"
        case -1:
            return f"no: {plain}"
        case _:
            # "no it deletes the file": the sign after the no was left out.
            reason = re.sub(rf"(?i)^(?:{no}|{WRONG})(?![a-z/])\s+", "", plain)
            return f"no: {reason}" if reason != plain else ""


def _leaning(text: str) -> int:
    """1 for what says that all is well, -1 for what says that something is wrong. A word that is denied says the
    opposite."""
    good, bad = joined("checks.good", text), joined("checks.bad", text)
    not_before = rf"{joined('checks.not_before', text)}(?:\W+[\w'’]+){{0,4}}?\W+\w*"
    not_after = rf"[^、。]{{0,8}}?{joined('checks.not_after', text)}"
    spared = re.sub(rf"{not_before}{bad}\w*|{bad}{not_after}", " ", text)
    if re.search(bad, spared) or re.search(rf"{not_before}{good}|{good}{not_after}", spared):
        return -1
    return 1 if spared != text or re.search(good, spared) else 0
