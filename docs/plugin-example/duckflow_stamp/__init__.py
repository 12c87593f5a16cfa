"""An example of a plugin: a tool that stamps a file, a command that lists stamped files, and a policy that looks on."""

from pathlib import Path
from types import MappingProxyType

from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import Session
from duckflow.commands.command import Command, CommandContext
from duckflow.errors import ToolError
from duckflow.state.data import say
from duckflow.state.question import FileImpact, Preview
from duckflow.tools.tool import Args, Done, Tool

STAMP = "# stamped\n"


class StampArgs(Args):
    path: str


class StampFile(Tool[StampArgs]):
    """Puts a line at the end of a file. It names the file it changes, so the Gate and undo know it."""

    operation = "stamp.file"
    effect = "write"
    told = MappingProxyType({"en": "put a stamp at the end of a file"})
    paths = ("path",)
    subject = ("path",)
    args = StampArgs

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def preview(self, args: StampArgs) -> Preview:
        self._file(args)
        return Preview(impacts=(FileImpact(path=args.path, change="edit", added=1),), diff=f"+{STAMP}")

    async def run(self, args: StampArgs) -> Done:
        file = self._file(args)
        file.write_text(file.read_text("utf-8") + STAMP, "utf-8")
        return Done(f"Stamped {args.path}.", say("talk.quoted", text=f"stamped {args.path}"), changed=(args.path,))

    def _file(self, args: StampArgs) -> Path:
        file = (self._folder / args.path).resolve()
        if not file.is_relative_to(self._folder.resolve()) or not file.is_file():
            raise ToolError(f"{args.path} is no file here. Name one of the work folder.")
        return file


def make_tools(folder: Path) -> list[StampFile]:
    return [StampFile(folder)]


def _list(context: CommandContext, rest: str) -> str:
    folder = Path(context.conversation.state.folder)
    stamped = [path.name for path in sorted(folder.iterdir()) if path.is_file() and STAMP in path.read_text("utf-8")]
    return ", ".join(stamped) or "-"


STAMPED = Command("stamped", _list, own_help=say("talk.quoted", text="list stamped files"))


class StampNote(Policy):
    """Counts the turns that have ended."""

    def __init__(self, session: Session) -> None:
        self.ended = 0

    async def closing(self, turn: TurnSoFar, ending: Ending) -> None:
        self.ended += 1
