"""Asks the questions of `duckflow init`, and writes the config and an AGENTS.md to start from."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.cli.init.own_model import LEAVE, OWN, OwnModelLeft, Setting, find_own_model, from_home, way_of
from duckflow.cli.init.survey import ProjectSurvey, survey
from duckflow.config.edit import read_text, set_value, write_text
from duckflow.config.load import read_toml
from duckflow.config.settings import Settings
from duckflow.config.toml_text import write_value
from duckflow.errors import DuckflowError, UsageError
from duckflow.events.ports import Ask
from duckflow.i18n.words import Words, facts_of, languages, read_piece
from duckflow.llm.endpoints import KEYED, KNOWN
from duckflow.llm.settings import DEFAULT_MODEL, LlmSettings
from duckflow.state.data import Phrase, quote, say
from duckflow.state.mode import OFFERED
from duckflow.state.question import Answer, Choice, Question
from duckflow.store.paths import Paths

MOST_MODELS = 5
BY_ITSELF = "auto"


class InterviewLeft(Exception):
    """The user has stopped answering the questions; nothing has been written."""


@dataclass(frozen=True, slots=True)
class InitAnswers:
    """The answers to the questions, and the mode if one is set."""

    language: str
    model: str
    mode: str
    settings: tuple[Setting, ...] = ()
    """Further settings that are needed to reach the model."""
    told: tuple[Phrase, ...] = ()
    """Notes on the result of trying the model."""
    unkept_key: str = ""
    """The variable for the key, if the key was typed and nothing here keeps it."""


async def interview(
    ask: Ask, flags: Mapping[str, str | None], words: Words, paths: Paths, tell: Callable[[Phrase], None]
) -> InitAnswers:
    """Asks for every answer that the flags do not give, in the language of the first answer. The first choice of each
    question is the present setting, or else the most common one. The mode is not asked for, since its names mean little
    before the first change."""
    user_settings = read_toml(paths.user_config) if paths.user_config.exists() else {}
    words.language = flags.get("language") or await _language(ask, words, bool(user_settings))
    mode = flags.get("mode") or user_settings.get("safety", {}).get("mode", "")
    answers = InitAnswers(words.language, flags.get("model") or "", mode)
    if "model" in flags:
        return answers
    return await _with_model(answers, ask, paths, user_settings.get("llm", {}).get("model", ""), tell)


async def _language(ask: Ask, words: Words, has_settings: bool) -> str:
    """Asks for the language, unless this machine speaks another one than English, which may only be a default."""
    if words.language != DEFAULT_LANGUAGE and not has_settings:
        return words.language
    codes = [words.language, *(code for code in languages() if code != words.language)]
    return (await _asked(ask, "language", _languages(codes))).choice


async def _with_model(
    answers: InitAnswers, ask: Ask, paths: Paths, current: str, tell: Callable[[Phrase], None]
) -> InitAnswers:
    names = dict.fromkeys((*filter(None, (current,)), BY_ITSELF, *models_at_hand()))
    labels = {BY_ITSELF: say("init.choice.model.auto")}
    choices = [Choice(key=name, label=labels.get(name) or say("init.choice.model", model=name)) for name in names]
    # Where there is nothing to choose from yet, Enter alone must not end without a model.
    has_model = bool(current) or await _finds("", paths)
    answer = await _asked(ask, "model", [*choices, *OWN] if has_model else [*OWN, *choices], takes_access=True)
    if not way_of(answer):
        return replace(answers, model="" if answer.choice == BY_ITSELF else answer.choice)
    try:
        own_model = await find_own_model(answer, ask, paths, tell)
    except OwnModelLeft:
        raise InterviewLeft from None
    return replace(
        answers,
        model=own_model.choice.name,
        settings=own_model.kept.settings,
        told=own_model.kept.notes,
        unkept_key=own_model.kept.variable,
    )


def _languages(codes: list[str]) -> list[Choice]:
    """Returns the languages as choices, each in the name that its speakers use."""
    return [Choice(key=code, label=quote(facts_of(code).name)) for code in codes]


async def _asked(ask: Ask, what: str, choices: list[Choice], takes_access: bool = False) -> Answer:
    leave_choice = Choice(key=LEAVE, label=say("init.leave"))
    title = say(f"init.ask.{what}")
    question = Question(kind="choice", title=title, choices=(*choices, leave_choice), takes_access=takes_access)
    answer = await ask(question)
    if answer.choice != "text" and answer.choice not in (choice.key for choice in choices):
        raise InterviewLeft
    return answer


def models_at_hand() -> list[str]:
    """Lists the models whose key is in the environment, and the local model."""
    keyed_models = [
        f"{endpoint.name}:{endpoint.model}"
        for endpoint in KNOWN
        if endpoint.name in KEYED and any(os.environ.get(name) for name in endpoint.key_names)
    ]
    return [*keyed_models[:MOST_MODELS], "local"]


def config_text(language: str, model: str, mode: str) -> str:
    """Writes a config in which everything but the three answers is a comment."""
    known_languages = ", ".join(map(write_value, languages()))
    template_values = {"language": write_value(language), "model": write_value(model), "mode": write_value(mode)}
    return Template(read_piece(language, "config.toml")).substitute(template_values, languages=known_languages)


def agents_text(project: ProjectSurvey, words: Words) -> str:
    """Writes a first AGENTS.md: facts found in the folder, and room for facts that only people know."""
    lines = [f"# {project.name}", ""]
    if project.about:
        lines += [project.about, ""]
    if project.languages:
        languages_text = ", ".join(words("init.language", name=name, files=files) for name, files in project.languages)
        lines += [words("init.languages", languages=languages_text), ""]
    lines += [f"## {words('init.commands')}", ""]
    lines += [f"- {words(f'init.purpose.{purpose}')}: `{command}`" for purpose, command in project.commands]
    lines += [] if any(purpose == "test" for purpose, _ in project.commands) else [f"- {words('init.no_tests')}"]
    if project.folders:
        lines += ["", f"## {words('init.layout')}", ""]
        for name, files, language in project.folders:
            main_language = words("init.mostly", language=language) if language else ""
            lines.append(f"- `{name}/` {words('init.files', files=files)}{main_language}")
    lines += ["", f"## {words('init.rules')}", "", f"- {words('init.rules_hint')}", ""]
    return "\n".join(lines)


AGENTS_FILE = "AGENTS.md"
KEEP, CHANGE = "no", "yes"
ASK_DRAFT = "init.ask.agents"


class SetUpResult(NamedTuple):
    """Lines on the files that were written or left alone, and whether a chat would find a model now."""

    notes: tuple[Phrase, ...]
    has_model: bool
    unkept_key: str
    """The variable for the key, if only this process has the key."""

    @property
    def next_step(self) -> Phrase:
        return say("init.start" if self.has_model else "init.start_without")


async def set_up(
    ask: Ask,
    flags: Mapping[str, str | None],
    words: Words,
    paths: Paths,
    folder: Path | None,
    tell: Callable[[Phrase], None],
) -> SetUpResult:
    """Sets everything up, and tells what it tries meanwhile. Without a folder there is no AGENTS.md to write."""
    answers = await interview(ask, flags, words, paths, tell)
    missing_phrases = [*_lacking(answers.model, paths)]
    config = await _config(ask, answers, paths.user_config)
    agents = await _agents(ask, words, folder) if folder else []
    has_model = bool(answers.settings) or (not missing_phrases and await _finds(answers.model, paths))
    return SetUpResult((*answers.told, *missing_phrases, config, *agents), has_model, answers.unkept_key)


async def _finds(model: str, paths: Paths) -> bool:
    user_settings = read_toml(paths.user_config) if paths.user_config.exists() else {}
    return await finds_model(model, Settings.model_validate(user_settings).llm, paths)


async def finds_model(model: str, settings: LlmSettings, paths: Paths) -> bool:
    """Says whether a chat would find the model now: one with a key, or a server or local model that is ready."""
    from duckflow.llm.discover import discover

    try:
        choice = await discover(model, settings, os.environ)
    except DuckflowError:
        return False
    if choice.endpoint:
        return choice.key is not None or not choice.endpoint.key_needed
    return not any(_lacking(f"local:{choice.model}", paths))


def _lacking(model: str, paths: Paths) -> Iterator[Phrase]:
    """Yields what a chosen local model still lacks, as lines for the user; nothing for any other model."""
    if model.partition(":")[0] != "local":
        return
    from duckflow.llm.local.runtime import runtime_missing
    from duckflow.llm.local.weights import Weights

    holding = Weights(paths.models, os.environ).holding(model.partition(":")[2] or DEFAULT_MODEL)
    if runtime_missing():
        yield say("local.missing")
    if not holding.complete:
        yield say("local.no_weights", name=holding.model.name, path=str(holding.path))


async def _config(ask: Ask, wishes: InitAnswers, path: Path) -> Phrase:
    if not path.exists():
        text = config_text(wishes.language, wishes.model, wishes.mode or str(OFFERED[0]))
        for key, value in wishes.settings:
            text = set_value(text, key, value)
        write_text(path, text)
        return say("init.written", path=from_home(path))
    text = read_text(path)
    for key, value in _differing(wishes, path):
        text = set_value(text, key, value)
    if text == read_text(path):
        return say("init.same", path=from_home(path))
    if not await said_yes(ask, say("init.ask.change_config", path=from_home(path)), first=CHANGE):
        return say("init.left", path=from_home(path))
    write_text(path, text)
    return say("init.changed", path=from_home(path))


async def _agents(ask: Ask, words: Words, folder: Path) -> list[Phrase]:
    """Writes a draft if the user wants one. Returns lines on it."""
    path, old_name = folder / AGENTS_FILE, ""
    file_exists = path.exists() or path.is_symlink()
    if file_exists and not await said_yes(ask, say("init.ask.replace_agents"), first=KEEP):
        return [say("init.left", path=AGENTS_FILE)]
    # The home folder is no project, so Enter alone writes no draft there.
    default_choice = KEEP if folder in (Path.home(), Path("/")) else CHANGE
    if not file_exists and not await said_yes(
        ask, say(ASK_DRAFT, folder=folder.name or str(folder)), first=default_choice
    ):
        return []
    text = agents_text(survey(folder), words)
    if file_exists:
        old_name = _put_aside(path)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as problem:
        raise UsageError("config.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None
    written = (
        say("init.replaced", path=AGENTS_FILE, aside=old_name) if old_name else say("init.written", path=AGENTS_FILE)
    )
    return [written, say("init.read_agents")]


def _differing(wishes: InitAnswers, path: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    written_settings = read_toml(path)
    wanted_values = (
        (("language",), wishes.language),
        (("llm", "model"), wishes.model),
        (("safety", "mode"), wishes.mode),
    )
    for key, value in (*wanted_values, *wishes.settings):
        table = written_settings
        for name in key[:-1]:
            table = table.get(name, {})
        if table.get(key[-1], "") != value:
            yield key, value


async def said_yes(ask: Ask, title: Phrase, first: str) -> bool:
    """Asks a question of yes or no. Enter alone takes the choice `first`. Callers choose it so that Enter never loses a
    file."""
    choices = [Choice(key=key, label=say(f"init.{key}")) for key in (first, *({KEEP, CHANGE} - {first}))]
    return (await ask(Question(kind="choice", title=title, choices=tuple(choices)))).choice == CHANGE


def _put_aside(path: Path) -> str:
    number = 0
    while True:
        old_file = path.with_name(f"{path.name}.old{number or ''}")
        if not old_file.exists():
            path.rename(old_file)
            return old_file.name
        number += 1
