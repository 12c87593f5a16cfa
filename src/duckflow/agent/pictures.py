"""The pictures of a conversation: taken in, kept with the session, and put into the requests that show them."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from duckflow.agent.session import Session
from duckflow.errors import PicturesRefused, ToolError
from duckflow.llm.provider import Request
from duckflow.prompts.layers import without_pictures
from duckflow.state.picture import Picture, read_header
from duckflow.store.pictures import PictureStore

MB = 1024 * 1024
LARGEST = 3_750_000
"""Bytes of a picture: in a request it takes a third more, and 5 MB is where the first endpoints refuse."""
WIDEST = 8000
MOST_BYTES = 20 * MB
"""Of all pictures in one request, the newest first."""


class ConversationPictures:
    """Whatever is refused once is not sent a second time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = PictureStore(session.path)
        self._refused: set[str] = set()
        self._accepted: set[str] = set()

    def take(self, data: bytes, name: str) -> Picture:
        """Keep a picture, or say why it cannot be one that models are shown."""
        header = read_header(data)
        if header is None:
            told = f"{name} is no PNG, JPEG, GIF or WebP picture: it is not shown."
            raise ToolError(told, "picture.not_one", name=name)
        media, width, height = header
        if len(data) > LARGEST or max(width, height) > WIDEST:
            limit, size = f"{LARGEST / MB:.1f}", f"{len(data) / MB:.1f}"
            told = f"{name} is too large to be shown ({width}×{height}, {size} MB)."
            raise ToolError(
                told, "picture.too_large", name=name, size=size, width=width, height=height, limit=limit, widest=WIDEST
            )
        digest = self._store.keep(data)
        return Picture(digest=digest, name=name, media=media, size=len(data), width=width, height=height)

    def read(self, path: Path) -> bytes:
        """What the user points at, wherever it lies; only pictures are read so."""
        try:
            with path.open("rb") as file:
                head = file.read(64 * 1024)
                return head + file.read(LARGEST) if read_header(head) else b""
        except OSError as problem:
            told = f"{path} cannot be read: {problem.strerror}"
            raise ToolError(told, "picture.unreadable", name=str(path), reason=problem.strerror or "") from None

    @asynccontextmanager
    async def shown_in(self, request: Request) -> AsyncGenerator[Request]:
        """The request with the bytes of its pictures. One that was taken before is not what is wrong."""
        whole = self._loaded(request)
        try:
            yield whole
        except PicturesRefused:
            self._refused |= whole.pictures.keys() - self._accepted
            raise
        self._accepted |= whole.pictures.keys()

    def _loaded(self, request: Request) -> Request:
        """With the bytes of its pictures; a note stands for those that are refused, gone, or too many."""
        wanted = {one.digest: one for message in request.messages for one in message.pictures}
        data = dict(self._fitting(list(wanted.values())[::-1]))
        left_out, language = wanted.keys() - data.keys(), self._session.state.language
        messages = tuple(without_pictures(one, language, "picture_gone", left_out) for one in request.messages)
        return request._replace(messages=messages, pictures=data)

    def _fitting(self, newest_first: list[Picture]) -> Iterator[tuple[str, bytes]]:
        room = MOST_BYTES
        for picture in newest_first:
            room -= picture.size
            data = b"" if room < 0 or picture.digest in self._refused else self._store.load(picture)
            if data:
                yield picture.digest, data
