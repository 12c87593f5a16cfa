"""A summary that was asked for comes before the end of a long answer."""

import re

from duckflow.agent.policies.policy import Policy, TurnSoFar
from duckflow.state.action import RESPOND, Decision

LONG_ANSWER = 1200
LONG_JAPANESE = 500
JAPANESE = "[ぁ-んァ-ヶ一-龠]"
WANTS_SUMMARY = re.compile(
    r"\b(?:with|add|plus|and|include)\s+(?:me\s+)?(?:a\s+)?(?:short\s+|brief\s+)?(?:summary|tl;?dr)\b"
    r"|\bsummary at the end\b|(?:要約|まとめ)(?:も|を?(?:付|つ)け|付き|つき)|最後に(?:要約|まとめ)",
    re.IGNORECASE,
)
SUMMARY = r"(?i)\b(?:summary|in short|in brief|to sum up|tl;?dr)\b|要約|まとめ|要するに"


class AskedSummary(Policy):
    """Reminds once."""

    def __init__(self) -> None:
        self._wanted = False

    async def opening(self, turn: TurnSoFar) -> None:
        self._wanted = WANTS_SUMMARY.search(turn.request) is not None

    async def after(self, turn: TurnSoFar) -> str | None:
        if not self._wanted or not _lacks_summary(turn.last.decision):
            return None
        self._wanted = False
        return turn.note("summary_wanted")


def _lacks_summary(decision: Decision) -> bool:
    """Whether a long answer ends the turn without one."""
    said = "\n".join(str(one.args.get("text", "")) for one in decision.actions if one.operation == RESPOND)
    long = LONG_JAPANESE if not said.isascii() and re.search(JAPANESE, said) else LONG_ANSWER
    return decision.next_step == "done" and len(said) > long and not re.search(SUMMARY, said)
