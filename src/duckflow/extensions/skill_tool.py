"""The tool that reads a skill: first its instructions, and later the files that these instructions name."""

import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.extensions.skills import Skill
from duckflow.safety.files import read_plain
from duckflow.safety.secrets import secret_name
from duckflow.state.action import READ_SKILL
from duckflow.state.data import Phrase, say
from duckflow.tools.tool import Args, Done, Tool

LONGEST = 60_000
LARGEST_COPY = 50_000_000


class SkillArgs(Args):
    name: str
    file: str = ""
    """The name of a file of the skill; empty for its instructions."""


class ReadSkill(Tool[SkillArgs]):
    """Reads files of a skill's folder, and no others. If a skill asks for risky actions, the user is still asked
    first."""

    operation = READ_SKILL
    effect = "read"
    known_as = "Skill"
    led = True
    in_tasks = True
    args = SkillArgs

    def __init__(
        self,
        skills: Callable[[], Sequence[Skill]],
        hidden: Sequence[Path],
        copies: Path,
        grant: Callable[[str, str], Awaitable[None]],
    ) -> None:
        """Commands do not see the folders in `hidden`, so a skill in one of them is copied to `copies` when it is read.
        `grant` asks the user to allow the tools that a skill wants to use."""
        self._skills = skills
        self._hidden = hidden
        self._copies = copies
        self._grant = grant

    def doing(self, args: SkillArgs) -> Phrase | None:
        return say("skill.reading", name=args.name)

    async def run(self, args: SkillArgs) -> Done:
        skill = self._find(args.name)
        wanted_file = args.file.strip()
        try:
            text = self._file(skill, wanted_file) if wanted_file else self.text_of(skill)
        except OSError as problem:
            raise ToolError(f"{wanted_file or 'SKILL.md'}: {problem.strerror or problem}") from None
        if not wanted_file:
            await self._grant(skill.name, skill.allowed)
        return Done(text, say("skill.read", name=skill.name, what=wanted_file or skill.path.name))

    def text_of(self, skill: Skill) -> str:
        """Returns the skill's instructions, with the folder and the names of its files."""
        folder, files = self._visible(skill), skill.files()
        body = skill.body(folder)
        body = body if len(body) <= LONGEST else f"{body[:LONGEST]}\n[… the rest is left out …]"
        lines = [f"Skill {skill.name}. Its folder: {folder}"]
        if files:
            heading = f"Files in it (read with {READ_SKILL}; scripts are run with their whole path)"
            lines.append(f"{heading}: {', '.join(files)}")
        return "\n".join([*lines, "", body])

    def _find(self, name: str) -> Skill:
        skills_by_name = {skill.name: skill for skill in self._skills()}
        if skill := skills_by_name.get(name.strip().lower().removeprefix("/")):
            return skill
        raise ToolError(f"There is no skill {name!r}. There are: {', '.join(skills_by_name) or 'none'}")

    def _file(self, skill: Skill, name: str) -> str:
        path, skill_folder = (skill.folder / name).resolve(), skill.folder.resolve()
        if path.is_relative_to(skill_folder) and secret_name(path.relative_to(skill_folder).as_posix()):
            raise ToolError(
                f"{name} looks like a secret, which {READ_SKILL} does not give. Where it lies in the work folder, "
                "file_ops.read_file asks the user for it."
            )
        if not path.is_relative_to(skill_folder) or not path.is_file():
            raise ToolError(
                f"The skill {skill.name} has no file {name!r}. It has: {', '.join(skill.files()) or 'none'}"
            )
        file_bytes = read_plain(path, 4 * LONGEST, cut=True, within=skill.top)
        if b"\0" in file_bytes:
            raise ToolError(f"{name} of the skill {skill.name} is no text; it lies in {self._visible(skill)}")
        text = file_bytes.decode("utf-8", "replace")
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[… the rest is left out …]"

    def _visible(self, skill: Skill) -> Path:
        """Returns the folder where commands find the skill's files."""
        if not any(map(skill.folder.is_relative_to, self._hidden)) or not skill.files():
            return skill.folder
        copy = self._copies / skill.name
        size = sum((skill.folder / name).stat().st_size for name in skill.files())
        if size > LARGEST_COPY:
            return skill.folder
        shutil.rmtree(copy, ignore_errors=True)
        return Path(shutil.copytree(skill.folder, copy, symlinks=True, ignore=partial(_secrets_in, skill.folder)))


def _secrets_in(top: Path, folder: str, names: list[str]) -> list[str]:
    """Returns the names of secret files: they are not copied, as commands must not see them unasked."""
    return [name for name in names if secret_name(os.path.relpath(f"{folder}/{name}", top))]
