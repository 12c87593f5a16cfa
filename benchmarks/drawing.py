"""Draws terminal screens as SVG by the outlines of their letters, so that they look the same on a machine without the
fonts; several screens make a moving picture. Needs fontTools and three fonts (on Debian: fonts-dejavu-core,
fonts-noto-cjk, fonts-symbola)."""

import logging
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTFont
from rich.text import Text
from wcwidth import wcwidth

log = logging.getLogger(__name__)
FONTS = Path("/usr/share/fonts")
FACES: tuple[tuple[str, int, bool], ...] = (
    ("truetype/dejavu/DejaVuSansMono.ttf", -1, False),
    ("truetype/dejavu/DejaVuSansMono-Bold.ttf", -1, True),
    ("opentype/noto/NotoSansCJK-Regular.ttc", 0, False),
    ("truetype/ancient-scripts/Symbola_hint.ttf", -1, False),
)
"""The fonts: file, number in it, and whether it is bold. The first that has a letter draws it."""
CELL, LINE, EDGE, BASE = 8.4, 16.4, 12.0, 13.0
SIZE = 14.0
INK, PAPER = "#d4d4d4", "#1b1d22"
COLORS = {
    "black": "#4a4e57", "red": "#f07178", "green": "#9ece6a", "yellow": "#e0af68", "blue": "#7aa2f7",
    "magenta": "#bb9af7", "cyan": "#7dcfff", "white": "#d4d4d4", "bright_black": "#7a7f8a",
}  # fmt: skip


class Cell(NamedTuple):
    """A letter with its look."""

    letter: str
    color: str = INK
    bold: bool = False
    reverse: bool = False
    underline: bool = False


class Frame(NamedTuple):
    """A screen, and how long it is seen."""

    lines: Sequence[Sequence[Cell]]
    seconds: float


def cells_of(line: Text) -> list[Cell]:
    """Returns one cell for every letter; a style further right wins."""
    found: list[Cell] = []
    for index, letter in enumerate(line.plain):
        color, bold, reverse, underline = INK, False, False, False
        for span in line.spans:
            if span.start <= index < span.end and not isinstance(span.style, str):
                named = span.style.color.name if span.style.color else ""
                color = named if named.startswith("#") else COLORS.get(named, color)
                bold, reverse = bold or bool(span.style.bold), reverse or bool(span.style.reverse)
                underline = underline or bool(span.style.underline)
        found.append(Cell(letter, color, bold, reverse, underline))
    return found


class Drawing:
    """Collects the outlines that are used, and writes them once."""

    def __init__(self) -> None:
        self._shapes: dict[str, str] = {}
        self._lines: dict[tuple[Cell, ...], str] = {}

    def save(self, frames: Sequence[Frame], columns: int, path: Path) -> None:
        rows = max(len(frame.lines) for frame in frames)
        width, height = columns * CELL + 2 * EDGE, rows * LINE + 2 * EDGE
        bodies = [self._screen(frame.lines) for frame in frames]
        shown = bodies[0] if len(bodies) == 1 else _moving(bodies, [frame.seconds for frame in frames])
        shapes = "".join(f'<path id="{name}" d="{outline}"/>' for name, outline in self._shapes.items())
        shapes += "".join(f'<g id="l{number}">{drawn}</g>' for number, drawn in enumerate(self._lines.values()))
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">'
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/><defs>{shapes}</defs>{shown}</svg>\n',
            "utf-8",
        )

    def _screen(self, lines: Sequence[Sequence[Cell]]) -> str:
        """Draws lines that are seen in several screens only once."""
        placed: list[str] = []
        for row, line in enumerate(map(tuple, lines)):
            if any(not cell.letter.isspace() for cell in line):
                if line not in self._lines:
                    self._lines[line] = self._line(line)
                placed.append(f"<use href='#l{list(self._lines).index(line)}' y='{EDGE + row * LINE:.1f}'/>")
        return "".join(placed)

    def _line(self, line: Sequence[Cell]) -> str:
        """Draws a line; letters of one colour stand together."""
        column, top, drawn, open_color = 0, 0.0, list[str](), ""
        for cell in line:
            wide = max(wcwidth(cell.letter), 0)
            left = EDGE + column * CELL
            column += wide
            color = PAPER if cell.reverse else cell.color
            if cell.reverse or cell.underline:
                height, y = (LINE, top) if cell.reverse else (1.0, top + LINE - 3)
                drawn.append(f"{'</g>' if open_color else ''}<path fill='{cell.color}' d='M{left:.1f} {y:.1f}h")
                drawn[-1] += f"{wide * CELL:.1f}v{height:.1f}h-{wide * CELL:.1f}z'/>"
                open_color = ""
            if cell.letter.isspace() or not wide:
                continue
            if color != open_color:
                drawn.append(f"{'</g>' if open_color else ''}<g fill='{color}'>")
                open_color = color
            drawn.append(self._letter(cell, wide, left, top + BASE))
        return "".join(drawn) + ("</g>" if open_color else "")

    def _letter(self, cell: Cell, wide: int, x: float, y: float) -> str:
        """Returns the letter's outline; or the letter itself, for the viewer's fonts, where no font of this machine has
        it."""
        if name := self._shape(cell, wide):
            return f"<use href='#{name}' x='{x:.1f}' y='{y:.1f}'/>"
        weight = " font-weight='bold'" if cell.bold else ""
        style = f"font-family='monospace' font-size='{SIZE}'{weight} textLength='{wide * CELL:.1f}'"
        return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(cell.letter)}</text>"

    def _shape(self, cell: Cell, wide: int) -> str:
        name = f"{'b' if cell.bold else 'g'}{ord(cell.letter[0]):x}"
        if name not in self._shapes:
            self._shapes[name] = _outline(cell.letter[0], cell.bold, wide)
        return name if self._shapes[name] else ""


def _moving(bodies: Sequence[str], seconds: Sequence[float]) -> str:
    """Shows each screen in its turn, over and over; viewers that want no motion see the last one."""
    total, begins = sum(seconds), 0.0
    rules, groups = list[str](), list[str]()
    for number, (body, lasts) in enumerate(zip(bodies, seconds, strict=True)):
        start, end = begins / total * 100, (begins + lasts) / total * 100
        before = f"0%,{start:.3f}%{{visibility:hidden}}" if number else ""
        after = f"{end:.3f}%,100%{{visibility:hidden}}" if number < len(bodies) - 1 else ""
        rules.append(
            f"@keyframes f{number}{{{before}{start + 0.001:.3f}%,{end - 0.001:.3f}%{{visibility:visible}}{after}}}"
        )
        hidden = ' visibility="hidden"' if number < len(bodies) - 1 else ""
        groups.append(f'<g{hidden} style="animation:f{number} {total:.1f}s step-end infinite">{body}</g>')
        begins += lasts
    still = "@media (prefers-reduced-motion){g{animation:none!important}}"
    return f"<style>{''.join(rules)}{still}</style>{''.join(groups)}"


@cache
def _faces() -> list[tuple[Any, Any, bool]]:
    found: list[tuple[Any, Any, bool]] = []
    for name, number, bold in FACES:
        if not (FONTS / name).is_file():
            log.warning("%s is not here: letters that only it has are left to the viewer's fonts.", FONTS / name)
            continue
        font: Any = TTFont(FONTS / name, fontNumber=number, lazy=True)
        found.append((font, font.getBestCmap(), bold))
    return found


def _outline(letter: str, bold: bool, wide: int) -> str:
    """The letter's path at its size, in the middle of its cells; nothing where no font has it."""
    ordered = sorted(_faces(), key=lambda face: face[2] != bold)
    for font, letters, _ in ordered:
        if ord(letter) not in letters:
            continue
        glyphs = font.getGlyphSet()
        glyph = glyphs[letters[ord(letter)]]
        scale = SIZE / font["head"].unitsPerEm
        shift = max(0.0, (wide * CELL - glyph.width * scale) / 2)
        pen = SVGPathPen(glyphs, ntos=lambda number: f"{number:.1f}".removesuffix(".0"))
        glyph.draw(TransformPen(pen, (scale, 0, 0, -scale, shift, 0)))
        return str(pen.getCommands())
    return ""
