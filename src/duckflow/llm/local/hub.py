"""The model hub's own file, over HTTP, resumed with Range."""

import re
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from duckflow.llm.local.catalogue import HubFile
from duckflow.llm.local.incoming import Incoming
from duckflow.llm.local.source import Meter, SourceUnavailable, Stage

if TYPE_CHECKING:
    import httpx

DEFAULT_ENDPOINT = "https://huggingface.co"
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
CHUNK = 256 * 1024
TRIES_AFTER_A_BREAK = 3
PAUSE_SECONDS = 0.5


class Hub:
    """Fetches one file of the hub."""

    stage: Stage = "hub"

    def __init__(self, file: HubFile, endpoint: str = DEFAULT_ENDPOINT) -> None:
        self._url = f"{endpoint.rstrip('/')}/{file.repository}/resolve/main/{file.file}"

    def fill(self, incoming: Incoming, meter: Meter) -> None:
        import httpx

        meter.show(incoming.size(), self.stage)
        with _client() as client:
            # A hub that does not answer at all is given up at once; one that broke off is asked again.
            tries = 1
            while (start := incoming.size()) < incoming.model.size:
                try:
                    self._stream(client, incoming, meter)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    tries = TRIES_AFTER_A_BREAK if incoming.size() > start else tries - 1
                    if tries <= 0:
                        raise SourceUnavailable(f"{type(error).__name__}: {error}") from error
                    time.sleep(PAUSE_SECONDS)

    def _stream(self, client: "httpx.Client", incoming: Incoming, meter: Meter) -> None:
        start, whole = incoming.size(), incoming.model.size
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with client.stream("GET", self._url, headers=headers) as response:
            if response.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                raise SourceUnavailable(f"HTTP {response.status_code}")
            begins, length = _extent(response.status_code, response.headers)
            if length not in (None, whole):
                raise SourceUnavailable(f"its file has {length} bytes, not {whole}")
            if begins > start:
                raise SourceUnavailable("it skipped a part of the file")
            incoming.cut(begins)
            done = begins
            with incoming.append() as file:
                for chunk in response.iter_raw(CHUNK):
                    done += len(chunk)
                    if done > whole:
                        raise SourceUnavailable(f"its file has more than {whole} bytes")
                    file.write(chunk)
                    meter.show(done, self.stage)
        if done <= start:
            raise SourceUnavailable("it sent nothing new")


def _client() -> "httpx.Client":
    import httpx

    try:
        return httpx.Client(timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS), follow_redirects=True)
    except (ImportError, ValueError, OSError) as error:
        # The user's proxy or certificate settings make no sense to httpx; the packages may still work.
        raise SourceUnavailable(f"{type(error).__name__}: {error}") from error


def _extent(status: int, headers: Mapping[str, str]) -> tuple[int, int | None]:
    """Where the body begins in the file, and how long the whole file is, if the reply says so."""
    if status == HTTPStatus.PARTIAL_CONTENT:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("content-range", "").strip())
        if found is None:
            raise SourceUnavailable("it does not say which part of the file it sends")
        return int(found[1]), None if found[2] == "*" else int(found[2])
    length = headers.get("content-length", "")
    return 0, int(length) if length.isdigit() else None
