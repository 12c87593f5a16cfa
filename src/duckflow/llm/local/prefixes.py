"""What the model has read, kept on disk: the first request of the next run begins where this one's prompt ended."""

import asyncio
import contextlib
import hashlib
from pathlib import Path

from duckflow.llm.provider import Request

SLOT = "/slots/0?action="
SECONDS = 30.0


class Prefixes:
    """A folder of slots of one server, by what stands first in the prompt. What cannot be kept or found again costs
    only the time to read it."""

    def __init__(self, folder: Path, about: str, most_bytes: int) -> None:
        """`about` names the model, its file and its context: a slot fits nothing else."""
        self._folder = folder
        self._about = about
        self._most = most_bytes

    def file_for(self, request: Request) -> Path:
        first = request.messages[0].text if request.messages else ""
        digest = hashlib.sha256(f"{self._about} {first}".encode()).hexdigest()
        return self._folder / f"{digest[:24]}.slot"

    async def restore(self, request: Request, url: str, key: str) -> bool:
        """Whether the server now has what was read before."""
        file = self.file_for(request)
        if not file.is_file():
            return False
        done = await self._ask("restore", file.name, url, key)
        with contextlib.suppress(OSError):
            # The oldest go first when there are too many; one that fits nothing any more goes at once.
            file.touch() if done else file.unlink()
        return done

    async def save(self, request: Request, url: str, key: str) -> None:
        file = self.file_for(request)
        if self._most and not file.exists():
            with contextlib.suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if await self._ask("save", file.name, url, key):
                await asyncio.to_thread(self._sweep)

    async def _ask(self, action: str, name: str, url: str, key: str) -> bool:
        import httpx

        headers = {"authorization": f"Bearer {key}"}
        try:
            async with httpx.AsyncClient(trust_env=False, verify=False, timeout=SECONDS) as client:
                address = url.removesuffix("/v1") + SLOT + action
                answer = await client.post(address, json={"filename": name}, headers=headers)
            return answer.is_success
        except httpx.HTTPError:
            return False

    def _sweep(self) -> None:
        with contextlib.suppress(OSError):
            slots = sorted(self._folder.glob("*.slot"), key=lambda slot: slot.stat().st_mtime, reverse=True)
            total = 0
            for slot in slots:
                slot.chmod(0o600)
                total += slot.stat().st_size
                if total > self._most:
                    slot.unlink()
