"""Acts like the dispatcher: checks the arguments, previews a change, then runs it."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.cli.toolset import file_tools
from duckflow.errors import ToolError
from duckflow.safety.workspace import Workspace
from duckflow.state.question import Preview
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import Done
from duckflow.tools.toolbox import Toolbox


class Hands:
    """All file tools over one real folder."""

    def __init__(self, folder: Path, settings: FileSettings) -> None:
        self.folder = folder
        workspace = Workspace(folder)
        tools = file_tools(workspace, settings)
        self._toolbox = Toolbox([tool.describe() for tool in tools], lambda _: tools)

    async def do(self, name: str, **args: Any) -> Done:
        tool = self._toolbox.find(f"file_ops.{name}")
        checked = self._toolbox.arguments(tool, args)
        if tool.changes:
            tool.preview(checked)
        return await tool.run(checked)

    async def run_only(self, name: str, **args: Any) -> Done:
        """Runs a call without a new preview, as after the user's yes."""
        tool = self._toolbox.find(f"file_ops.{name}")
        return await tool.run(self._toolbox.arguments(tool, args))

    def preview(self, name: str, **args: Any) -> Preview:
        tool = self._toolbox.find(f"file_ops.{name}")
        return tool.preview(self._toolbox.arguments(tool, args))

    async def told(self, name: str, **args: Any) -> str:
        """Returns the text that the model gets."""
        return (await self.do(name, **args)).for_model

    async def refused(self, name: str, **args: Any) -> ToolError:
        """Returns the error that a call ends with; any other end fails the test."""
        with pytest.raises(ToolError) as refused:
            await self.do(name, **args)
        return refused.value

    def put(self, path: str, content: str | bytes) -> Path:
        """Makes a file as someone other than the tools would."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def bytes_of(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()
