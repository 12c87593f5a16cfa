"""Filters what tools return: secrets that the user was not asked about are hidden, and the user is told."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from duckflow.agent.actor import Actor
from duckflow.events.types import Noticed
from duckflow.i18n.template import note
from duckflow.safety.files import read_plain
from duckflow.safety.path_names import shown
from duckflow.safety.sandbox.repositories import repositories, settings_in
from duckflow.safety.secret_index import around, secret_index
from duckflow.safety.secrets import (
    Hide,
    KnownSecrets,
    Masked,
    known_secrets,
    login_values,
    mask,
    named_secrets,
    secret_name,
    secret_parts,
)
from duckflow.state.action import EDIT_FILE, Action, ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.data import say

MOST_READ = 1000
"""The largest number of secret files whose lines are remembered."""
MOST_LOGINS = 1000
"""The largest number of values from git's settings: every one of them is looked for in every result. Those of the work
folder's own repository come first."""
MOST_COMPARED = 10_000_000
"""The largest number of bytes of a file in which secrets are looked for after an edit of it has failed."""
PATHS = ("path", "source", "target")
COMPARING = ("edit.", "file.blots")
"""The beginnings of the keys of errors that depend on what stands in a file."""


class ResultFilter:
    """Hides secrets. It remembers the secret files of the work folder as they were at its last look and before, because
    a command may have copied or moved them."""

    def __init__(self, state: AgentState, added: Sequence[Path] = ()) -> None:
        """`added` are further folders with secret files."""
        self._state = state
        self._added = added
        self._known: KnownSecrets | None = None

    async def look(self) -> KnownSecrets:
        """Reads the secret files again. This is done before and after every command."""
        secrets = await asyncio.to_thread(self._read_secrets)
        self._known = secrets.joined(self._known) if self._known else secrets
        return self._known

    async def hider(self) -> Hide:
        """Returns a function that hides the secrets of today in a line of a file."""
        secrets = await self.look()
        known = KnownSecrets(values=secrets.values)
        return lambda line: _mask(line, known)

    def _read_secrets(self) -> KnownSecrets:
        secrets = KnownSecrets(values=secret_parts(named_secrets(os.environ).values()))
        for top_folder in (around(Path(self._state.folder)), *self._added):
            secrets = known_secrets(top_folder, secret_index(top_folder).look().paths[:MOST_READ]).joined(secrets)
        folders = dict.fromkeys((around(Path(self._state.folder)), Path(self._state.folder), *self._added))
        git_folders = (git_folder for folder in folders for git_folder in repositories(folder).git_folders)
        return KnownSecrets(values=_logins(settings_in(git_folders))).joined(secrets)

    async def hide(self, result: ActionResult, action: Action, actor: Actor) -> ActionResult:
        """Returns the result without secrets. Talk and plans stay as they are, since they are the model's own words. In
        a command's output every line of a secret file is hidden, since it may have printed the whole file. In other
        results only values that are clearly secret are hidden."""
        if result.effect in ("talk", "plan"):
            return result
        if result.effect == "run":
            return _hide(result, action, actor, self._state, await self.look())
        secrets = self._known or await self.look()
        # The settings that the call itself names may lie deeper, or have changed since the last look.
        paths = [Path(self._state.folder, str(action.args.get(name) or "")) for name in PATHS]
        named_logins = await asyncio.to_thread(lambda: _logins(place for path in paths for place in _settings_at(path)))
        known = KnownSecrets(values=secrets.values).joined(KnownSecrets(values=named_logins))
        if action.operation == EDIT_FILE and not result.ok:
            return await asyncio.to_thread(_without_guesses, result, action, actor, self._state, known)
        return _hide(result, action, actor, self._state, known)


def _settings_at(path: Path) -> list[Path]:
    """Returns git's settings that a call reads by naming them, or the git folder that they lie in."""
    real_path = Path(os.path.realpath(path))
    return [real_path] if real_path.name.startswith("config") else settings_in((real_path, real_path / ".git"))


def _logins(settings: Iterable[Path]) -> tuple[str, ...]:
    return tuple(islice((value for path in settings for value in login_values(path)), MOST_LOGINS))


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
    masked = _mask(result.for_model, known)
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
    is_secret = bool(_secret_path(action.args, folder)) or _mask(_text_at(folder / path), known).hidden > 0
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
        name: (text if value == result.for_model else _mask(value, known).text) if isinstance(value, str) else value
        for name, value in result.for_user.values.items()
    }
    phrase = result.for_user.model_copy(update={"values": values})
    return result.model_copy(update={"for_model": text, "for_user": phrase})


def _mask(text: str, known: KnownSecrets) -> Masked:
    return mask(text, known.lines, known.values)


def _secret_path(args: Mapping[str, Any], folder: Path) -> str:
    """Returns the first path of a call that leads to a secret, by its name or by a link."""
    for name in PATHS:
        path = str(args.get(name) or "")
        if path and (secret_name(path) or secret_name(_real(path, folder))):
            return path
    return ""


def _real(path: str, folder: Path) -> str:
    try:
        return os.path.relpath(os.path.realpath(folder / path), os.path.realpath(folder))
    except (OSError, ValueError):
        return path
