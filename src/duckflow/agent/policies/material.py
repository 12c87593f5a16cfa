"""Quotes the material that the user gives with a message: `@file` mentions, pictures, and text that was piped in."""

import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from duckflow.agent.pictures import ConversationPictures
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import CODE, Session
from duckflow.errors import ToolError
from duckflow.events.types import MessageAdded, Noticed
from duckflow.i18n.template import note
from duckflow.i18n.words import contains
from duckflow.safety.path_names import shown, shown_size
from duckflow.safety.secrets import mask, secret_name
from duckflow.safety.workspace import Workspace
from duckflow.state.action import LIST_FILES, READ_FILE
from duckflow.state.data import Phrase, said, say
from duckflow.state.message import Message
from duckflow.state.picture import Picture, describe_picture, looks_like_picture, read_header
from duckflow.state.profile import ModelProfile
from duckflow.tools.settings import FETCH
from duckflow.tools.toolbox import Toolbox

PDF_SECONDS, LONGEST_NAME = 20.0, 200
MENTION_BYTES = 16_000
"""Most bytes of a file that are quoted. Only the first lines of a longer file are quoted; the model can read on."""
MENTION = r'(?<![A-Za-z0-9_@./+-])[@＠](?:"([^"\n]{1,200})"|([^\s@＠"\'`<>|]+))'
PATH_END = r"[,;:!?)\]}。、！？」』）…]|\.(?=$|[,;:!?)\]}]|[^\x00-\x7f])|[^\x00-\x7f]"
"""A pattern for the characters that may follow directly after a path."""
FILE_LIKE = (
    r"[\w~./-]*\w\.(?:py|md|txt|json|toml|ya?ml|cfg|ini|csv|tsv|log|xml|html?|css|[jt]sx?|go|rs|java|kt|c|h|cpp|cc|cs|rb"
    r"|php|swift|sh|sql|lock|ipynb|png|jpe?g|gif|webp)"
)
ELSEWHERE = ("~/", "../")
MOST_MENTIONS = 10
LONGEST_MENTION = 200


class BringMaterial(Policy):
    """Quotes the files and texts that a message refers to. The quotations are in the conversation, like results of
    tools."""

    def __init__(
        self,
        session: Session,
        toolbox: Toolbox,
        workspace: Workspace,
        pictures: ConversationPictures,
        elsewhere: bool = True,
    ) -> None:
        """`elsewhere` means that a person types here, who may point at pictures outside of the work folder."""
        self._elsewhere = elsewhere
        self._session = session
        self._toolbox = toolbox
        self._workspace = workspace
        self._pictures = pictures
        self._profile: Callable[[], Awaitable[ModelProfile]] | None = None
        self._came = False
        """True if a picture has come since `_blind` was last called."""

    async def opening(self, turn: TurnSoFar) -> Ending | None:
        """Quotes the material of a message. If a picture is part of it and the model cannot see pictures, the turn is
        over, because the model would make up its answer. The pictures stay in the conversation, for another model."""
        for attachment in turn.attachments:
            if attachment.data:
                await self._open(_decoded(attachment.data), shown(attachment.name)[:LONGEST_NAME])
            else:
                self._quote(attachment.name, attachment.text.rstrip("\n"))
        if self._profile is None:
            self._offer_fetching("\n".join(message.text for message in turn.state.messages if message.role == "user"))
        self._profile = turn.profile
        await self._bring(turn.request, turn.wish)
        return Ending("usage", objection) if (objection := await self._blind()) else None

    async def heard(self, message: str) -> None:
        """Quotes the material of a message that comes during a turn. The turn goes on, even if the model cannot see a
        picture."""
        await self._bring(message, message)
        if objection := await self._blind():
            self._session.emit(Noticed(what=objection))

    async def _blind(self) -> Phrase | None:
        """Returns the message for the user if a picture has just come and the model cannot see pictures."""
        picture_came, self._came = self._came, False
        if not picture_came or self._profile is None or (profile := await self._profile()).images:
            return None
        return say("model.blind", model=profile.name)

    async def _bring(self, message: str, typed: str) -> None:
        """Quotes the files that the message mentions. A file, a program or a server may have written a part of the
        message, so only words that the user has `typed` can point to files outside of the work folder."""
        self._offer_fetching(message)
        if "@" not in message and "＠" not in message:
            return
        typed_mentions = mentions(typed) if self._elsewhere else []
        for mention in mentions(message):
            await self._bring_file(mention, mention in typed_mentions)

    def _offer_fetching(self, message: str) -> None:
        """Offers the tool for web pages once the user mentions the web. A result that mentions the web does not count,
        because an endpoint reads the whole request anew whenever the offered tools change."""
        if contains("requests.web", message, self._session.state.language):
            self._toolbox.tell(FETCH)

    async def _bring_file(self, mention: "Mention", is_typed: bool) -> None:
        if definition := next((definition for path in mention.paths if (definition := self._definition(path))), None):
            await self._bring_lines(*definition)
            return
        path = next((path for path in mention.paths if self._exists(path)), mention.file_like)
        if not path or looks_like_picture(path):
            self._bring_picture(mention, path, is_typed)
            return
        if secret_name(path) or secret_name(self._real(path)):
            warning = note(self._session.state.language, "mention_secret", path=path)
            self._tell(warning, say("mention.secret", path=path))
            return
        await self._bring_lines(path, path, {})

    def _definition(self, mentioned: str) -> "tuple[str, str, dict[str, int]] | None":
        """Returns the place of a mention such as `file:Class.method`: the file, the mention itself, and the lines."""
        path, colon, name = mentioned.rpartition(":")
        if not colon or not name or not self._exists(path) or secret_name(path) or secret_name(self._real(path)):
            return None
        from duckflow.code.store import source_text
        from duckflow.code.syntax import available, symbols_in

        symbols = symbols_in(source_text(self._workspace, path), path) if available() else []
        symbol_found = next((symbol for symbol in symbols if symbol.qualified == name), None)
        return (
            (path, mentioned, {"start_line": symbol_found.start, "end_line": symbol_found.end})
            if symbol_found
            else None
        )

    async def _bring_lines(self, path: str, mentioned: str, lines: dict[str, int]) -> None:
        try:
            self._attach(mentioned, await self._read(path, lines))
        except ToolError as problem:
            self._fail(path, problem)

    def _attach(self, name: str, result: str) -> None:
        """Quotes a result in the conversation. Its first line describes the lines that follow."""
        text, hidden_count = mask(result)
        if hidden_count:
            text += "\n" + note(self._session.state.language, "secrets_masked", count=str(hidden_count))
            self._session.emit(Noticed(what=say("secret.hidden", operation=f"@{name}", count=hidden_count)))
        self._quote(f"@{name}", text)
        self._session.emit(Noticed(what=say("mention.attached", path=name, lines=text.rstrip().count("\n"))))

    def _bring_picture(self, mention: "Mention", inside: str, is_typed: bool) -> None:
        """Shows a picture in the work folder, or elsewhere if the user points there. Outside of the work folder nothing
        but pictures is read."""
        if inside and self._exists(inside):
            return self._show_from(lambda: self._workspace.open(inside), inside)
        picture_paths = [path for path in mention.paths if looks_like_picture(path)]
        outside_paths = (path for path in picture_paths if is_typed and Path(path).expanduser().is_file())
        if outside_path := next(outside_paths, ""):
            return self._show_from(lambda: Path(outside_path).expanduser().open("rb"), outside_path)
        if picture_paths:
            self._fail(
                picture_paths[0], ToolError(f"{picture_paths[0]} is not there.", "file.missing", path=picture_paths[0])
            )
        return None

    def _show_from(self, opened: Callable[[], BinaryIO], name: str) -> None:
        """Shows a picture that the user points at, wherever it lies."""
        try:
            with opened() as open_file:
                self._show(self._pictures.read(open_file, name), name)
        except OSError as problem:
            message = f"{name} cannot be read: {problem.strerror}"
            self._fail(name, ToolError(message, "picture.unreadable", name=name, reason=problem.strerror or ""))
        except ToolError as problem:
            self._fail(name, problem)

    async def _open(self, data: bytes, name: str) -> None:
        """Quotes a file that came with the message: a picture is shown, and the text of a document is quoted. For any
        other file, the model is only told what kind of file it is."""
        try:
            if read_header(data) or looks_like_picture(name):
                self._show(data, name)
            else:
                self._attach(name, f"{name}\n{await _text(data, name)}")
        except ToolError as problem:
            self._fail(name, problem)

    def _show(self, data: bytes, name: str) -> None:
        try:
            picture = self._pictures.take(data, name)
        except ToolError as problem:
            self._fail(name, problem)
            return
        self._came = True
        description, header = picture.describe(), read_header(data)
        self._quote(f"@{name}", f"picture {name}: {description}", picture)
        if header and picture.size != len(data):
            original = describe_picture(*header, len(data))
            self._session.emit(Noticed(what=say("picture.made_smaller", name=name, what=description, before=original)))
        else:
            self._session.emit(Noticed(what=say("picture.attached", name=name, what=description)))

    async def _read(self, path: str, part: dict[str, int]) -> str:
        """Reads the file with the tool that the model itself uses for reading, so that the model counts as having seen
        this file or this part of it."""
        folder = self._exists(path) and self._workspace.stat(path).kind == "folder"
        lines = 0 if folder else self._lines(path)
        tool = self._toolbox.find(LIST_FILES if folder else READ_FILE)
        arguments = {"path": path, **part} if folder or part or not lines else {"path": path, "end_line": lines}
        return (await tool.run(self._toolbox.arguments(tool, arguments))).for_model

    def _lines(self, path: str) -> int:
        """Returns how many lines of a long file are quoted; 0 means all."""
        try:
            with self._workspace.open(path) as open_file:
                file_start = open_file.read(MENTION_BYTES + 1)
        except (OSError, ToolError):
            return 0
        return max(1, file_start.count(b"\n")) if len(file_start) > MENTION_BYTES else 0

    def _real(self, path: str) -> str:
        try:
            return self._workspace.relative(path)
        except (OSError, ToolError):
            return path

    def _exists(self, path: str) -> bool:
        try:
            self._workspace.stat(path)
        except (OSError, ToolError):
            return False
        return True

    def _quote(self, source: str, text: str, *pictures: Picture) -> None:
        turn = self._session.state.turn
        message = Message(role="tool", operation=source, text=text, turn=turn, pictures=pictures)
        self._session.emit(MessageAdded(message=message))

    def _fail(self, path: str, problem: ToolError) -> None:
        self._tell(f"@{path}: {problem.for_model}", said(problem))

    def _tell(self, for_model: str, for_user: Phrase) -> None:
        turn = self._session.state.turn
        self._session.emit(MessageAdded(message=Message(role="system", text=for_model, turn=turn)))
        self._session.emit(Noticed(what=for_user))


async def _text(data: bytes, name: str) -> str:
    from duckflow.tools.files.document import decode, kind_of_bytes, to_lf
    from duckflow.tools.web.pdf import read_pdf

    if data.startswith(b"%PDF"):
        return await read_pdf(data, PDF_SECONDS)
    if document := decode(data):
        return to_lf(document.text)
    size = shown_size(len(data))
    message = f"{name} is a {kind_of_bytes(data)} ({size}) and not added; a command can open a copy in the work folder."
    raise ToolError(message, "mention.binary", path=name, size=size)


def _decoded(data: str) -> bytes:
    """Decodes base64. Anything else counts as an empty file."""
    import base64
    import binascii

    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError):
        return b""


class Mention(NamedTuple):
    """A mention: the paths that an `@` in a message may mean, the longest first."""

    paths: tuple[str, ...]

    @property
    def file_like(self) -> str:
        """Returns the first of the paths that looks like a file. It is used if none of the paths exists. Decorators and
        names of people do not look like files."""
        return next((path for path in self.paths if re.fullmatch(FILE_LIKE, path) or path.startswith(ELSEWHERE)), "")


def mentions(text: str) -> list[Mention]:
    """Returns the mentions in the order of the text. Mail addresses and decorators are not mentions, and text that is
    marked as code has none."""
    distinct_mentions = dict.fromkeys(_found(re.sub(CODE, lambda code: " " * len(code[0]), text)))
    return list(distinct_mentions)[:MOST_MENTIONS]


def _found(text: str) -> Iterator[Mention]:
    for match in re.finditer(MENTION, text):
        quoted_path, unquoted = match[1], match[2]
        yield Mention((quoted_path,)) if quoted_path else Mention(tuple(_paths(unquoted[:LONGEST_MENTION])))


def _paths(token: str) -> Iterator[str]:
    """Yields the whole word after an `@`, then shorter beginnings of it. Any of them may be the path, since not every
    language separates words by spaces."""
    yield token
    path_end = re.compile(PATH_END)
    for length in range(len(token) - 1, 0, -1):
        if path_end.match(token, length):
            yield token[:length]
