"""Starts a program that a work folder brings.

Where the command names a file, the file is taken from the copy of the folder that the user agreed to. In the sandbox
the program works in the real folder, with the rights of the model's own commands. With any further right the program
runs from the copy only: every path that it gets leads to the copy, and only a variable of Duckflow's own names the real
folder."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from duckflow.programs.launch import Launch
from duckflow.safety.brought.agreements import Right
from duckflow.safety.brought.copies import LARGEST_FILE
from duckflow.safety.files import read_plain
from duckflow.safety.sandbox.sandbox import Sandbox

REAL_NAME = "DUCKFLOW_PROJECT_DIR"
FOLDER_NAMES = ("CLAUDE_PROJECT_DIR", REAL_NAME)
SEARCH_PATHS = ("PATH", "PYTHONPATH", "NODE_PATH")
COPY_NAME = "DUCKFLOW_COPY_DIR"
PROJECT = rf"\$(?:{'|'.join(FOLDER_NAMES)}|\{{(?:{'|'.join(FOLDER_NAMES)})(?::-[^}}]*)?\}})(?!\w)"
NAMED_FOLDER = re.compile(rf"(?:\"({PROJECT})\"|{PROJECT})((?:/[^\s\"';|&<>()`]*)?)")
WORD = re.compile(r"[^\s;|&<>()=,:\"'`]+")
NAMED_PATH = re.compile(r"(?<![^\s;|&<>()=,:\"'`])(?:~|\$HOME|\$\{HOME\})?/[^\s;|&<>()=,:\"'`]*")
WRITTEN = re.compile(r">\s*[\"']?$")
"""Matches the text right before the name of a file that the shell writes to. Such a file is data, and never a
program."""
PLAIN_PATH = re.compile(r"[\w./+@-]+")
MODULE = re.compile(r"\bpython[\d.]*\s+(?:-\w+\s+)*-m\s")


class CannotRunError(Exception):
    """Raised when the program cannot run as the user agreed. `key` is the key of the message that says why."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class CopiedWords:
    """Replaces the work folder by the copy in a command. With `only`, no path in the command may lead into the real
    folder."""

    def __init__(self, folder: Path, copy: Path, home: str, only: bool) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._written = {str(folder), str(self._folder)} - {"/"}
        self._copy = copy
        self._home = home
        self._only = only

    def line(self, text: str) -> str:
        """Replaces the work folder by the copy in a command line for a shell."""
        if self._only:
            text = self._without_folder(text)
        copy_name = str(self._copy) if PLAIN_PATH.fullmatch(str(self._copy)) else f'"${COPY_NAME}"'
        text = NAMED_FOLDER.sub(lambda match: self._named(match, copy_name), text)
        words = {word.rstrip("/") for word in WORD.findall(text)}
        bases = ["", *(word for word in words if self._inside(word) and (self._copy / word).is_dir())]

        def of_copy(word: re.Match[str]) -> str:
            if WRITTEN.search(text, 0, word.start()):
                return word[0]
            for base_folder in bases:
                path = self._inside(word[0], base_folder)
                if path and (self._copy / path).is_file():
                    return f"{copy_name}/{path}"
            return word[0]

        text = WORD.sub(of_copy, text)
        self._require_no_other_name(text)
        return text

    def word(self, text: str) -> str:
        """Replaces the work folder by the copy in one word of a command that runs without a shell."""
        new_text = NAMED_FOLDER.sub(lambda match: self._named(match, str(self._copy)), text)
        if self._only:
            new_text = self._without_folder(new_text)
        self._require_no_other_name(new_text)
        path = self._inside(new_text)
        return str(self._copy / path) if path and (self._copy / path).is_file() else new_text

    def search_path(self, text: str) -> str:
        """Rewrites a search path. Folders in the work folder are replaced by those in the copy, or left out where the
        copy does not have them."""
        search_folders: list[str] = []
        for search_folder in text.split(os.pathsep):
            path = self._inside(search_folder or ".")
            if path is None:
                search_folders.append(search_folder)
            elif (self._copy / path).is_dir():
                search_folders.append(str(self._copy / path))
        return os.pathsep.join(search_folders)

    def value(self, text: str) -> str:
        """Replaces the work folder by the copy in the value of a variable."""
        return self._without_folder(text) if self._only else text

    def _named(self, match: re.Match[str], top: str) -> str:
        path = match[2].strip("/")
        if WRITTEN.search(match.string, 0, match.start()):
            return match[0].replace(FOLDER_NAMES[0], REAL_NAME)
        only_copy = self._only and REAL_NAME not in match[0]
        return f"{top}{match[2]}" if only_copy or (path and (self._copy / path).is_file()) else match[0]

    def _inside(self, word: str, base: str = "") -> str | None:
        """Returns the path beneath the work folder that a word names, or None when the word names no path there."""
        for home in ("~/", "$HOME/", "${HOME}/"):
            if self._home and word.startswith(home):
                word = f"{self._home}/{word.removeprefix(home)}"
        if word.startswith(str(self._copy)):
            return None
        full_path = os.path.normpath(self._folder / base / word)
        for path in (Path(full_path), Path(os.path.realpath(full_path))):
            if path.is_relative_to(self._folder):
                return path.relative_to(self._folder).as_posix()
        return None

    def _without_folder(self, text: str) -> str:
        for home in ("~", "$HOME", "${HOME}") if self._home else ():
            for folder in self._written:
                if folder.startswith(f"{self._home}/"):
                    text = _replaced(text, home + folder.removeprefix(self._home), str(self._copy))
        for folder in sorted(self._written, key=len, reverse=True):
            text = _replaced(text, folder, str(self._copy))

        def of_copy(match: re.Match[str]) -> str:
            path = self._inside(match[0])
            return match[0] if path is None else str(self._copy / path)

        return NAMED_PATH.sub(of_copy, text)

    def _require_no_other_name(self, line: str) -> None:
        """Refuses a line in which a name still leads to the real folder. A shell can make a path of quotes, escapes and
        patterns, and such a path cannot be replaced by one in the copy."""
        for name in _names_for_shell(line) if self._only else ():
            path, parts = self._inside(name), self._folder.parts
            pattern = Path(name).parts
            fits_pattern = len(pattern) >= len(parts) and all(map(fnmatchcase, parts, pattern))
            if path is not None or fits_pattern:
                raise CannotRunError("brought.other_name")


def changed_files(folder: Path, copy: Path, line: str) -> list[str]:
    """Returns the files of the copy that a line names, and whose content in the work folder is different now."""
    copied_line = CopiedWords(folder, copy, os.environ.get("HOME", ""), only=False).line(line)
    named_paths = [Path(word) for word in WORD.findall(copied_line) if Path(word).is_relative_to(copy)]
    paths = {path.relative_to(copy) for path in named_paths if path.is_file()}
    return sorted(str(path) for path in paths if _content(folder / path) != _content(copy / path))


def _content(path: Path) -> bytes | None:
    try:
        return read_plain(path, LARGEST_FILE)
    except (OSError, ValueError):
        return None


def _names_for_shell(line: str) -> Iterator[str]:
    """Yields the absolute paths that a shell would find in a line, also in a word that is itself a command line."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    for word in words:
        if word != line and any(character.isspace() for character in word):
            yield from _names_for_shell(word)
        for path_word in re.split(r"[;|&<>()=,:]", word):
            if path_word.startswith(("/", "~/", "$HOME/", "${HOME}/")):
                yield path_word


def _replaced(text: str, folder: str, copy: str) -> str:
    return re.sub(rf"{re.escape(folder)}(?![\w.+@-])", lambda _: copy, text)


def python_folders(line: str, folder: Path, may: Callable[[Path], bool]) -> list[str]:
    """Returns the folders of the Python scripts that a line names and `may` allows. The caller adds them to Python's
    search path, because Python itself does not look there when PYTHONSAFEPATH is set."""
    scripts = [Path(os.path.realpath(folder / Path(word).expanduser())) for word in WORD.findall(line) if ".py" in word]
    return list(dict.fromkeys(str(script.parent) for script in scripts if script.is_file() and may(script)))


def python_path(environment: Mapping[str, str], added: Sequence[str]) -> dict[str, str]:
    search_folders = [*added, *filter(None, [environment.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(search_folders)} if search_folders else {}


def without_folder(environment: Mapping[str, str], folder: Path, line: str) -> dict[str, str]:
    """Returns the environment for a command (`line`) of the user's own, in which no library is taken from the work
    folder."""
    real_folder = Path(os.path.realpath(folder))

    def outside(place: str) -> bool:
        return Path(place).is_absolute() and not Path(os.path.realpath(place)).is_relative_to(real_folder)

    cleaned_variables = {
        name: os.pathsep.join(filter(outside, environment[name].split(os.pathsep)))
        for name in SEARCH_PATHS
        if name in environment and real_folder != Path("/")
    }
    module_folders = python_folders(line, folder, lambda path: not path.is_relative_to(real_folder))
    variables = {**environment, **cleaned_variables, "PYTHONSAFEPATH": "1"}
    return variables | python_path(variables, module_folders)


class BroughtLaunch:
    """Makes launches of a program that a work folder brings, with the folder, its copy and the rights that the user
    agreed to."""

    def __init__(self, folder: Path, copy: Path, rights: Sequence[Right], home: Path) -> None:
        self._folder = folder
        self._copy = copy
        self._rights = rights
        self._private_home = home

    def make(
        self,
        argv: Sequence[str],
        line: str | None,
        environment: Mapping[str, str],
        cwd: str = "",
        leaves_rest: bool = False,
    ) -> Launch:
        """Makes the launch. `line` is the text that the shell in `argv` is to run, or None when `argv` is the whole
        command."""
        words = CopiedWords(self._folder, self._copy, environment.get("HOME", ""), bool(self._rights))
        command_lines = [words.line(line)] if line is not None else []
        variables = self._variables(words, environment)
        command = [*map(words.word, argv), *command_lines]
        if self._rights and self._starts_by_path(command):
            raise CannotRunError("brought.other_name")
        module_folders = python_folders(" ".join(command), self._copy, lambda path: path.is_relative_to(self._copy))
        modules = [str(self._copy)] if MODULE.search(" ".join(command)) else []
        variables |= python_path(variables, [*module_folders, *modules])
        top_folder = self._copy if self._rights else self._folder
        start_folder = Path(os.path.normpath(top_folder / words.value(cwd))) if cwd else top_folder
        return Launch(command, start_folder, variables, leaves_rest=leaves_rest)

    def _starts_by_path(self, command: Sequence[str]) -> bool:
        """Says whether the command names a file of the copy that contains the path of the real folder, as scripts in
        `.venv/bin` do in their first line. The user has not agreed to the program at that path, since it is not in the
        copy."""
        names = {os.fsencode(name) for name in (self._folder, os.path.realpath(self._folder))} - {b"/"}
        path_of_folder = re.compile(rb"(?:" + b"|".join(map(re.escape, names)) + rb")(?![\w.+@-])") if names else None
        real_copy = Path(os.path.realpath(self._copy))
        paths = {os.path.realpath(real_copy / word) for word in WORD.findall(" ".join(command))}
        file_contents = (_content(Path(path)) for path in paths if Path(path).is_relative_to(real_copy))
        return path_of_folder is not None and any(path_of_folder.search(content or b"") for content in file_contents)

    def confine(
        self, launch: Launch, sandbox: Sandbox, writes: bool, folder_writable: bool, readable: Sequence[Path] = ()
    ) -> Launch:
        """Returns the launch, confined as the user agreed. Raises CannotRunError when there is no sandbox to run the
        program in."""
        if "outside" in self._rights:
            return launch
        if sandbox.kind == "none":
            raise CannotRunError("brought.no_sandbox")
        private_home: tuple[str, ...] = (str(self._private_home),) if "home" in self._rights else ()
        settings = sandbox.paths.settings
        settings = settings.model_copy(
            update={
                "unix_sockets": settings.unix_sockets or "sockets" in self._rights,
                "writable": (*settings.writable, *private_home),
            }
        )
        readable_folders = (self._copy, *readable)
        paths = replace(sandbox.paths, settings=settings, readable=readable_folders, folder_writable=folder_writable)
        return sandbox.reaching(paths).confine(launch, network="network" in self._rights, writes=writes)

    def _variables(self, words: CopiedWords, environment: Mapping[str, str]) -> dict[str, str]:
        variables = {
            name: words.search_path(value) if name in SEARCH_PATHS else words.value(value)
            for name, value in environment.items()
        }
        variables.pop("OLDPWD", None)
        named_folder = self._copy if self._rights else self._folder
        variables |= dict.fromkeys(FOLDER_NAMES, str(named_folder)) | {REAL_NAME: str(self._folder)}
        variables |= {COPY_NAME: str(self._copy)}
        variables |= {"PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        if self._rights:
            variables["PWD"] = str(self._copy)
        if "home" in self._rights:
            self._private_home.mkdir(parents=True, exist_ok=True, mode=0o700)
            variables = {name: value for name, value in variables.items() if not name.startswith("XDG_")}
            cache_folder = self._private_home / ".cache"
            variables |= {"HOME": str(self._private_home), "XDG_CACHE_HOME": str(cache_folder)}
            variables |= {"UV_CACHE_DIR": str(cache_folder / "uv"), "npm_config_cache": str(cache_folder / "npm")}
        return variables
