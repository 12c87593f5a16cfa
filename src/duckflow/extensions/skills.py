"""Skills: folders with a `SKILL.md`, whose head says what they are for and whose body is read when one is chosen."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from duckflow.extensions.front_matter import FrontMatter, read_markdown
from duckflow.extensions.places import SKILL_PLACES, ExtensionFolder, files_in, places_in
from duckflow.state.data import Phrase, say, shorten

SKILL_FILE = "skill.md"
LONGEST_DESCRIPTION = 1024
MOST_SKILLS = 300
MOST_FILES = 60


class Skill(NamedTuple):
    """One skill, as the head of its file describes it. Its body is read anew each time."""

    name: str
    description: str
    path: Path
    own: bool
    offered: bool = True
    """True if the skill is offered to the model; otherwise only the user can call for it."""
    typed: bool = True
    """True if the user may run the skill by typing `/NAME`."""
    warnings: tuple[Phrase, ...] = ()
    allowed: str = ""
    """The tools that the skill wants to use without a question, as its head lists them."""
    top: Path | None = None
    """The work folder that brings the skill; None if it is the user's own."""

    @property
    def folder(self) -> Path:
        return self.path.parent

    def body(self, folder: Path) -> str:
        """Returns the skill's instructions, with the path of its folder filled in where they ask for it."""
        text = read_markdown(self.path, self.top).body
        return text.replace("${CLAUDE_SKILL_DIR}", str(folder)).replace("{baseDir}", str(folder))

    def files(self) -> list[str]:
        """Returns the other files in its folder, the nearest first."""
        files: list[str] = []
        for path in files_in(ExtensionFolder(self.folder, self.own), self.folder):
            if path != self.path and len(files) < MOST_FILES:
                files.append(path.relative_to(self.folder).as_posix())
        return files


def find_skills(home: Path | None, project: Path | None) -> list[Skill]:
    """Returns the skills by name. If two have the same name, the user's own is returned, or else the one found first.
    `project` is None until the folder is trusted."""
    skills: dict[str, Skill] = {}
    for skills_folder in places_in(home, project, SKILL_PLACES):
        for path in files_in(skills_folder, project or skills_folder.folder):
            if path.name.lower() != SKILL_FILE or len(skills) >= MOST_SKILLS:
                continue
            skill = _read(path, skills_folder)
            if skill.name not in skills:
                skills[skill.name] = skill
            elif skills[skill.name].path.resolve() != path.resolve():
                first_skill = skills[skill.name]
                warning = say("skill.twice", path=str(path))
                skills[skill.name] = first_skill._replace(warnings=(*first_skill.warnings, warning))
    return sorted(skills.values(), key=lambda skill: skill.name)


def fit_catalogue(skills: Iterable[Skill], budget: int) -> list[tuple[str, str]]:
    """Returns names with as much of their descriptions as fits into `budget` characters. If not all names fit, the last
    ones are left out."""
    offered_skills = [skill for skill in skills if skill.offered]
    if not offered_skills:
        return []
    names_length = sum(len(skill.name) + 6 for skill in offered_skills)
    description_room = max(0, (budget - names_length) // len(offered_skills))
    entries: list[tuple[str, str]] = []
    for skill in offered_skills:
        entries.append((skill.name, shorten(skill.description, description_room) if description_room >= 24 else ""))
        budget -= len(skill.name) + 6 + len(entries[-1][1])
        if budget < 0 and len(entries) > 1:
            entries.pop()
            break
    return entries


def _read(path: Path, place: ExtensionFolder) -> Skill:
    warnings: list[Phrase] = []
    try:
        markdown_file = read_markdown(path, place.top)
    except OSError as problem:
        markdown_file = FrontMatter({}, "")
        warnings.append(say("skill.unreadable", reason=problem.strerror or str(problem)))
    stated_name, folder = markdown_file.values.get("name", ""), path.parent.name
    name = _plain_name(stated_name or folder)
    if markdown_file.strange:
        warnings.append(say("skill.strange", line=shorten(markdown_file.strange[0], 80)))
    if not stated_name:
        warnings.append(say("skill.no_name", name=name))
    elif name != stated_name:
        warnings.append(say("skill.odd_name", given=shorten(stated_name, 80), name=name))
    description = markdown_file.values.get("description", "")
    if not description:
        warnings.append(say("skill.no_description"))
        description = next((line.strip(" #") for line in markdown_file.body.split("\n") if line.strip(" #")), name)
    if len(description) > LONGEST_DESCRIPTION:
        warnings.append(say("skill.long", limit=LONGEST_DESCRIPTION))
        description = shorten(description, LONGEST_DESCRIPTION)
    return Skill(
        name,
        description,
        path,
        place.own,
        offered=not markdown_file.flag("disable-model-invocation", False),
        typed=markdown_file.flag("user-invocable", True),
        warnings=tuple(warnings),
        allowed=markdown_file.values.get("allowed-tools", ""),
        top=place.top,
    )


def _plain_name(name: str) -> str:
    """Returns a name that can be typed after a slash. It is no name of another folder (`..`) either, since a skill's
    copy is called by it."""
    return re.sub(r"[^\w.:-]+", "-", name.strip().lower()).strip("-.")[:64] or "skill"
