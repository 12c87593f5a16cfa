"""An exported session: its format, its file."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from duckflow.commands.export.html import bar_lines
from duckflow.commands.export.transcript import Entry, Transcript, TurnRecord, costs, facts, title
from duckflow.commands.plan_tree import plan_tree
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
CODE = re.compile(r"(`+)(.+?)\1", re.S)
TAG = re.compile(r"[<&]|!(?=\[)")
MARKS = {True: "✓", False: "✗", None: "…"}


def as_markdown(transcript: Transcript, words: Words) -> str:
    return "\n".join(_lines(transcript, words)) + "\n"


def _lines(transcript: Transcript, words: Words) -> Iterator[str]:
    yield f"# {line(title(transcript))}"
    yield ""
    yield from (f"- **{name}**: {line(value)}" for name, value in facts(transcript, words))
    if plans := transcript.state.plans.values():
        trees = "\n\n".join(plan_tree(plan, words) for plan in plans)
        yield from ("", f"## {words('export.plan')}", "", fenced(plain(trees)))
    if bars := bar_lines(transcript.vitals, words):
        yield from ("", f"## {words('export.vitals')}", "", fenced("\n".join(bars)))
    if told := costs(transcript, words):
        yield from ("", f"## {words('export.cost')}", "", *(f"- {line(one)}" for one in told))
    for turn in transcript.turns:
        yield from _turn(turn, words)


def _turn(turn: TurnRecord, words: Words) -> Iterator[str]:
    yield from ("", f"## {words('export.turn', turn=turn.number)}", "", quoted(turn.asked))
    for entry in turn.entries:
        yield ""
        yield from _entry(entry, words)
    if turn.why:
        yield from ("", f"*{line(words.phrase(turn.why))}*")


def _entry(entry: Entry, words: Words) -> Iterator[str]:
    told = words.phrase(entry.phrase) if entry.phrase else ""
    details = [f"  - {line(words.phrase(one))}" for one in entry.details]
    match entry.kind:
        case "said":
            yield harmless(entry.text)
        case "user":
            yield quoted(entry.text)
            if told:
                yield from ("", f"*{line(told)}*")
        case "deed":
            yield f"- {MARKS[entry.ok]} {code(entry.text)}" + (f": {line(told)}" if told else "")
            yield from details
            yield from _blocks(entry)
        case "gate" | "duck":
            answer = line(entry.answered(words))
            yield f"- {'🦆' if entry.kind == 'duck' else '?'} **{line(told)}** {answer}"
            yield from details
            yield from _blocks(entry)
        case "note":
            yield f"*{line(told)}*"
            if entry.text:
                yield from ("", harmless(entry.text))
            if details:
                yield from ("", *details)


def _blocks(entry: Entry) -> Iterator[str]:
    if entry.diff:
        yield from ("", fenced(plain(entry.diff), "diff"))
    if entry.output:
        yield from ("", fenced(plain(entry.output)))


def line(text: str) -> str:
    """One line in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>&#|])", r"\\\1", plain(" ".join(text.split())))


def quoted(text: str) -> str:
    return "\n".join(f"> {one}".rstrip() for one in harmless(text).splitlines()) or ">"


def code(text: str) -> str:
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    gap = " " if "`" in text else ""
    return f"{ticks}{gap}{plain(text)}{gap}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """A block whose fence is longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def harmless(text: str) -> str:
    """Markdown stays Markdown, but HTML in it is shown as text; an open block of code is closed."""
    lines: list[str] = []
    fence = ""
    for one in plain(text).splitlines():
        found = FENCE.match(one)
        if fence:
            fence = "" if found and one.strip().startswith(fence) and not one.strip().strip(fence[0]) else fence
            lines.append(one)
        elif found:
            fence = found[1]
            lines.append(one)
        else:
            lines.append(_escaped(one))
    return "\n".join([*lines, fence] if fence else lines)


def _escaped(text: str) -> str:
    parts: list[str] = []
    end = 0
    for found in CODE.finditer(text):
        parts += [TAG.sub(r"\\\g<0>", text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, TAG.sub(r"\\\g<0>", text[end:])])


class Format(StrEnum):
    MARKDOWN = "md"
    HTML = "html"


SUFFIXES = {".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".html": Format.HTML, ".htm": Format.HTML}


def chosen_format(wanted: str, file: str) -> Format:
    """What was said, else what the file's name says, else HTML."""
    return Format(wanted) if wanted else SUFFIXES.get(Path(file).suffix.lower(), Format.HTML)


def rendered(transcript: Transcript, words: Words, form: Format) -> str:
    if not transcript.turns:
        raise UsageError("export.empty")
    if form is Format.HTML:
        from duckflow.commands.export.html import as_html

        return as_html(transcript, words)
    return as_markdown(transcript, words)


def target(file: str, session_id: str, form: Format, folder: Path) -> Path:
    """A name of our own when none is given; a file that somebody named is not overwritten."""
    path = folder / (Path(file).expanduser() if file else f"duckflow-{session_id}.{form}")
    if path.is_dir():
        path /= f"duckflow-{session_id}.{form}"
    elif file and path.exists():
        raise UsageError("export.exists", path=str(path))
    return path


def save(path: Path, text: str) -> None:
    """Puts a new file in the place of whatever stands there. A link or a pipe is replaced, never written through."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)
    except OSError as problem:
        with suppress(OSError):
            new.unlink()
        raise UsageError("export.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None
