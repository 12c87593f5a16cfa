"""A program with more rights runs from the copy of the user's yes: no way to spell the work folder's own path leads a
shell, a variable or an argument back to the files that the model writes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.safety.brought.agreements import Right
from duckflow.safety.brought.copies import FolderCopies
from duckflow.safety.brought.launch import BroughtLaunch, CannotRunError

SPELLINGS = {
    "plain": "{folder}",
    "a dot": "{home}/./proj",
    "two slashes": "{home}//proj",
    "down and up": "{home}/proj/../proj",
    "a slash before": "/{folder}",
    "a dot after": "{folder}/.",
    "another link": "{top}/alias",
    "a link above": "{top}/above/proj",
    "the home": "~/./proj",
    "the home's variable": "$HOME//proj",
    "quotes": "'{home}'/proj",
    "quotes inside": '"{home}"/pr""oj',
    "an escape": "{home}/pro\\j",
    "a pattern": "{home}/pro?",
    "a set": "{home}/[p]roj",
    "by the process": "/proc/self/root{folder}",
}
PLAIN_TO_ALL = ("plain", "a dot", "two slashes", "down and up", "a dot after", "another link", "a link above")
"""Spellings that a program understands without a shell."""
HIT = 'echo hit > "$OUTSIDE"\n'
FILES = {
    "g.sh": HIT,
    "Makefile": 'all:\n\techo hit > "$$OUTSIDE"\n',
    "M.pm": "open(F, '>', $ENV{OUTSIDE}); print F 'hit'; close F; 1;\n",
    "n.js": "require('fs').writeFileSync(process.env.OUTSIDE, 'hit')\n",
}
ARGUMENTS: dict[str, tuple[list[str], dict[str, str], str]] = {
    "a folder for make": (["make", "-s", "-C", "{name}"], {}, ""),
    "an option of make": (["make", "-s", "--directory={name}"], {}, ""),
    "the folder it starts in": (["make", "-s"], {}, "{name}"),
    "a shell's own file": (["bash", "-c", "true"], {"BASH_ENV": "{name}/g.sh"}, ""),
    "perl's modules": (["perl", "-e", "eval { require M }"], {"PERL5LIB": "{name}"}, ""),
    "node's options": (["node", "-e", "1"], {"NODE_OPTIONS": "--require={name}/n.js"}, ""),
    "the path": (["sh", "-c", "g.sh"], {"PATH": "{name}:/usr/bin:/bin"}, ""),
}


class Ground:
    """A folder whose files were harmless at the yes and are the model's now."""

    def __init__(self, top: Path) -> None:
        self.top, self.folder = top, top / "home/proj"
        self.folder.mkdir(parents=True)
        (top / "alias").symlink_to(self.folder)
        (top / "above").symlink_to(self.folder.parent)
        self.outside = top / "outside"
        self.write(dict.fromkeys(FILES, ""))
        self._copy = FolderCopies(top / "copies").take(self.folder).folder
        self.write(FILES)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def spelled(self, text: str, spelling: str = "plain") -> str:
        name = SPELLINGS[spelling].format(folder=self.folder, home=self.folder.parent, top=self.top)
        return text.replace("{name}", name)

    def run(self, argv: list[str], line: str | None, variables: dict[str, str], cwd: str = "") -> bool:
        """Says whether a file that the model wrote has run."""
        around = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder.parent), "OUTSIDE": str(self.outside)}
        start = BroughtLaunch(self.folder, self._copy, ("outside",), self.top / "private")
        try:
            launch = start.make(argv, line, around | variables, cwd)
        except CannotRunError:
            return False
        if launch.folder.is_dir():
            subprocess.run(launch.argv, cwd=launch.folder, env=launch.environment, capture_output=True, check=False)
        return self.outside.exists()


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("line", ["sh {name}/g.sh", "cd {name} && make -s", "sh -c 'sh {name}/g.sh'"])
def test_a_line_for_a_shell_leads_to_the_copy(tmp_path: Path, spelling: str, line: str) -> None:
    ground = Ground(tmp_path)
    assert not ground.run(["/bin/sh", "-c"], ground.spelled(line, spelling), {})


@pytest.mark.parametrize("spelling", PLAIN_TO_ALL)
@pytest.mark.parametrize("way", ARGUMENTS)
def test_arguments_variables_and_places_lead_to_the_copy(tmp_path: Path, spelling: str, way: str) -> None:
    argv, variables, cwd = ARGUMENTS[way]
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not here")
    ground = Ground(tmp_path)
    words = [ground.spelled(word, spelling) for word in argv]
    given = {name: ground.spelled(value, spelling) for name, value in variables.items()}
    assert not ground.run(words, None, given, ground.spelled(cwd, spelling))


def test_the_ways_would_be_noticed(tmp_path: Path) -> None:
    """A path in a user's own variable is not changed: it shows that a way back would leave its mark."""
    ground = Ground(tmp_path)
    assert ground.run(["/bin/sh", "-c"], 'cd "$DUCKFLOW_PROJECT_DIR" && make -s', {})


WRITTEN_IN_FILES = {
    "a script of an environment": (".venv/bin/guard", ".venv/bin/guard", "#!{folder}/.venv/bin/python\nimport guard\n"),
    "a first line": ("./guard", "guard", "#!/usr/bin/env -S sh {folder}/lib.sh\n"),
    "a line": ("sh tools/guard.sh", "tools/guard.sh", "#!/bin/sh\n. {folder}/lib.sh\n"),
    "a place of modules": ("python3 guard.py", "guard.py", "import sys\nsys.path.insert(0, '{folder}')\nimport lib\n"),
    "another folder on the way": ("cd tools && sh guard.sh", "tools/guard.sh", "cd {folder}; make\n"),
    "an argument": ("node --require ./setup.js guard", "setup.js", "require('{folder}/lib.js')\n"),
    "a named project": ('sh "$CLAUDE_PROJECT_DIR"/guard', "guard", "exec {folder}/lib.sh\n"),
}


@pytest.mark.parametrize("right", ["outside", "network"])
@pytest.mark.parametrize("name", WRITTEN_IN_FILES)
def test_a_file_that_starts_something_by_the_folders_path_is_refused(tmp_path: Path, name: str, right: Right) -> None:
    command, path, text = WRITTEN_IN_FILES[name]
    folder = tmp_path / "work"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text.format(folder=folder))
    copy = FolderCopies(tmp_path / "copies").take(folder).folder
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    with pytest.raises(CannotRunError):
        BroughtLaunch(folder, copy, (right,), tmp_path / "home").make(("sh", "-c"), command, environment)
    assert BroughtLaunch(folder, copy, (), tmp_path / "home").make(("sh", "-c"), command, environment)
