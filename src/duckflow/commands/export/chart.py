"""Vitals over time as a picture."""

from collections.abc import Sequence
from html import escape

from duckflow.i18n.words import Words
from duckflow.pacemaker.vitals import draw_bars
from duckflow.state.vitals import Vitals

NAMES = ("mood", "focus", "stamina")
WIDTH, HEIGHT = 720, 160
LEFT, BOTTOM, TOP = 34, 20, 8
MOST_POINTS = 400
MOST_BARS = 60
Points = Sequence[tuple[int, Vitals]]


def svg_chart(points: Points, words: Words) -> str:
    """Three lines from 0 to 1 over the turns, with their names; empty without anything to draw."""
    if not points:
        return ""
    shown = thinned(points, MOST_POINTS)
    scale = (WIDTH - LEFT) / max(1, len(shown) - 1)

    def height(value: float) -> float:
        return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(words("export.vitals"))}">'
    ]
    for value in (0.0, 0.5, 1.0):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{height(value):.1f}" y2="{height(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{height(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>')
    for name in NAMES:
        values = [getattr(vitals, name) for _, vitals in shown]
        line = " ".join(f"{LEFT + place * scale:.1f},{height(value):.1f}" for place, value in enumerate(values))
        parts.append(
            f'<polyline class="{name}" points="{line}"><title>{escape(words(f"vital.{name}"))}</title></polyline>'
        )
    first, last = shown[0][0], shown[-1][0]
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 4}">{escape(words("export.turn", turn=first))}</text>')
    parts.append(
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">{escape(words("export.turn", turn=last))}</text></svg>'
    )
    names = "".join(f'<span class="{name}">{escape(words(f"vital.{name}"))}</span> ' for name in NAMES)
    return f'{"".join(parts)}<p class="legend">{names}</p>'


def bar_lines(points: Points, words: Words) -> list[str]:
    shown = thinned(points, MOST_BARS)
    lines: list[str] = []
    for name in NAMES if shown else ():
        values = [getattr(vitals, name) for _, vitals in shown]
        lines.append(f"{draw_bars(tuple(values))} {values[-1]:.2f} {words(f'vital.{name}')}")
    return lines


def thinned(points: Points, most: int) -> Points:
    """Evenly spread, the last one always among them."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(place * step)] for place in range(most)]
