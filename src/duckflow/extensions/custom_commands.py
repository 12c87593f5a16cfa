"""Custom commands: Markdown files whose text becomes a message. The words typed after the command's name are filled
in."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from duckflow.extensions.front_matter import read_markdown
from duckflow.extensions.places import COMMAND_PLACES, PROMPTS, files_in, places_in
from duckflow.state.data import shorten

MOST_COMMANDS = 500
SHOWN = 200
ARGUMENT = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?!\d)|\{([1-9])\})")
NAMED = re.compile(r"\$([A-Z][A-Z0-9_]*)\b")
SHELL = re.compile(r"!`([^`\n]+)`")


class CustomCommand(NamedTuple):
    """A custom command, read from one file. `own` means that it is the user's own, and was not brought by the work
    folder."""

    name: str
    path: Path
    own: bool
    description: str
    hint: str
    model: str
    mode: str
    allowed: str
    """The tools that the command wants to use without a question, as the head of its file lists them."""
    body: str


def find_commands(home: Path | None, project: Path | None) -> list[CustomCommand]:
    """Returns the commands by name. Folders come before the name (`git/fix.md` is `git:fix`, codex has `prompts:fix`).
    The user's own commands take precedence over the project's."""
    commands: dict[str, CustomCommand] = {}
    for commands_folder in places_in(home, project, COMMAND_PLACES):
        for path in files_in(commands_folder, project or commands_folder.folder):
            naming_folder = (
                commands_folder.folder.parent if commands_folder.folder.match(PROMPTS) else commands_folder.folder
            )
            parts = path.relative_to(naming_folder).with_suffix("").parts
            name = ":".join(re.sub(r"[^\w.-]+", "-", part) for part in parts)
            if path.suffix.lower() != ".md" or name in commands or len(commands) >= MOST_COMMANDS:
                continue
            try:
                markdown_file = read_markdown(path, commands_folder.top)
            except OSError:
                continue
            first_line = next((line.strip(" #") for line in markdown_file.body.split("\n") if line.strip(" #")), "")
            keys = ("argument-hint", "model", "mode", "allowed-tools")
            hint, model, mode, allowed_tools = (markdown_file.values.get(key, "") for key in keys)
            description = shorten(markdown_file.values.get("description") or first_line, SHOWN)
            commands[name] = CustomCommand(
                name, path, commands_folder.own, description, hint, model, mode, allowed_tools, markdown_file.body
            )
    return sorted(commands.values(), key=lambda command: command.name)


def fill_in(body: str, typed: str) -> str:
    """Fills in what was typed: `$ARGUMENTS` is all of it, `$1` to `$9` are its words, `$FILE` is the value of `FILE=…`
    among them. If the text contains none of these, the typed words are added at its end."""
    try:
        words = shlex.split(typed)
    except ValueError:
        words = typed.split()

    def value(match: re.Match[str]) -> str:
        number = int(match[1] or match[2] or 0)
        return typed if not number else words[number - 1] if number <= len(words) else ""

    text_by_name = {name: text for name, equals_sign, text in (word.partition("=") for word in words) if equals_sign}
    filled_body = NAMED.sub(lambda match: text_by_name.get(match[1], match[0]), ARGUMENT.sub(value, body))
    has_placeholders = ARGUMENT.search(body) or any(name in text_by_name for name in NAMED.findall(body))
    return f"{filled_body}\n\n{typed}" if typed and not has_placeholders else filled_body


def commands_in(text: str) -> list[str]:
    """Returns the shell commands whose output the text asks for, each once."""
    return list(dict.fromkeys(SHELL.findall(text)))


def put_outputs(text: str, outputs: dict[str, str]) -> str:
    return SHELL.sub(lambda match: outputs.get(match[1], ""), text)
