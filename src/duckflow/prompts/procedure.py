"""A specialised request: who Duckflow is, the project, and one procedure with its material."""

from collections.abc import Mapping, Sequence

from duckflow.prompts.compile import LANGUAGE_NAMES, Project, alternate
from duckflow.prompts.template import render
from duckflow.state.agent import AgentState
from duckflow.state.prompt import PromptMessage


def compiled(
    state: AgentState,
    project: Project,
    name: str,
    values: Mapping[str, str],
    failures: Sequence[tuple[str, str]] = (),
) -> tuple[PromptMessage, ...]:
    """`failures` are replies that could not be used, each with the reason."""
    language = state.language
    base = render(language, "base", language_name=LANGUAGE_NAMES[language][language])
    session = render(language, "session", folder=state.folder, known=project.known(), agents_md=project.agents_md)
    if lessons := project.lessons():
        session = f"{session}\n\n{render(language, 'lessons', lessons=lessons)}"
    messages = [
        PromptMessage("system", f"{base}\n\n{session}"),
        PromptMessage("user", render(language, name, **values)),
    ]
    for reply, reason in failures:
        messages.append(PromptMessage("assistant", reply or "…"))
        messages.append(PromptMessage("user", render(language, "mend", reason=reason)))
    return alternate(messages)
