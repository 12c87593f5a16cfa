"""Skills: folders with a `SKILL.md`, whose head says what they are for and whose body is read when one is chosen."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from duckflow.extensions.front_matter import FrontMatter, read_markdown
from duckflow.extensions.places import SKILL_PLACES, ExtensionFolder, files_in, places_in
from duckflow.state.noun import shorten
from duckflow.state.phrase import Phrase, say

SKILL_FILE = "skill.md"
LONGEST_DESCRIPTION = 1024
MOST_SKILLS = 300
MOST_FILES = 60


class Skill(NamedTuple):
    """One skill: its head. The body is read anew when it is wanted."""

    name: str
    description: str
    path: Path
    own: bool
    offered: bool = True
    """Whether the model is told of it; else only the user calls for it."""
    typed: bool = True
    """Whether the user may call for it by `/NAME`."""
    warnings: tuple[Phrase, ...] = ()
    allowed: str = ""
    """The tools that it wants to use without a question, as its head lists them."""

    @property
    def folder(self) -> Path:
        return self.path.parent

    def body(self, folder: Path) -> str:
        """Its instructions, with the place of its files filled in where they ask for it."""
        text = read_markdown(self.path).body
        return text.replace("${CLAUDE_SKILL_DIR}", str(folder)).replace("{baseDir}", str(folder))

    def files(self) -> list[str]:
        """What else lies in its folder, the nearest first."""
        found: list[str] = []
        for path in files_in(ExtensionFolder(self.folder, self.own), self.folder):
            if path != self.path and len(found) < MOST_FILES:
                found.append(path.relative_to(self.folder).as_posix())
        return found


def find_skills(home: Path | None, project: Path | None) -> list[Skill]:
    """By name; of two with one name the user's own counts, then the one found first. `project`: once it is trusted."""
    found: dict[str, Skill] = {}
    for place in places_in(home, project, SKILL_PLACES):
        for path in files_in(place, project or place.folder):
            if path.name.lower() != SKILL_FILE or len(found) >= MOST_SKILLS:
                continue
            skill = _read(path, place)
            if skill.name not in found:
                found[skill.name] = skill
            elif found[skill.name].path.resolve() != path.resolve():
                first = found[skill.name]
                warning = say("skill.twice", path=str(path))
                found[skill.name] = first._replace(warnings=(*first.warnings, warning))
    return sorted(found.values(), key=lambda skill: skill.name)


def fit_catalogue(skills: Iterable[Skill], budget: int) -> list[tuple[str, str]]:
    """Names with as much of their descriptions as fits into so many characters; with no room for all names the last
    ones are left out."""
    offered = [skill for skill in skills if skill.offered]
    if not offered:
        return []
    names = sum(len(skill.name) + 6 for skill in offered)
    each = max(0, (budget - names) // len(offered))
    told: list[tuple[str, str]] = []
    for skill in offered:
        about = " ".join(skill.description.split())
        told.append((skill.name, shorten(about, each) if each >= 24 else ""))
        budget -= len(skill.name) + 6 + len(told[-1][1])
        if budget < 0 and len(told) > 1:
            told.pop()
            break
    return told


def _read(path: Path, place: ExtensionFolder) -> Skill:
    warnings: list[Phrase] = []
    try:
        head = read_markdown(path)
    except OSError as problem:
        head = FrontMatter({}, "")
        warnings.append(say("skill.unreadable", reason=problem.strerror or str(problem)))
    given, folder = head.values.get("name", ""), path.parent.name
    name = _plain_name(given or folder)
    if head.strange:
        warnings.append(say("skill.strange", line=shorten(head.strange[0], 80)))
    if not given:
        warnings.append(say("skill.no_name", name=name))
    elif name != given:
        warnings.append(say("skill.odd_name", given=shorten(given, 80), name=name))
    about = head.values.get("description", "")
    if not about:
        warnings.append(say("skill.no_description"))
        about = next((line.strip(" #") for line in head.body.split("\n") if line.strip(" #")), name)
    if len(about) > LONGEST_DESCRIPTION:
        warnings.append(say("skill.long", limit=LONGEST_DESCRIPTION))
        about = shorten(about, LONGEST_DESCRIPTION)
    return Skill(
        name,
        about,
        path,
        place.own,
        offered=not head.flag("disable-model-invocation", False),
        typed=head.flag("user-invocable", True),
        warnings=tuple(warnings),
        allowed=head.values.get("allowed-tools", ""),
    )


def _plain_name(name: str) -> str:
    """What can be typed after a slash."""
    return re.sub(r"[^\w.:-]+", "-", name.strip().lower()).strip("-")[:64] or "skill"
