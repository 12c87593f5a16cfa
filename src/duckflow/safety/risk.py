"""How risky an action is: computed from what it would do, never guessed by the model."""

from duckflow.state.question import Preview, Risk

MANY_FILES = 10
ORDER: tuple[Risk, ...] = ("low", "medium", "high", "forbidden")


def grade(changes: bool, preview: Preview) -> Risk:
    """Reads are low, changes inside the folder medium, deletions and many files at once high."""
    if not changes:
        return "low"
    deletes = any(impact.change == "delete" for impact in preview.impacts)
    if deletes or len(preview.impacts) > MANY_FILES or not all(impact.inside for impact in preview.impacts):
        return "high"
    return "medium"


def highest(risks: list[Risk]) -> Risk:
    return ORDER[max(map(ORDER.index, risks), default=0)]
