"""Done is what a result shows: work that is called done is held against the record."""

import re
from pathlib import Path

from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Checks, Policy, TurnSoFar
from duckflow.prompts.layers import record_line

FILES = 8
CLAUSES = r"(?<=[.!?])\s+|[,;:、。！？\n]|\s(?:and|but|so)\s"
PASSES = (
    r"(?i)\b(?:tests?|suite|specs?|checks?|build|lint(?:er|ing)?)\b(?:\W+\w+){0,6}?\W+(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)"
    r"(?=\W*$|\s*[.,;:!()–—]|\s+(?:now|again|and|too|with|in|on)\b)|\b\d+ (?:tests? )?passed\b"
    r"|(?:テスト|チェック|ビルド|リント)[^、。\n]{0,20}?(?:通り|通っ|通過|成功|パス|合格)"
)
"""What a clause says that claims the result of a check."""
NOT_CLAIMED = (
    r"(?i)\b(?:not|never|cannot|without|should|would|will|could|might|may|once|if|until|unless|ensure|please)\b"
    r"|\bmak(?:es?|ing) (?:the|all)\b|n['’]t\b|ない|ません|未|はず|だろう|でしょう|かも|たら|れば|場合|ください|ように"
)
TO_BE_TRIED = r"(?i)\b(?:re-?run|run|execute|test|check|verify)\b|tests? pass|テスト|実行|確認"


def claims_a_check(text: str) -> bool:
    """Whether an answer says that tests or other checks have passed."""
    return any(re.search(PASSES, one) and not re.search(NOT_CLAIMED, one) for one in re.split(CLAUSES, text))


class ReviewByRecord(Policy):
    """Comes last: it closes the work, or sends it into one loop of review with what is on record."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._reviewed = False

    async def opening(self, turn: TurnSoFar) -> None:
        self._reviewed = False

    async def after(self, turn: TurnSoFar) -> str | None:
        loop = turn.last
        if turn.ending and turn.ending.outcome == "done":
            return self._closed(turn, turn.checks())
        return turn.note("fault_when_tried", fault=loop.fault) if loop.fault and not turn.ending else None

    def _closed(self, turn: TurnSoFar, checks: Checks) -> str | None:
        """Nothing when the work is over; else what is to be looked at first."""
        claimed = "" if checks.failed or not _claimed_untried(turn) else turn.note("not_tried")
        if claimed and not self._reviewed:
            self._reviewed = True
            return turn.note("claimed_untried", why=claimed)
        doubt = claimed or turn.doubt
        if self._phases.finish(checks.failed or doubt, self._reviewed or bool(doubt)):
            return None
        self._reviewed = True
        return _for_review(turn, checks)


def _claimed_untried(turn: TurnSoFar) -> bool:
    """A check is said to have passed in a turn that changed something or was to try it, and nothing was tried since."""
    results = [result for loop in turn.loops for result in loop.done.results]
    if not re.search(TO_BE_TRIED, turn.request) and not any(result.changed for result in results):
        return False
    if not any(claims_a_check(result.said or "") for result in turn.last.done.results):
        return False
    from duckflow.tools.plan.proof import tries_out

    return not any(tries_out(one.command) for one in turn.state.evidence)


def _for_review(turn: TurnSoFar, checks: Checks) -> str:
    """Why there is a review, and what is on the record."""
    state = turn.state
    why = turn.note("check_failed" if checks.by_command else "not_all_succeeded", check=checks.failed)
    shown = record_line(state, FILES, lambda path: (Path(state.folder) / path).exists())
    return turn.note("review_due", why=why, record=shown)
