"""Writes what init found out: the config, and an AGENTS.md to start from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from duckflow.cli.init.interview import InitAnswers, interview
from duckflow.cli.init.survey import ProjectSurvey, survey
from duckflow.config.edit import read_text, set_value, write_text
from duckflow.config.load import read_toml
from duckflow.config.toml_text import write_value
from duckflow.errors import UsageError
from duckflow.events.ports import Ask
from duckflow.i18n.language import languages, read_piece
from duckflow.i18n.words import Words
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, Question
from duckflow.store.paths import Paths


def config_text(language: str, model: str, mode: str) -> str:
    """A config in which everything but the three answers is a comment."""
    known = ", ".join(map(write_value, languages()))
    wishes = {"language": write_value(language), "model": write_value(model), "mode": write_value(mode)}
    return Template(read_piece(language, "config.toml")).substitute(wishes, languages=known)


def agents_text(found: ProjectSurvey, words: Words) -> str:
    """A first AGENTS.md: what the folder tells, and room for what only people know."""
    lines = [f"# {found.name}", ""]
    if found.about:
        lines += [found.about, ""]
    if found.languages:
        told = ", ".join(words("init.language", name=name, files=files) for name, files in found.languages)
        lines += [words("init.languages", languages=told), ""]
    lines += [f"## {words('init.commands')}", ""]
    lines += [f"- {words(f'init.purpose.{purpose}')}: `{command}`" for purpose, command in found.commands]
    lines += [] if any(purpose == "test" for purpose, _ in found.commands) else [f"- {words('init.no_tests')}"]
    if found.folders:
        lines += ["", f"## {words('init.layout')}", ""]
        for name, files, language in found.folders:
            mostly = words("init.mostly", language=language) if language else ""
            lines.append(f"- `{name}/` {words('init.files', files=files)}{mostly}")
    lines += ["", f"## {words('init.rules')}", "", f"- {words('init.rules_hint')}", ""]
    return "\n".join(lines)


AGENTS_FILE = "AGENTS.md"
CHANGE = "change"


async def set_up(ask: Ask, given: Mapping[str, str | None], words: Words, paths: Paths, folder: Path) -> list[Phrase]:
    """What was written and what was left alone."""
    wishes = await interview(ask, given, words, paths)
    return [
        *wishes.told,
        await _config(ask, wishes, paths.user_config),
        await _agents(ask, words, folder),
        say("init.next"),
    ]


async def _config(ask: Ask, wishes: InitAnswers, path: Path) -> Phrase:
    if not path.exists():
        text = config_text(wishes.language, wishes.model, wishes.mode)
        for key, value in wishes.settings:
            text = set_value(text, key, value)
        write_text(path, text)
        return say("init.written", path=str(path))
    text = read_text(path)
    for key, value in _differing(wishes, path):
        text = set_value(text, key, value)
    if text == read_text(path):
        return say("init.same", path=str(path))
    if not await _yes(ask, say("init.ask.change_config", path=str(path))):
        return say("init.left", path=str(path))
    write_text(path, text)
    return say("init.changed", path=str(path))


async def _agents(ask: Ask, words: Words, folder: Path) -> Phrase:
    path = folder / AGENTS_FILE
    text = agents_text(survey(folder), words)
    aside = ""
    if path.exists() or path.is_symlink():
        if not await _yes(ask, say("init.ask.replace_agents")):
            return say("init.left", path=AGENTS_FILE)
        aside = _put_aside(path)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as problem:
        raise UsageError("config.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None
    return say("init.replaced", path=AGENTS_FILE, aside=aside) if aside else say("init.written", path=AGENTS_FILE)


def _differing(wishes: InitAnswers, path: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    layer = read_toml(path)
    wanted = (("language",), wishes.language), (("llm", "model"), wishes.model), (("safety", "mode"), wishes.mode)
    for key, value in (*wanted, *wishes.settings):
        place = layer
        for name in key[:-1]:
            place = place.get(name, {})
        if place.get(key[-1], "") != value:
            yield key, value


async def _yes(ask: Ask, title: Phrase) -> bool:
    """Keeping it is the first choice: whoever only presses Enter loses nothing."""
    choices = (Choice(key="keep", label=say("init.keep")), Choice(key=CHANGE, label=say("init.change")))
    return (await ask(Question(kind="choice", title=title, choices=choices))).choice == CHANGE


def _put_aside(path: Path) -> str:
    number = 0
    while True:
        aside = path.with_name(f"{path.name}.old{number or ''}")
        if not aside.exists():
            path.rename(aside)
            return aside.name
        number += 1
