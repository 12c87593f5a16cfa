"""Programs that a command did not find, and the other ways in which this machine has them."""

import os
import re
import shutil
from pathlib import Path

from duckflow.programs.find import find_program
from duckflow.programs.launch import Launch
from duckflow.programs.run import ignore, run

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


async def other_ways(output: str, folder: Path, search_path: str) -> str:
    """For the model: how a program that the output calls missing can be called here. Empty when there is no way."""
    missing: list[str] = list(dict.fromkeys(NOT_FOUND.findall(output)))
    names = [name for name in missing if not shutil.which(name, path=search_path)]
    ways = [await _other_way(name, folder, search_path) for name in names[:NAMES]]
    return " ".join(way for way in ways if way)


async def _other_way(name: str, folder: Path, search_path: str) -> str:
    pythons = [python for python in PYTHONS if python != name and find_program(python, folder, search_path)]
    if IS_PYTHON.fullmatch(name):
        return f"There is no `{name}` here; use `{pythons[0]}`." if pythons else ""
    for place in ENVIRONMENTS:
        if (folder / place / name).is_file():
            return f"`{name}` is not on the PATH; use `{place}/{name}`."
    module = re.sub(r"(?<=pip)3$", "", name).replace("-", "_")
    for python in pythons:
        if await _has_module(str(find_program(python, folder, search_path)), module):
            return f"`{name}` is not on the PATH; use `{python} -m {module}`."
    return ""


async def _has_module(python: str, module: str) -> bool:
    """The interpreter is asked in a folder that holds no modules of anybody's."""
    launch = Launch((python, "-c", HAS_MODULE, module), Path("/"), os.environ)
    try:
        return await run(launch, ignore, seconds=SECONDS) == 0
    except TimeoutError:
        return False
