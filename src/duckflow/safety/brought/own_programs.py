"""Decides which hooks and servers of the user's own may run with the user's rights: those that start nothing from the
work folder.

Many programs read instructions from the folder that they run in, as `make` does, and nobody can list all of them. So a
hook keeps the user's rights only if every program in it is known not to do so, or is a file of the user's own."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from duckflow.safety.brought.launch import NAMED_FOLDER, WORD
from duckflow.safety.commands.parse import parse
from duckflow.safety.commands.project_tools import names_program
from duckflow.safety.commands.reader_programs import GIT_READERS, READERS
from duckflow.safety.commands.verdict import TooMuch
from duckflow.safety.commands.words import NOT_A_PROGRAM, WRAPPERS, Call, look_behind, names, program_name
from duckflow.safety.path_names import SYSTEM, TOOLS_IN_HOME

SHELLS = names("sh bash dash zsh ksh fish")
INTERPRETERS = SHELLS | names("python node ruby perl php source .")
HARMLESS = names("""
[ break continue exit export kill local read return set shift trap unset wait chmod cp ln mkdir mktemp mv rm rmdir tee
touch afplay aplay canberra-gtk-play dunstify espeak notify-send ntfy osascript paplay pw-play say spd-say
terminal-notifier tput curl logger pbcopy wall wget wl-copy xclip xsel
""")
"""Parts of the shell, and programs that write files, notify or send. None of them reads instructions from the folder
that it runs in. The programs that only read are in another table (`READERS`)."""
CODE = re.compile(r"-[a-z]*c")
ENTERING = names("cd pushd")
IN_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?=/)")
PLAIN_WRAPPERS = ("unknown_program", "as_administrator", "at_run_time")


FETCHERS = names("npx pnpx bunx uvx")
"""Programs that fetch another program and run it (`npx prettier src`). A folder behind the name of the fetched program
is data for it; nothing in the folder is started."""
FLAGS = names("-y --yes -q --quiet --silent -n --no-cache --offline --prefer-offline --isolated --refresh --bun")
"""Options of these programs that take no value."""
CONTAINERS = names("docker podman nerdctl")
STARTERS = (
    INTERPRETERS
    | names("bun cargo deno dotnet go hatch java make npm pdm pnpm poetry rye ts-node tsx uv yarn awk gawk mawk elixir")
    | names("find groovy java julia just lua nix pipx pixi rscript script task tclsh")
)


def served_from(argv: Sequence[str], start_folder: Path, folder: Path) -> str:
    """Returns the first word of a server's command that makes it run something from the work folder; an empty text if
    there is none."""
    own_name, words = argv[0], argv[1:]
    program, tops = program_name(own_name), (Path(folder), Path(os.path.realpath(folder)))

    def is_of_folder(word: str) -> bool:
        pieces = (word, word.partition("=")[2], word[2:]) if word.startswith("-") else (word,)
        places = (start_folder / Path(piece).expanduser() for piece in pieces if "/" in piece)
        paths = (Path(path) for place in places for path in (os.path.normpath(place), os.path.realpath(place)))
        return any(path.is_relative_to(top) for path in paths for top in tops)

    def names_folder(word: str) -> bool:
        text = IN_HOME.sub(lambda _: os.environ.get("HOME", "~"), word)
        return any(map(is_of_folder, {word, *WORD.findall(text)}))

    if names_folder(own_name):
        return own_name
    if program in SHELLS and (code := _shell_code(words)):
        return code if any(map(names_folder, words)) and _starts_from(code, start_folder, folder) else ""
    if program in FETCHERS:
        first = words[: _end_of_options(words)]
        files = (word for word in words if is_of_folder(word) and (start_folder / Path(word).expanduser()).is_file())
        return next((word for word in first if names_folder(word)), next(files, ""))
    if program in STARTERS:
        return next(filter(names_folder, words), "")
    if program in CONTAINERS:
        return next((word for word in words if is_of_folder(word) and (start_folder / word).is_file()), "")
    if program not in WRAPPERS:
        return ""
    index = next((index for index, word in enumerate(words) if not NOT_A_PROGRAM.match(word)), len(words))
    named_word = next(filter(names_folder, words[:index]), "")
    return named_word or (served_from(words[index:], start_folder, folder) if words[index:] else "")


def _shell_code(words: Sequence[str]) -> str:
    """Returns the command line that a shell is given as a text, or an empty text."""
    return next((text for option, text in pairwise(words) if CODE.fullmatch(option)), "")


def _starts_from(code: str, start_folder: Path, folder: Path) -> bool:
    """Says whether a command line that names the work folder may start something there."""
    try:
        calls = [call for call in parse(code).calls if call.words]
    except TooMuch:
        return True
    return any(
        call.program in ENTERING or served_from([word.text for word in call.words], start_folder, folder)
        for call in calls
    ) or bool(set(code) & {"<", "`", "$"})


def _end_of_options(words: Sequence[str]) -> int:
    """Returns the number of words up to the name of the program that a fetcher fetches, which is the first word that is
    neither an option nor an option's value."""
    is_value = False
    for index, word in enumerate(words):
        if not word.startswith("-") and not is_value:
            return index + 1
        is_value = word.startswith("-") and "=" not in word and word not in FLAGS
    return len(words)


def runs_of_folder(line: str, folder: Path, home: str) -> bool:
    """Says whether a command of the user's may run something that the model has written. It may if it names a file of
    the work folder, or a program that reads instructions there, as `make` does."""
    text = NAMED_FOLDER.sub(lambda match: f"{folder}{match[2]}", line)
    text = IN_HOME.sub(lambda _: home, text)
    words = [word.rstrip("/") for word in WORD.findall(text)]
    bases = ["", *(word for word in words if (folder / word).is_dir())]
    paths = [os.path.relpath(folder / base_folder / word, folder) for base_folder in bases for word in words]
    if any(_is_file_of(folder, found_path) for path in paths for found_path in _matching(folder, path)):
        return True
    try:
        return not all(map(_is_known, parse(text).calls))
    except TooMuch:
        return True


def _matching(folder: Path, path: str) -> Iterable[Path]:
    is_pattern = re.search(r"[*?\[]", path) and not path.startswith("..") and "**" not in path
    return folder.glob(path) if is_pattern else (folder / path,)


def _is_file_of(folder: Path, path: Path) -> bool:
    both_paths = (Path(os.path.normpath(path)), Path(os.path.realpath(path)))
    tops = (folder, os.path.realpath(folder))
    return path.is_file() and any(path_form.is_relative_to(top) for path_form in both_paths for top in tops)


def _is_known(call: Call) -> bool:
    """Says whether a call certainly reads no instructions from the folder that it runs in. A script that is called by
    its path (`~/tools/notify`) counts as certain, but no installed program."""
    if not call.words:
        return True
    if not call.words[0].known or names_program([*_spoken_words(call)]):
        return False
    path, name = call.words[0].text, call.program
    if "/" in path and not _is_installed(path):
        return True
    if name in WRAPPERS and (behind := look_behind(call, ())):
        return WRAPPERS[name][0] in PLAIN_WRAPPERS and not behind.texts and _is_known(call.running(behind.words))
    if name in INTERPRETERS:
        return _is_known_script(call)
    if name == "git":
        subcommands = (" ".join(("git", *call.plain_words[:count])) for count in (1, 2))
        return not call.texts or any(words in GIT_READERS for words in subcommands)
    return name in READERS or name in HARMLESS


def _is_installed(path: str) -> bool:
    """Says whether a program lies on PATH, among the system's own files, or where tools lie in a home."""
    folder, home = Path(os.path.realpath(Path(path).expanduser().parent)), Path.home()
    on_path = map(os.path.realpath, os.environ.get("PATH", os.defpath).split(os.pathsep))
    # In `~/bin` people keep scripts of their own.
    tools = (str(home / name) for name in TOOLS_IN_HOME if name != "bin")
    places = [os.path.realpath(place) for place in (*SYSTEM, *tools)]
    return str(folder) in on_path or any(map(folder.is_relative_to, places))


def _is_known_script(call: Call) -> bool:
    """Says whether an interpreter runs a script of the user's own, or code that is written in the call itself."""
    for option, word in zip(call.texts, call.texts[1:], strict=False):
        if CODE.fullmatch(option):
            # Python takes no module from the folder, since the hook's environment says so.
            return call.program == "python" or (call.program in SHELLS and all(map(_is_known, parse(word).calls)))
    return "-m" not in call.texts and any(Path(word).is_absolute() for word in call.plain_words[:1])


def _spoken_words(call: Call) -> Iterator[str]:
    """Yields the words of a call. A text that a shell is to run (`bash -c`) is split into the words in it."""
    word_before = ""
    for word in call.words:
        yield from WORD.findall(word.text) if CODE.fullmatch(word_before) else (word.text,)
        word_before = word.text
