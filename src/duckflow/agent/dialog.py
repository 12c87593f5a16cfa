"""The dialog policy, as far as code can check it: one question, real choices, a summary where one was asked for."""

import re
from typing import Any, cast

from duckflow.state.action import Action, Decision
from duckflow.state.one_question import one_question

TALKS = {"response": ("text",), "duck_call": ("text", "question")}
LONG_ANSWER = 1200
LONG_JAPANESE = 500
JAPANESE = re.compile(r"[ぁ-んァ-ヶ一-龠]")
WANTS_SUMMARY = re.compile(
    r"\b(?:with|add|plus|and|include)\s+(?:me\s+)?(?:a\s+)?(?:short\s+|brief\s+)?(?:summary|tl;?dr)\b"
    r"|\bsummary at the end\b|(?:要約|まとめ)(?:も|を?(?:付|つ)け|付き|つき)|最後に(?:要約|まとめ)",
    re.IGNORECASE,
)
SUMMARY = re.compile(r"\b(?:summary|in short|in brief|to sum up|tl;?dr)\b|要約|まとめ|要するに", re.IGNORECASE)


def polite(decision: Decision) -> Decision:
    """The Decision as the user gets it: at most one question, and choices only where there are two."""
    actions = [_polite(action) for action in decision.actions]
    return decision if actions == decision.actions else decision.model_copy(update={"actions": actions})


def wants_summary(request: str) -> bool:
    return WANTS_SUMMARY.search(request) is not None


def lacks_summary(decision: Decision) -> bool:
    """Whether a long answer ends the turn without one."""
    said = "\n".join(str(one.args.get("text", "")) for one in decision.actions if one.operation == "response")
    long = LONG_JAPANESE if JAPANESE.search(said) else LONG_ANSWER
    return decision.next_step == "done" and len(said) > long and not SUMMARY.search(said)


def _polite(action: Action) -> Action:
    args: dict[str, Any] = {}
    for name in TALKS.get(action.operation, ()):
        if isinstance(text := action.args.get(name), str):
            args[name] = one_question(text)
    if isinstance(choices := action.args.get("choices"), list):
        args["choices"] = _real(cast("list[Any]", choices))
    changed = any(action.args[name] != value for name, value in args.items())
    return action.model_copy(update={"args": {**action.args, **args}}) if changed else action


def _real(choices: list[Any]) -> list[Any]:
    """Choices that differ; a single one is none."""
    different = {str(choice).strip().casefold(): choice for choice in reversed(choices)}
    kept = [choice for choice in choices if different[str(choice).strip().casefold()] is choice]
    return kept if len(kept) > 1 else []
