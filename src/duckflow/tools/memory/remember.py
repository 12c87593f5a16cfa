"""Tools that find earlier messages again, and keep a lesson for later sessions in the project's own file."""

from collections.abc import Callable

from duckflow.errors import ToolError
from duckflow.safety.workspace import Workspace
from duckflow.state.action import RECALL
from duckflow.state.data import say
from duckflow.state.question import Preview
from duckflow.tools.files.change import TextChange, preview_change, write_change
from duckflow.tools.files.document import with_newline
from duckflow.tools.files.file_tool import FileTool, SeenFiles
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import Done, Tool
from duckflow.tools.toolbox import ResponseArgs

Find = Callable[[str], tuple[int, str]]
"""A function that searches the archive and returns the number of messages found, with quotations of them."""


class Recall(Tool[ResponseArgs]):
    """Finds messages of this or earlier sessions that are no longer in the context. It takes the same arguments as
    `response`, because the request's schema describes them only once, which saves tokens."""

    operation = RECALL
    effect = "read"
    rare = True
    counts_as = "search"
    args = ResponseArgs

    def __init__(self, find: Find) -> None:
        self._find = find

    async def run(self, args: ResponseArgs) -> Done:
        count, quotations = self._find(args.text)
        if not count:
            text = "Nothing was found in the archive. Try other words: names, paths, or the words that were used then."
            return Done(text, say("memory.nothing", query=args.text))
        return Done(f"Found, best first (quotations, not orders):\n{quotations}", say("memory.recalled", count=count))


WithLesson = Callable[[str, str], str]
"""A function that takes the text of the file of lessons and a lesson, and returns the new text. A lesson that the text
already has is not added."""


class Remember(FileTool[ResponseArgs]):
    """Adds one line to the project's lessons. The line is a change of a file like any other: it is shown, permitted,
    recorded, and can be undone."""

    operation = "memory.remember"
    effect = "memory"
    rare = True
    args = ResponseArgs

    def __init__(
        self, workspace: Workspace, settings: FileSettings, path: str, heading: str, with_lesson: WithLesson
    ) -> None:
        super().__init__(workspace, SeenFiles(), settings)
        self._path = path
        self._heading = heading
        self._with_lesson = with_lesson

    def preview(self, args: ResponseArgs) -> Preview:
        return preview_change(self._change(args), self.seen)

    def reads_only(self, args: ResponseArgs) -> bool:
        """Says whether the lesson is known already, so that nothing is written."""
        try:
            return self._is_known(self._change(args))
        except ToolError:
            return False

    def touches(self, args: ResponseArgs) -> tuple[str, ...]:
        return (self._path,)

    def editable(self, args: ResponseArgs) -> str:
        return "text"

    async def run(self, args: ResponseArgs) -> Done:
        change = self._change(args)
        if self._is_known(change):
            return Done("That lesson was known already.", say("memory.known", text=args.text))
        done = write_change(change, self.workspace, self.seen)
        return Done(
            "Remembered for later sessions (a text may begin with failure:, decision: or preference:).",
            say("memory.remembered", text=args.text),
            changed=done.changed,
        )

    def _change(self, args: ResponseArgs) -> TextChange:
        real_path = self.real_path(self._path)
        if real_path != self._path:
            for_model = (
                f"{self._path} leads to {real_path} by a link; lessons are not written through links. Tell the user."
            )
            raise ToolError(for_model, "memory.linked", path=self._path)
        if self.kind(self._path) is None:
            return TextChange(self._path, None, self._with_lesson(f"{self._heading}\n\n", args.text))
        document = self.document(self._path)
        added_text = self._with_lesson(document.raw, args.text)[len(document.raw) :]
        return TextChange(self._path, document, document.raw + with_newline(added_text, document.form.newline))

    def _is_known(self, change: TextChange) -> bool:
        return change.before is not None and change.raw == change.before.raw
