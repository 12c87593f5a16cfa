"""Takes in the pictures of a conversation, keeps them with the session, and puts them into requests."""

import io
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import BinaryIO

from duckflow.agent.session import Session
from duckflow.errors import PicturesRefused, ToolError
from duckflow.llm.provider import Request
from duckflow.prompts.layers import without_pictures
from duckflow.state.picture import MB, MediaType, Picture, describe_picture, read_header
from duckflow.store.pictures import PictureStore

LARGEST = 3_750_000
"""Most bytes of a picture. In a request it takes a third more, and the strictest endpoints refuse more than 5 MB."""
WIDEST = 8000
SMALLER_SIDE = 2000
"""Most pixels on each side of a picture that was made smaller: no model looks at more pixels."""
LARGEST_FILE = 50 * MB
MOST_PIXELS = 50_000_000
"""Most pixels of a picture that is made smaller. All of them are unpacked for that, unless it is a JPEG picture."""
HEAD = 64 * 1024
"""The number of bytes at the beginning of a file that contain its type and dimensions."""
MOST_BYTES = 20 * MB
"""Most bytes of all pictures in one request, the newest first."""


class ConversationPictures:
    """Keeps the pictures of a conversation. A picture that an endpoint has refused is not sent again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = PictureStore(session.path)
        self._refused: set[str] = set()
        self._accepted: set[str] = set()

    def take(self, data: bytes, name: str) -> Picture:
        """Keeps a picture. Raises ToolError with the reason if no model could be shown such a picture."""
        header = read_header(data)
        if header is None:
            message = f"{name} is no PNG, JPEG, GIF or WebP picture: it is not shown."
            raise ToolError(message, "picture.not_one", name=name)
        if len(data) > LARGEST or max(header[1:]) > WIDEST:
            is_unpacked = header[0] != "image/jpeg" and header[1] * header[2] > MOST_PIXELS
            smaller_data = b"" if is_unpacked else _made_smaller(data)
            smaller_header = read_header(smaller_data)
            if smaller_header is None:
                raise _too_large(name, header, len(data))
            data, header = smaller_data, smaller_header
        media, width, height = header
        digest = self._store.keep(data)
        return Picture(digest=digest, name=name, media=media, size=len(data), width=width, height=height)

    def read(self, file: BinaryIO, name: str) -> bytes:
        """Returns the whole of a picture's file, and only the beginning of any other file."""
        file_start = file.read(HEAD)
        header, size = read_header(file_start), file.seek(0, io.SEEK_END)
        if header is None:
            return file_start
        if size > LARGEST_FILE:
            raise _too_large(name, header, size)
        file.seek(0)
        return file.read()

    @asynccontextmanager
    async def shown_in(self, request: Request) -> AsyncGenerator[Request]:
        """Yields the request with the bytes of its pictures. If the endpoint refuses the request, a picture that it
        accepted before is not taken for the cause."""
        whole_request = self._loaded(request)
        try:
            yield whole_request
        except PicturesRefused:
            self._refused |= whole_request.pictures.keys() - self._accepted
            raise
        self._accepted |= whole_request.pictures.keys()

    def _loaded(self, request: Request) -> Request:
        """Returns the request with the bytes of its pictures. A note replaces each picture that was refused, is gone,
        or is one too many."""
        pictures_by_digest = {picture.digest: picture for message in request.messages for picture in message.pictures}
        bytes_by_digest = dict(self._fitting(list(pictures_by_digest.values())[::-1]))
        left_out, language = pictures_by_digest.keys() - bytes_by_digest.keys(), self._session.state.language
        messages = tuple(without_pictures(message, language, "picture_gone", left_out) for message in request.messages)
        return request._replace(messages=messages, pictures=bytes_by_digest)

    def _fitting(self, newest_first: list[Picture]) -> Iterator[tuple[str, bytes]]:
        bytes_left = MOST_BYTES
        for picture in newest_first:
            bytes_left -= picture.size
            picture_bytes = b"" if bytes_left < 0 or picture.digest in self._refused else self._store.load(picture)
            if picture_bytes:
                yield picture.digest, picture_bytes


def _made_smaller(data: bytes) -> bytes:
    """Returns the picture scaled down to a size that models accept; empty if Pillow is missing or cannot read it."""
    if find_spec("PIL") is None:
        return b""
    from PIL import Image, ImageOps

    smaller_file = io.BytesIO()
    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.draft("RGB", (SMALLER_SIDE, SMALLER_SIDE))
            picture.thumbnail((SMALLER_SIDE, SMALLER_SIDE))
            upright_picture = ImageOps.exif_transpose(picture)
            upright_picture.save(smaller_file, "PNG" if picture.format != "JPEG" else "JPEG")
            if smaller_file.tell() > LARGEST:
                smaller_file = io.BytesIO()
                upright_picture.convert("RGB").save(smaller_file, "JPEG", quality=80)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return b""
    return smaller_file.getvalue()


def _too_large(name: str, header: tuple[MediaType, int, int], size: int) -> ToolError:
    description, limit = describe_picture(*header, size), f"{LARGEST / MB:.2f} MB"
    key = "picture.too_large" if find_spec("PIL") else "picture.not_made_smaller"
    message = f"{name} is too large to be shown ({description})."
    return ToolError(message, key, name=name, what=description, limit=limit, widest=WIDEST)
