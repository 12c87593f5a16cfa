"""Writing a whole file. An existing file must have been read before, so that nothing unseen is lost."""

import re
from types import MappingProxyType
from typing import Any

from duckflow.errors import ToolError
from duckflow.safety.path_names import shown
from duckflow.safety.risk import Deed
from duckflow.safety.secrets import mask, secret_name
from duckflow.state.question import Preview
from duckflow.tools.files.change import TextChange, preview_change, write_change
from duckflow.tools.files.document import Document, with_newline
from duckflow.tools.files.file_tool import HOOK_PATH, FileTool
from duckflow.tools.tool import Args, Done

FENCE = re.compile(r"\s*(`{3,})([^`]*)$")
MARKDOWN = (".md", ".markdown", ".mdx")


def without_fence(content: str, path: str) -> str:
    """Returns the text inside the fence if the whole content is one fenced block, else the content. A Markdown file may
    really consist of one fence, so there only a fence that is marked as markdown is removed."""
    lines = content.strip().split("\n")
    first_fence = FENCE.match(lines[0])
    if not first_fence or len(lines) < 2 or not _closes_last(lines, first_fence[1]):
        return content
    if path.lower().endswith(MARKDOWN) and first_fence[2].strip().lower() not in ("markdown", "md", "mdx"):
        return content
    return "".join(line + "\n" for line in lines[1:-1])


def _closes_last(lines: list[str], opening: str) -> bool:
    """Says whether the fence that the first line opens is closed by the last line and not before. Fences inside it are
    opened and closed in between."""
    depth = 0
    for number, line in enumerate(lines):
        fence = FENCE.match(line.rstrip("\r"))
        if not fence or len(fence[1]) < len(opening):
            continue
        depth += 1 if fence[2].strip() or number == 0 else -1
        if depth == 0:
            return number == len(lines) - 1
    return False


class WriteArgs(Args):
    path: str
    content: str


class WriteFile(FileTool[WriteArgs]):
    """Makes a new file, or replaces the whole text of a file that the model has read."""

    operation = "file_ops.write_file"
    effect = "write"
    subject = ("path",)
    known_as = "Write"
    hook_args = MappingProxyType({"path": HOOK_PATH, "content": "content"})
    paths = ("path",)
    expects = "file"
    led = True
    led_in_tasks = True
    body = "content"
    args = WriteArgs

    def preview(self, args: WriteArgs) -> Preview:
        return preview_change(self._change(args), self.seen)

    def deed(self, args: WriteArgs, preview: Preview) -> Deed:
        """Returns the effects of the call. Writing the text that the file already has is no change to ask about."""
        deed = super().deed(args, preview)
        return deed if preview.impacts else deed._replace(effect="read")

    async def run(self, args: WriteArgs) -> Done:
        return write_change(self._change(args), self.workspace, self.seen)

    def standing(self, args: dict[str, Any]) -> str:
        """Returns the current text of the file, and notes that the model has seen it, so that the model may
        replace it."""
        try:
            path = self.real_path(str(args.get("path", "")))
            document = self.document(path) if self.kind(path) == "file" else None
        except (ToolError, OSError):
            return ""
        if document is None or not self._may_quote(document):
            return ""
        self.seen.saw(path, document.digest, range(1, len(document.lines) + 1), len(document.lines))
        return document.text

    def _change(self, args: WriteArgs) -> TextChange:
        path = self.real_path(args.path)
        content = without_fence(args.content, path)
        if self.kind(path) is None:
            return TextChange(path, None, content, whole=True)
        document = self.document(path)
        self._refuse_unseen(document)
        return TextChange(path, document, _in_form_of(document, content), whole=True)

    def _may_quote(self, document: Document) -> bool:
        """Says whether the text is short and holds no secret. The model gets secrets only if the user allows it at the
        Gate (the question before risky actions)."""
        has_secret = secret_name(document.path) or mask(document.text).hidden > 0
        return len(document.text) <= self.settings.quoted_text and not has_secret

    def _refuse_unseen(self, document: Document) -> None:
        if not document.raw:
            return
        seen_file, name = self.seen.of(document.path), shown(document.path)
        if seen_file is None:
            raise self._refusal(document, f"{name} exists and you have not read it.", "file.read_first")
        if seen_file.digest != document.digest:
            raise self._refusal(document, f"{name} changed since you read it.", "file.changed")
        if not seen_file.whole:
            raise self._refusal(document, f"You have read only a part of {name}.", "file.read_first")

    def _refusal(self, document: Document, why: str, key: str) -> ToolError:
        """Makes the error that refuses a write. It quotes the current text if that is short: then the model has seen
        the text and may try again immediately."""
        name, text = shown(document.path), document.text
        if not self._may_quote(document):
            way_out = "Read it first, or edit only a part of it."
        else:
            lines = document.lines
            self.seen.saw(document.path, document.digest, range(1, len(lines) + 1), len(lines))
            way_out = f"Its current text is:\n{text}\nIf it is really to be replaced, write it again."
        return ToolError(f"{why} Nothing was written. {way_out}", key, path=name)


def _in_form_of(document: Document, content: str) -> str:
    """Returns the content with the file's line ends. It ends with a newline if the file does."""
    text = with_newline(content.removeprefix("\ufeff"), document.form.newline)
    newline = document.form.newline
    if not document.raw or not text:
        return text
    if document.raw.endswith(("\n", "\r")):
        return text if text.endswith(newline) else text + newline
    return text.removesuffix(newline)
