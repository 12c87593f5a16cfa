"""The place in a file that comes nearest to a text that is not in it."""

COMPARED = 5000
AROUND = 3
SIMILAR = 0.6
LENGTH = 200
TRIED = 3


def closest(lines: list[str], wanted: list[str]) -> range | None:
    """Line indexes around the best match of the longest wanted line; nothing when no line is similar."""
    import difflib

    asked = [line.strip()[:LENGTH] for line in wanted]
    there = [line.strip()[:LENGTH] for line in lines[:COMPARED]]
    for line in sorted(filter(None, asked), key=len, reverse=True)[:TRIED]:
        near = difflib.get_close_matches(line, there, 1, SIMILAR)
        if near:
            first = there.index(near[0]) - asked.index(line)
            return range(max(0, first - AROUND), min(len(lines), first + len(wanted) + AROUND))
    return None
