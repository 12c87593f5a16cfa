"""Filters what tools return: secrets that the user was not asked about are hidden, and the user is told."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from duckflow.agent.actor import Actor
from duckflow.agent.session_secrets import SessionSecrets, hide_in, logins_in
from duckflow.events.types import Noticed
from duckflow.i18n.template import note
from duckflow.safety.files import read_plain
from duckflow.safety.path_names import shown
from duckflow.safety.sandbox.repositories import settings_in
from duckflow.safety.secret_diffs import leads_to_secret
from duckflow.safety.secrets import KnownSecrets, mask
from duckflow.state.action import EDIT_FILE, Action, ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.data import say

MOST_COMPARED = 10_000_000
"""The largest number of bytes of a file in which secrets are looked for after an edit of it has failed."""
PATHS = ("path", "source", "target")
COMPARING = ("edit.", "file.blots")
"""The beginnings of the keys of errors that depend on what stands in a file."""


class ResultFilter:
    """Hides secrets in results, before they are recorded anywhere. Whatever else goes to a model is filtered as a part
    of its request (`request_filter.py`)."""

    def __init__(self, state: AgentState, secrets: SessionSecrets) -> None:
        self._state = state
        self._secrets = secrets

    async def before_command(self) -> None:
        """Looks at the secret files as they are, before a command may change, copy or move them."""
        await self._secrets.look()

    async def hide(self, result: ActionResult, action: Action | None, actor: Actor) -> ActionResult:
        """Returns the result without secrets; without an `action` the user lets the model see the whole result. Talk
        and plans stay as they are, since they are the model's own words. In a command's output every line of a secret
        file is hidden, since it may have printed the whole file. In other results only values that are clearly secret
        are hidden, and lines of secret files that were moved or copied."""
        if result.effect == "run" and result.changed:
            await self._secrets.follow(result.changed)
        if action is None or result.effect in ("talk", "plan"):
            return result
        if result.effect == "run":
            return _hide(result, action, actor, self._state, await self._secrets.look())
        secrets = self._secrets.in_any_text(await self._secrets.known())
        # The settings that the call itself names may lie deeper, or have changed since the last look.
        paths = [Path(self._state.folder, str(action.args.get(name) or "")) for name in PATHS]
        settings = await asyncio.to_thread(lambda: [place for path in paths for place in _settings_at(path)])
        known = secrets.joined(KnownSecrets(values=await asyncio.to_thread(logins_in, settings)))
        if action.operation == EDIT_FILE and not result.ok:
            return await asyncio.to_thread(_without_guesses, result, action, actor, self._state, known)
        return _hide(result, action, actor, self._state, known)


def _settings_at(path: Path) -> list[Path]:
    """Returns git's settings that a call reads by naming them, or the git folder that they lie in."""
    real_path = Path(os.path.realpath(path))
    return [real_path] if real_path.name.startswith("config") else settings_in((real_path, real_path / ".git"))


def _hide(result: ActionResult, action: Action, actor: Actor, state: AgentState, known: KnownSecrets) -> ActionResult:
    """Returns the result without the known secrets. An error about a secret file loses what it quotes from the file."""
    folder = Path(state.folder)
    if not result.ok and (path := _secret_path(action.args, folder)):
        text, _, quoted_lines = result.for_model.partition("\n")
        if quoted_lines:
            text += f"\n{note(state.language, 'secret_withheld', path=path)}"
            actor.emit(
                Noticed(what=say("secret.hidden", operation=result.operation, count=quoted_lines.count("\n") + 1))
            )
        return _with_text(result, mask(text).text, known)
    masked = hide_in(result.for_model, known)
    text = masked.text
    if masked.hidden:
        text += f"\n{note(state.language, 'secrets_masked', count=str(masked.hidden))}"
        actor.emit(Noticed(what=say("secret.hidden", operation=result.operation, count=masked.hidden)))
    return _with_text(result, text, known)


def _without_guesses(
    result: ActionResult, action: Action, actor: Actor, state: AgentState, known: KnownSecrets
) -> ActionResult:
    """Returns the result of an edit that failed. If the file holds a secret, the result does not say which of the edits
    fit: otherwise the secret could be guessed piece by piece."""
    folder, path = Path(state.folder), str(action.args.get("path") or "")
    compares_texts = result.for_user.key.startswith(COMPARING)
    is_secret = bool(_secret_path(action.args, folder)) or hide_in(_text_at(folder / path), known).hidden > 0
    if not (compares_texts and is_secret):
        return _hide(result, action, actor, state, known)
    actor.emit(Noticed(what=say("secret.hidden", operation=result.operation, count=1)))
    for_model = note(state.language, "secret_withheld", path=shown(path))
    return result.model_copy(update={"for_model": for_model, "for_user": say("edit.not_found")})


def _text_at(path: Path) -> str:
    try:
        return read_plain(path, MOST_COMPARED, cut=True).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _with_text(result: ActionResult, text: str, known: KnownSecrets) -> ActionResult:
    """Returns the result with another text. The phrase of an error repeats the result's text, so it changes too."""
    values = {
        name: (text if value == result.for_model else hide_in(value, known).text) if isinstance(value, str) else value
        for name, value in result.for_user.values.items()
    }
    phrase = result.for_user.model_copy(update={"values": values})
    return result.model_copy(update={"for_model": text, "for_user": phrase})


def _secret_path(args: Mapping[str, Any], folder: Path) -> str:
    """Returns the first path of a call that leads to a secret, by its name or by a link."""
    for name in PATHS:
        path = str(args.get(name) or "")
        if path and leads_to_secret(path, folder):
            return path
    return ""
