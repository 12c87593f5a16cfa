"""An exported session: its Markdown, its format and its file."""

import errno
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
from duckflow.safety.path_names import path_of_handle

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
    if cost_lines := costs(transcript, words):
        yield from ("", f"## {words('export.cost')}", "", *(f"- {line(cost_line)}" for cost_line in cost_lines))
    for turn in transcript.turns:
        yield from _turn(turn, words)


def _turn(turn: TurnRecord, words: Words) -> Iterator[str]:
    yield from ("", f"## {words('export.turn', turn=turn.number)}", "", quoted(turn.asked))
    for turn_entry in turn.entries:
        yield ""
        yield from _entry(turn_entry, words)
    if turn.why:
        yield from ("", f"*{line(words.phrase(turn.why))}*")


def _entry(entry: Entry, words: Words) -> Iterator[str]:
    sentence = words.phrase(entry.phrase) if entry.phrase else ""
    details = [f"  - {line(words.phrase(detail))}" for detail in entry.details]
    match entry.kind:
        case "said":
            yield harmless(entry.text)
        case "user":
            yield quoted(entry.text)
            if sentence:
                yield from ("", f"*{line(sentence)}*")
        case "deed":
            yield f"- {MARKS[entry.ok]} {code(entry.text)}" + (f": {line(sentence)}" if sentence else "")
            yield from details
            yield from _blocks(entry)
        case "gate" | "duck":
            answer = line(entry.answered(words))
            yield f"- {'🦆' if entry.kind == 'duck' else '?'} **{line(sentence)}** {answer}"
            yield from details
            yield from _blocks(entry)
        case "note":
            yield f"*{line(sentence)}*"
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
    """Returns the text as one line, in which nothing acts as markup."""
    return re.sub(r"([\\`*_\[\]<>&#|])", r"\\\1", plain(" ".join(text.split())))


def quoted(text: str) -> str:
    return "\n".join(f"> {text_line}".rstrip() for text_line in harmless(text).splitlines()) or ">"


def code(text: str) -> str:
    backticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    padding = " " if "`" in text else ""
    return f"{backticks}{padding}{plain(text)}{padding}{backticks}"


def fenced(text: str, language: str = "") -> str:
    """Returns the text in a fence that is longer than any fence inside it."""
    longest_run = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest_run + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def harmless(text: str) -> str:
    """Keeps Markdown, but shows HTML in the text as text, and closes an open block of code."""
    lines: list[str] = []
    fence = ""
    for text_line in plain(text).splitlines():
        match = FENCE.match(text_line)
        if fence:
            fence = (
                "" if match and text_line.strip().startswith(fence) and not text_line.strip().strip(fence[0]) else fence
            )
            lines.append(text_line)
        elif match:
            fence = match[1]
            lines.append(text_line)
        else:
            lines.append(_escaped(text_line))
    return "\n".join([*lines, fence] if fence else lines)


def _escaped(text: str) -> str:
    escaped_pieces: list[str] = []
    previous_end = 0
    for match in CODE.finditer(text):
        escaped_pieces += [TAG.sub(r"\\\g<0>", text[previous_end : match.start()]), match[0]]
        previous_end = match.end()
    return "".join([*escaped_pieces, TAG.sub(r"\\\g<0>", text[previous_end:])])


class Format(StrEnum):
    MARKDOWN = "md"
    HTML = "html"


SUFFIXES = {".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".html": Format.HTML, ".htm": Format.HTML}


def chosen_format(wanted: str, file: str) -> Format:
    """Returns the format `wanted`; without it the format by the file's ending, or else HTML."""
    return Format(wanted) if wanted else SUFFIXES.get(Path(file).suffix.lower(), Format.HTML)


def rendered(transcript: Transcript, words: Words, form: Format) -> str:
    if not transcript.turns:
        raise UsageError("export.empty")
    if form is Format.HTML:
        from duckflow.commands.export.html import as_html

        return as_html(transcript, words)
    return as_markdown(transcript, words)


def target(file: str, session_id: str, form: Format, folder: Path) -> Path:
    """Returns the path to write. Without a `file`, the name is made from the session. A file that the user named is not
    overwritten."""
    path = folder / (Path(file).expanduser() if file else f"duckflow-{session_id}.{form}")
    if path.is_dir():
        path /= f"duckflow-{session_id}.{form}"
    elif file and path.exists():
        raise UsageError("export.exists", path=str(path))
    return path


NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def save(path: Path, text: str) -> None:
    """Writes a new file in place of whatever is at the path. A link or a pipe is replaced; nothing is written through
    it. A path in the current folder does not lead out of it: a command may have put a link in place of a folder."""
    new_name = f".{path.name}.{secrets.token_hex(4)}.new"
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _require_inside(path, parent)
            file_descriptor = os.open(new_name, NEW_FILE, 0o644, dir_fd=parent)
            with os.fdopen(file_descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(new_name, path.name, src_dir_fd=parent, dst_dir_fd=parent)
        finally:
            with suppress(OSError):
                os.unlink(new_name, dir_fd=parent)
            os.close(parent)
    except OSError as problem:
        raise UsageError("export.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None


def save_output(name: str, text: str) -> None:
    """Writes to the file that the user has named. Outside the current folder, a link or a device such as /dev/stdout is
    the user's own, and is written to."""
    path = Path(name).expanduser()
    if _in_current_folder(path):
        save(path, text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError("export.unwritable", path=name, reason=problem.strerror or str(problem)) from None


def _in_current_folder(path: Path) -> bool:
    return Path(os.path.normpath(Path.cwd() / path)).is_relative_to(Path.cwd())


def _require_inside(path: Path, parent: int) -> None:
    """Raises OSError if a path in the current folder leads to a folder outside of it."""
    real_parent = path_of_handle(parent) or path.parent.resolve()
    if _in_current_folder(path) and not real_parent.is_relative_to(Path.cwd()):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
