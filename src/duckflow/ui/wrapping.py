"""Where lines end: at spaces, and between Japanese characters, but not where it would look wrong."""

from duckflow.ui.width import cell, is_wide

NOT_FIRST = frozenset(
    "、。，．・：；？！）」』】〕〉》”’ー々〜～…‥％℃ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ" + ",.!?:;)]}%"
)
NOT_LAST = frozenset("（「『【〔〈《“‘￥" + "([{")


def line_ends(text: str, columns: int, hanging: int = 0) -> list[int]:
    """Places at which the text is cut so that no line takes more columns; `hanging` fewer after the first line."""
    ends: list[int] = []
    start = used = last = 0
    room = max(2, columns)
    for place, character in enumerate(text):
        width = cell(character)
        if place > start and _may_end(text, place):
            last = place
        while used + width > room and place > start and not character.isspace():
            start = last if last > start else place
            ends.append(start)
            used = sum(map(cell, text[start:place]))
            room = max(2, columns - hanging)
        used += width
    return ends


def _may_end(text: str, place: int) -> bool:
    """Whether a line may end before this character."""
    before, after = text[place - 1], text[place]
    if after.isspace():
        return False
    if before.isspace():
        return True
    if after in NOT_FIRST or before in NOT_LAST or cell(after) == 0:
        return False
    return is_wide(before) or is_wide(after)
