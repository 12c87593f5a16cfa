"""The two files that `duckflow init` writes, in the user's language."""

from pathlib import Path
from string import Template

from duckflow.cli.init.survey import Survey
from duckflow.config.toml_text import written
from duckflow.ui.i18n import words as i18n
from duckflow.ui.i18n.words import Words

STARTERS = Path(i18n.__file__).parent / "starters"


def config_text(language: str, model: str, mode: str) -> str:
    """A config in which everything but the three answers is a comment."""
    template = (STARTERS / f"config.{language}.toml").read_text(encoding="utf-8")
    return Template(template).substitute(language=written(language), model=written(model), mode=written(mode))


def agents_text(found: Survey, words: Words) -> str:
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
