"""Kinds of agents: Duckflow's own, and those that users write as Markdown files."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from duckflow.extensions.front_matter import read_markdown
from duckflow.extensions.places import AGENT_PLACES, ExtensionFolder, files_in, places_in
from duckflow.state.action import Operation
from duckflow.state.changes import FINDING
from duckflow.state.data import shorten

MOST_KINDS = 50
TOLD_KINDS = 20
TOLD, SHOWN = 80, 300
SAME_MODEL = ("", "inherit", "sonnet", "opus", "haiku")
"""Names of models in other assistants' files that choose no model here: agents then use the conversation's model."""
READING = ("read", "network")


class AgentKind(NamedTuple):
    """The tools and the instructions of agents of this kind. `own` means that the kind is the user's own, and was not
    brought by the folder."""

    name: str
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    """Tools by any of their names; empty means all."""
    model: str = ""
    own: bool = True
    only_reads: bool = False
    path: Path | None = None

    def uses(self, operation: Operation) -> bool:
        """Says whether agents of this kind may use an operation. No agent may store lessons. A kind that only reads may
        run commands, but its commands cannot change anything."""
        if operation.effect == "memory" or (operation.name == FINDING and self.name != REVIEW):
            return False
        if operation.effect == "talk":
            return True
        if self.only_reads and operation.effect not in (*READING, "run"):
            return False
        return not self.tools or any(name.casefold() in self.tools for name in operation.names)


REVIEW = "review"
PACKAGED = {
    "explore": AgentKind("explore", only_reads=True),
    "work": AgentKind("work"),
    REVIEW: AgentKind(REVIEW, only_reads=True),
}


def find_kinds(home: Path | None, project: Path | None) -> list[AgentKind]:
    """Returns the kinds by name. The user's own kinds take precedence over the project's, and Duckflow's over both."""
    kind_by_name: dict[str, AgentKind] = {}
    for kinds_folder in places_in(home, project, AGENT_PLACES):
        for path in files_in(kinds_folder, project or kinds_folder.folder):
            if path.suffix.lower() != ".md" or len(kind_by_name) >= MOST_KINDS:
                continue
            kind = _read(path, kinds_folder)
            if kind and kind.name not in PACKAGED:
                kind_by_name.setdefault(kind.name, kind)
    return sorted(kind_by_name.values(), key=lambda kind: kind.name)


def listed_kinds(kinds: Iterable[AgentKind]) -> str:
    """Lists the kinds for the model. The text follows the list of Duckflow's own kinds."""
    return "".join(f"; {kind.name} ({shorten(kind.description, TOLD)})" for kind in list(kinds)[:TOLD_KINDS])


def _read(path: Path, place: ExtensionFolder) -> AgentKind | None:
    try:
        markdown_file = read_markdown(path, place.top)
    except OSError:
        return None
    name = re.sub(r"[^\w.-]+", "-", (markdown_file.values.get("name") or path.stem).strip().lower()).strip("-")[:40]
    if not name or not markdown_file.body.strip():
        return None
    # `Bash(git:*)` counts as Bash: the Gate decides what a command may do.
    tools = re.sub(r"\([^)]*\)", "", markdown_file.values.get("tools", "")).strip("[]")
    tool_names = tuple(tool.strip(" \"'").casefold() for tool in tools.split(",") if tool.strip(" \"'"))
    model = markdown_file.values.get("model", "").strip()
    return AgentKind(
        name,
        shorten(markdown_file.values.get("description", "") or markdown_file.body, SHOWN),
        markdown_file.body,
        () if "*" in tool_names else tool_names,
        "" if model.casefold() in SAME_MODEL else model,
        place.own,
        path=path,
    )
