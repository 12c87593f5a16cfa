"""`/status` and `/why`: where things stand."""

from duckflow.ui.commands.command import Command
from duckflow.ui.counter import Counter


def status(counter: Counter, _: str) -> str:
    state, words = counter.desk.state, counter.words
    shown = [
        *map(words.phrase, counter.desk.health().report()),
        *(f"  {words(f'vital.{c.vital}')} {c.delta:+.2f}: {words.phrase(c.cause)}" for c in state.vitals_causes),
        words("status.session", session=state.session_id, turns=state.turn),
        words("status.model", model=state.model),
        words("status.mode", mode=counter.desk.mode),
        words("status.step", step=state.phase, status=state.status),
    ]
    five = {
        "goal": state.five.goal,
        "why_now": state.five.why_now,
        "constraints": "; ".join(state.five.constraints),
        "plan_brief": "; ".join(state.five.plan_brief),
        "open_questions": "; ".join(state.five.open_questions),
    }
    shown += [f"{words(f'five.{name}')}: {text}" for name, text in five.items() if text]
    if state.files_changed:
        shown.append(words("status.files", files=", ".join(state.files_changed)))
    return "\n".join(shown)


def why(counter: Counter, _: str) -> str:
    return "\n".join(map(counter.words.phrase, counter.desk.why()))


GROUP = (Command("status", status), Command("why", why))
