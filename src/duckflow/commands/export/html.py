"""A session as one HTML page."""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

from duckflow.commands.export.transcript import Entry, Transcript, TurnRecord, costs, facts, title
from duckflow.commands.plan_tree import plan_tree
from duckflow.i18n.literal_signs import keep_literal_signs
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.pacemaker.vitals import draw_bars
from duckflow.state.phase import Vitals

NAMES = ("mood", "focus", "stamina")
WIDTH, HEIGHT = 720, 160
LEFT, BOTTOM, TOP = 34, 20, 8
MOST_POINTS = 400
MOST_BARS = 60
Points = Sequence[tuple[int, Vitals]]


def svg_chart(points: Points, words: Words) -> str:
    """Draws one named line for each vital (mood, focus, stamina), from 0 to 1 over the turns. Returns an empty text
    without points."""
    if not points:
        return ""
    shown_points = thinned(points, MOST_POINTS)
    point_width = (WIDTH - LEFT) / max(1, len(shown_points) - 1)

    def height(value: float) -> float:
        return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(words("export.vitals"))}">'
    ]
    for value in (0.0, 0.5, 1.0):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{height(value):.1f}" y2="{height(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{height(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>')
    for name in NAMES:
        values = [getattr(vitals, name) for _, vitals in shown_points]
        line = " ".join(f"{LEFT + index * point_width:.1f},{height(value):.1f}" for index, value in enumerate(values))
        parts.append(
            f'<polyline class="{name}" points="{line}"><title>{escape(words(f"vital.{name}"))}</title></polyline>'
        )
    first, last = shown_points[0][0], shown_points[-1][0]
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 4}">{escape(words("export.turn", turn=first))}</text>')
    parts.append(
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">{escape(words("export.turn", turn=last))}</text></svg>'
    )
    names = "".join(f'<span class="{name}">{escape(words(f"vital.{name}"))}</span> ' for name in NAMES)
    return f'{"".join(parts)}<p class="legend">{names}</p>'


def bar_lines(points: Points, words: Words) -> list[str]:
    shown_points = thinned(points, MOST_BARS)
    lines: list[str] = []
    for name in NAMES if shown_points else ():
        values = [getattr(vitals, name) for _, vitals in shown_points]
        lines.append(f"{draw_bars(tuple(values))} {values[-1]:.2f} {words(f'vital.{name}')}")
    return lines


def thinned(points: Points, most: int) -> Points:
    """Returns at most `most` points, evenly spread and including the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


# The page may load no script, picture or font and make no request, even if something slipped through.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MARKS = {True: "✓", False: "✗", None: "…"}
DIFF_CLASSES = {"+": "added", "-": "removed", "@": "place"}


def as_html(transcript: Transcript, words: Words) -> str:
    return "\n".join(_page(transcript, words))


def _page(transcript: Transcript, words: Words) -> Iterator[str]:
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    name = safe(title(transcript))
    yield f'<!doctype html>\n<html lang="{words.language}"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{name}</title><style>\n{style}</style></head><body>"
    yield f"<header><h1>🦆 {name}</h1><dl>"
    yield from (f"<dt>{safe(term)}</dt><dd>{safe(value)}</dd>" for term, value in facts(transcript, words))
    yield "</dl></header>"
    if plans := transcript.state.plans.values():
        trees = "\n\n".join(plan_tree(plan, words) for plan in plans)
        yield f"<h2>{safe(words('export.plan'))}</h2><pre>{safe(trees)}</pre>"
    if chart_html := svg_chart(transcript.vitals, words):
        yield f"<h2>{safe(words('export.vitals'))}</h2>{chart_html}"
    if lines := costs(transcript, words):
        yield f"<h2>{safe(words('export.cost'))}</h2><ul>{''.join(f'<li>{safe(line)}</li>' for line in lines)}</ul>"
    render = _renderer()
    for turn in transcript.turns:
        yield from _turn(turn, words, render)
    yield "</body></html>\n"


def _turn(turn: TurnRecord, words: Words, render: Callable[[str], str]) -> Iterator[str]:
    clock_time = time.strftime("%H:%M", time.localtime(turn.at))
    anchor = f"turn-{turn.number}"
    name = safe(words("export.turn", turn=turn.number))
    yield f'<section class="turn" id="{anchor}"><h3><a href="#{anchor}">{name}</a> <time>{clock_time}</time></h3>'
    yield f'<div class="user">{safe(turn.asked)}</div>'
    for turn_entry in turn.entries:
        yield from _entry(turn_entry, words, render)
    if turn.why:
        yield f'<p class="why {escape(turn.outcome)}">{safe(words.phrase(turn.why))}</p>'
    yield "</section>"


def _entry(entry: Entry, words: Words, render: Callable[[str], str]) -> Iterator[str]:
    sentence = safe(words.phrase(entry.phrase)) if entry.phrase else ""
    match entry.kind:
        case "said":
            yield f'<div class="said">{render(plain(entry.text))}</div>'
        case "user":
            yield f'<div class="user">{safe(entry.text)}</div>' + (
                f'<div class="note">{sentence}</div>' if sentence else ""
            )
        case "note":
            text = f"<div>{render(plain(entry.text))}</div>" if entry.text else ""
            details = "".join(f"<p>{safe(words.phrase(detail))}</p>" for detail in entry.details)
            yield f'<div class="note">{sentence}{text}{details}</div>'
        case "deed":
            mark_html = f'<span class="{_state(entry)}">{MARKS[entry.ok]}</span>'
            yield _details(entry, f"{mark_html} <code>{safe(entry.text)}</code> {sentence}", words)
        case "gate" | "duck":
            answer = entry.answered(words)
            face = "🦆" if entry.kind == "duck" else "?"
            yield _details(entry, f"{face} <b>{sentence}</b> {safe(answer)}", words)


def _state(entry: Entry) -> str:
    return {True: "good", False: "bad", None: "open"}[entry.ok]


def _details(entry: Entry, summary: str, words: Words) -> str:
    inner_html = "".join(f"<p>{safe(words.phrase(detail))}</p>" for detail in entry.details)
    if entry.diff:
        inner_html += f'<pre class="diff">{_diff(entry.diff)}</pre>'
    if entry.output:
        inner_html += f"<pre>{safe(entry.output)}</pre>"
    open_attribute = " open" if entry.kind == "duck" else ""
    return f'<details class="{entry.kind}"{open_attribute}><summary>{summary}</summary>{inner_html}</details>'


def _diff(diff: str) -> str:
    lines = [(DIFF_CLASSES.get(line[:1], ""), safe(line)) for line in diff.splitlines()]
    return "\n".join(f'<span class="{kind}">{line}</span>' if kind else line for kind, line in lines)


def safe(text: str) -> str:
    return escape(plain(text))


@functools.cache
def _renderer() -> Callable[[str], str]:
    """Makes a renderer from Markdown to HTML. It lets through no HTML of the text itself, no pictures, and no active
    links."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    keep_literal_signs(reader)
    return reader.render
