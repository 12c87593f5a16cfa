"""All file tools of a work folder."""

from duckflow.safety.workspace import Workspace
from duckflow.tools.files.delete_file import DeleteFile
from duckflow.tools.files.edit_file import EditFile
from duckflow.tools.files.file_tool import SeenFiles
from duckflow.tools.files.find_files import FindFiles
from duckflow.tools.files.grep import Grep
from duckflow.tools.files.list_files import ListFiles
from duckflow.tools.files.make_folder import MakeFolder
from duckflow.tools.files.move_file import MoveFile
from duckflow.tools.files.read_file import ReadFile
from duckflow.tools.files.settings import FileSettings
from duckflow.tools.files.write_file import WriteFile
from duckflow.tools.tool import AnyTool


def file_tools(workspace: Workspace, settings: FileSettings) -> list[AnyTool]:
    """They share what the model has seen."""
    seen = SeenFiles()
    kinds = (ListFiles, FindFiles, Grep, ReadFile, WriteFile, EditFile, MoveFile, DeleteFile, MakeFolder)
    return [kind(workspace, seen, settings) for kind in kinds]
