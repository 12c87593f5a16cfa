"""`duckflow doctor`: what is set up, what is not, and how to fix it."""

import asyncio
import locale
import os
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from duckflow.cli.arguments import Options
from duckflow.config.load import Loaded, load
from duckflow.config.settings import Settings
from duckflow.errors import DuckflowError
from duckflow.llm.choice import Choice
from duckflow.llm.connect import Places, connect
from duckflow.llm.discover import discover
from duckflow.llm.local.weights import Weights
from duckflow.llm.provider import Finished, PromptMessage, Request
from duckflow.state.phrase import Phrase, said, say
from duckflow.store.paths import Paths
from duckflow.ui.i18n.words import Words, language_of
from duckflow.ui.plain import plain
from duckflow.ui.streams import print_out

GIB = 1024**3
LITTLE_SPACE = 1 * GIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; a problem comes with its fix. What one can do without is no problem."""

    good: bool
    what: Phrase
    fix: Phrase | None = None
    optional: bool = False

    @property
    def mark(self) -> str:
        return "✓" if self.good else "–" if self.optional else "✗"


def doctor(options: Options, words: Words, paths: Paths) -> int:
    """Exit code 0 when a conversation would work, 1 when it would not."""
    loaded = load(paths.user_config, Path.cwd(), {"language": options.lang})
    words.language = language_of(loaded.settings.language)
    findings = [
        *_config(loaded, paths),
        *asyncio.run(_model(options.model or "", loaded.settings, paths)),
        *_local(paths),
        _sandbox(loaded.settings, paths),
        *_programs(),
        *_surroundings(paths),
    ]
    for finding in findings:
        print_out(plain(f"{finding.mark} {words.phrase(finding.what)}"))
        if finding.fix:
            print_out(plain(f"    → {words.phrase(finding.fix)}"))
    return 0 if all(finding.good for finding in findings if finding.what.key.startswith("doctor.model")) else 1


def _config(loaded: Loaded, paths: Paths) -> list[Finding]:
    origins = [Finding(True, say("doctor.setting", name=name, origin=at)) for name, at in loaded.origins.items()]
    return origins or [Finding(True, say("doctor.defaults", path=str(paths.user_config)))]


async def _model(flag: str, settings: Settings, paths: Paths) -> list[Finding]:
    try:
        choice = await discover(flag, settings.llm, os.environ)
    except DuckflowError as problem:
        return [Finding(False, say("doctor.model_none"), said(problem))]
    found = [
        Finding(True, say("doctor.model", model=choice.name)),
        Finding(True, choice.why),
        *(Finding(True, note) for note in choice.notes),
    ]
    if choice.key_source:
        found.append(Finding(True, say("doctor.key", source=choice.key_source)))
    return [*found, await _answer(choice, settings, paths)]


async def _answer(choice: Choice, settings: Settings, paths: Paths) -> Finding:
    """Ask the model for one word; a script would be used up by that, so it is only opened."""
    places = Places(paths.models, paths.abilities, paths.local_log)
    try:
        provider = connect(choice, settings.llm, settings.local, places, os.environ)
        try:
            request = Request((PromptMessage("user", "Say: ok"),), max_tokens=16)
            async for chunk in provider.stream(request):
                if isinstance(chunk, Finished):
                    break
        finally:
            await provider.aclose()
    except DuckflowError as problem:
        return Finding(False, say("doctor.model_silent", model=choice.name), said(problem))
    return Finding(True, say("doctor.model_answers", model=choice.name))


def _local(paths: Paths) -> list[Finding]:
    runtime = find_spec("xllamacpp") is not None
    what = say("doctor.runtime" if runtime else "doctor.no_runtime")
    found = [Finding(runtime, what, None if runtime else say("fix.local"), optional=True)]
    found += [
        Finding(True, say("doctor.weights", name=holding.model.name, path=str(holding.path)))
        for holding in Weights(paths.models, os.environ).installed()
    ]
    if len(found) == 1:
        found.append(Finding(False, say("doctor.no_weights"), say("fix.weights"), optional=True))
    return found


def _sandbox(settings: Settings, paths: Paths) -> Finding:
    from duckflow.safety.sandbox.choose import choose

    sandbox = choose(settings.sandbox, Path.cwd(), private=[paths.data, paths.config])
    sandbox.close()
    return Finding(sandbox.kind != "none", sandbox.says)


def _programs() -> list[Finding]:
    found: list[Finding] = []
    for program in ("git", "rg"):
        path = shutil.which(program)
        what = say("doctor.program", program=program, path=path) if path else say("doctor.no_program", program=program)
        found.append(Finding(path is not None, what, None if path else say(f"fix.{program}"), optional=True))
    return found


def _surroundings(paths: Paths) -> list[Finding]:
    encoding = sys.stdout.encoding or locale.getpreferredencoding(False)
    unicode = encoding.lower().replace("-", "").startswith("utf")
    here = Path.cwd()
    writable = os.access(here, os.W_OK)
    nearest = next(folder for folder in (paths.data, *paths.data.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    return [
        Finding(unicode, say("doctor.encoding", encoding=encoding), None if unicode else say("fix.encoding")),
        Finding(sys.stdout.isatty(), say("doctor.terminal", term=os.environ.get("TERM", "?")), optional=True),
        Finding(writable, say("doctor.folder", folder=str(here)), None if writable else say("fix.folder")),
        Finding(
            free > LITTLE_SPACE,
            say("doctor.disk", gigabytes=round(free / GIB, 1)),
            None if free > LITTLE_SPACE else say("fix.disk"),
        ),
        Finding(True, say("doctor.data", path=str(paths.data), log=str(paths.log))),
    ]
