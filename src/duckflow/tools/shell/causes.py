"""Reasons why a command failed: the lines that say so, restrictions of the sandbox, and programs that were not
found."""

import asyncio
import os
import re
import shutil
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.i18n.words import words_of
from duckflow.programs.find import find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import ignore, run
from duckflow.safety.path_names import shown
from duckflow.safety.sandbox.packs import MOST_PACKS
from duckflow.safety.sandbox.sandbox import Sandbox, Unconfined

PLACE = r"[\w./\\@~-]+[:(]\d+(?:[:,]\d+)*\)?:?"
ANNOUNCED_BEFORE = rf"^[\W_]*(?:{PLACE}\s*)?(?:-+>?\s*)?"
ANNOUNCED_WITHIN = (
    r"^e {2,}\S|[:)\]]\s*(?:fatal |internal )?error\b|\bpanicked at\b|^npm err!|\*\*\* "
    r"|\b[1-9]\d* (?:\w+ )?(?:failed|failures?|failing|errors?)\b"
)
FINE = re.compile(
    r"\b(?:0|no) (?:\w+ )?(?:errors?|fail(?:ed|ures?|ing)?)\b|\bpass(?:ed|ing)?\s*(?:\[.*\])?$|[ .]ok$|\bwarning\b"
)
CHANGING = re.compile(r"0x[0-9a-f]+|\d+")
LONGEST_LINE = 300
LONGEST_PIECE = 20_000
BEFORE, AFTER = 3, 6
PASSAGES = 60
SEEN = 2000


@dataclass(slots=True)
class Passage:
    """Neighbouring lines of output: the first begins at `start`, and the last ends before `end`."""

    start: int
    end: int
    score: int
    lines: list[str]


class Causes:
    """Reads all output line by line and keeps the most telling passages. Lines that announce an error come before lines
    that only mention one, the first before later ones. Lines that differ only by numbers are kept once."""

    def __init__(self, before: int = BEFORE, after: int = AFTER) -> None:
        self._after = after
        self._most = 2 * (before + after)
        self._earlier: deque[str] = deque(maxlen=before)
        self._begun = ""
        self._at = 0
        self._open: Passage | None = None
        self._still = 0
        self._passages: list[Passage] = []
        self._seen: set[str] = set()
        self._announced = False

    def add(self, text: str) -> None:
        *lines, unfinished_line = (self._begun + text).split("\n")
        if lines and self._open is None and not _mentions(f"{self._begun}{text}"):
            # Most output mentions no failure, and need not be read line by line.
            self._at += sum(map(len, lines)) + len(lines)
            self._earlier += [line[:LONGEST_LINE] for line in lines[-BEFORE:]]
        else:
            for line in lines:
                self._hear(line)
        self._begun = unfinished_line
        if len(unfinished_line) > LONGEST_PIECE:
            self._hear(unfinished_line[:-1])
            self._at -= 1
            self._begun = unfinished_line[-1]

    def passages(self, start: int, end: int, room: int) -> list[Passage]:
        """Returns the most telling passages that begin between two places, in their order, within `room` characters."""
        chosen_passages: list[Passage] = []
        for passage in sorted(self._passages, key=lambda passage: (-passage.score, passage.start)):
            size = sum(map(len, passage.lines)) + len(passage.lines)
            if start <= passage.start < end and size <= room:
                chosen_passages.append(passage)
                room -= size
        return sorted(chosen_passages, key=lambda passage: passage.start)

    def _hear(self, line: str) -> None:
        start, self._at = self._at, self._at + len(line) + 1
        shown_line = line.rpartition("\r")[2][:LONGEST_LINE]
        line_score = self._score(shown_line)
        if line_score:
            self._still = self._after
        if self._open is None and line_score:
            lines_before = list(self._earlier)
            self._open = Passage(
                start - sum(len(line_before) + 1 for line_before in lines_before), self._at, line_score, lines_before
            )
            self._passages.append(self._open)
            self._earlier.clear()
        if self._open is None:
            self._earlier.append(line[:LONGEST_LINE] if len(line) > LONGEST_LINE else line)
            return
        self._open.lines.append(shown_line)
        self._open.end = self._at
        self._open.score = max(line_score, self._open.score)
        self._still -= 1
        if self._still < 0 or len(self._open.lines) > self._most:
            self._close()

    def _close(self) -> None:
        self._open = None
        if len(self._passages) > PASSAGES:
            self._passages.remove(min(self._passages, key=lambda passage: (passage.score, -passage.start)))

    def _score(self, line: str) -> int:
        line = line.lower()
        if not _mentions(line) or FINE.search(line):
            return 0
        gist = CHANGING.sub("0", line).strip()
        if gist in self._seen:
            return 0
        if len(self._seen) < SEEN:
            self._seen.add(gist)
        if not _announces().search(line):
            return 1
        is_first_announcement, self._announced = not self._announced, True
        return 3 if is_first_announcement else 2


def _mentions(text: str) -> bool:
    lowered_text = text.lower()
    return any(word in lowered_text for word in words_of("output.mentions"))


@cache
def _announces() -> re.Pattern[str]:
    return re.compile(rf"{ANNOUNCED_BEFORE}(?:{'|'.join(words_of('output.announces'))})|{ANNOUNCED_WITHIN}")


def telling_part(text: str, room: int) -> str:
    """Returns the lines of a text that say most about a failure, within `room` characters; a short text whole."""
    if len(text) <= room:
        return text
    causes = Causes(before=1, after=1)
    causes.add(f"{text}\n")
    first_line = text.partition("\n")[0][: room // 4]
    passages = causes.passages(0, len(text), room - len(first_line))
    return "\n".join(dict.fromkeys([first_line, *(line.rstrip() for passage in passages for line in passage.lines)]))[
        :room
    ]


NO_NETWORK = re.compile(
    r"could not resolve|name resolution|network is unreachable|getaddrinfo|\bENOTFOUND\b|EAI_AGAIN|no such host"
    r"|failed to establish a new connection|failed to lookup address|name or service not known",
    re.IGNORECASE,
)
REFUSED = re.compile(
    r"read-only file system|EROFS|permission denied|operation not permitted|resource busy|cross-device", re.IGNORECASE
)
PUSHED_PACK = "unable to migrate objects to permanent storage"
MOST_NAMED = 8
NEW_PACK = re.compile(r"objects/pack.*read-only file system", re.IGNORECASE)


def refused(output: str) -> bool:
    """Says whether the output speaks of something that the sandbox may have refused."""
    return REFUSED.search(output) is not None


def hint(output: str, network: bool, writes: bool, limit_note: str) -> str:
    """Returns a hint on how the sandbox may have caused the failure; empty when the command itself seems to be the
    cause. `limit_note` says what to do where the limit of the user's yes may have caused it."""
    if not network and NO_NETWORK.search(output):
        return "The sandbox has no network. If the command needs it, run it again with network=true."
    if limit_note:
        return limit_note
    if PUSHED_PACK in output:
        return (
            "In the sandbox a push of more than 100 objects into a repository of the work folder needs "
            "`git push --receive-pack='git -c receive.unpackLimit=1000000 receive-pack'`."
        )
    if not REFUSED.search(output):
        return ""
    if writes and NEW_PACK.search(output):
        return (
            "A new pack can be made only by a command that names git, and not where there are more than "
            f"{MOST_PACKS} packs. Call git in the command itself, or ask the user to run `git gc`."
        )
    if not writes:
        return "The command was taken for one that only reads, so it ran with everything read-only."
    return (
        "The sandbox lets commands write only in the work folder and in $TMPDIR, not in .git/hooks and .git/config, "
        "and in a folder of many repositories only in those that the command names; "
        f"it hides secrets{'' if network else ', and without network=true there is no network'}. "
        "Do not try to get around it: use another way, or ask the user."
    )


def kept_from(sandbox: Sandbox) -> str:
    """Names the secret files that were hidden from the command, in case it failed because of that."""
    if sandbox.kind != "bubblewrap":
        return ""
    names = [os.path.relpath(secret.path, sandbox.paths.folder) for secret in sandbox.paths.covered().secrets]
    files = ", ".join(map(shown, names[:MOST_NAMED])) + ("…" if len(names) > MOST_NAMED else "")
    advice = "They and their folders cannot be moved. If it failed for want of them, run it again with secrets=true; "
    return f"Commands see these secret files as empty or locked: {files}. {advice}the user is asked." if files else ""


NOT_FOUND = re.compile(
    r"(?:^|[\s:'\"`‘])([A-Za-z][\w.+-]*)['\"`’]?: (?:command not found|not found|No such file or directory)",
    re.MULTILINE,
)
PYTHONS = ("python3", "python")
IS_PYTHON = re.compile(r"python(?:\d[\d.]*)?")
HAS_MODULE = "import importlib.util as i, sys; sys.exit(i.find_spec(sys.argv[1]) is None)"
ENVIRONMENTS = (".venv/bin", "venv/bin", "node_modules/.bin")
NAMES = 3
SECONDS = 5


async def other_ways(output: str, launch: Launch, sandbox: Sandbox) -> str:
    """Tells the model how to call a program that the output calls missing; empty when there is no way to call it."""
    missing_names: list[str] = list(dict.fromkeys(NOT_FOUND.findall(output)))
    search_path = launch.environment.get("PATH", os.defpath)
    names = [name for name in missing_names if not shutil.which(name, path=search_path)]
    ways = [await _other_way(name, launch, sandbox) for name in names[:NAMES]]
    return " ".join(way for way in ways if way)


async def _other_way(name: str, launch: Launch, sandbox: Sandbox) -> str:
    folder, search_path = launch.folder, launch.environment.get("PATH", os.defpath)
    pythons = [python for python in PYTHONS if python != name and find_program(python, folder, search_path)]
    if IS_PYTHON.fullmatch(name):
        return f"There is no `{name}` here; use `{pythons[0]}`." if pythons else ""
    for environment_name in ENVIRONMENTS:
        if (folder / environment_name / name).is_file():
            return f"`{name}` is not on the PATH; use `{environment_name}/{name}`."
    module = re.sub(r"(?<=pip)3$", "", name).replace("-", "_")
    # To look for a module in a package, Python imports the package, which may come from the work folder.
    for python in pythons if "." not in module and not isinstance(sandbox, Unconfined) else ():
        program = str(find_program(python, folder, search_path))
        # The interpreter may load files of the work folder as soon as it starts (`sitecustomize.py`), and may itself be
        # a script that looks for programs there, so it runs where the command ran.
        look = replace(launch, argv=(program, "-c", HAS_MODULE, module), folder=Path("/"))
        if await _succeeds(look, sandbox):
            return f"`{name}` is not on the PATH; use `{python} -m {module}`."
    return ""


async def _succeeds(launch: Launch, sandbox: Sandbox) -> bool:
    try:
        return await run(await asyncio.to_thread(sandbox.confine, launch, writes=False), ignore, seconds=SECONDS) == 0
    except (OSError, TimeoutError, ToolError):
        return False
