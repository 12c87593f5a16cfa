"""The head of an exported session: what it was, where, when, and what it cost."""

import time

from duckflow.store.headline import Headline
from duckflow.ui.cost_lines import cost_lines
from duckflow.ui.export.transcript import Transcript
from duckflow.ui.figures import turns
from duckflow.ui.i18n.words import Words
from duckflow.ui.session_rows import short_folder


def title(transcript: Transcript) -> str:
    return Headline.of(transcript.state).title or transcript.state.session_id


def facts(transcript: Transcript, words: Words) -> list[tuple[str, str]]:
    """Names and values, in the user's language."""
    state = transcript.state
    told = [
        (words("export.session"), state.session_id),
        (words("export.started"), time.strftime("%Y-%m-%d %H:%M", time.localtime(transcript.started))),
        (words("export.folder"), short_folder(state.folder)),
        (words("export.length"), turns(state.turn, words)),
        (words("export.model"), ", ".join(state.usage_by_model) or state.model),
    ]
    if state.forked_from:
        told.append((words("export.branch_of"), state.forked_from))
    if state.five.goal:
        told.append((words("five.goal"), state.five.goal))
    return [(name, value) for name, value in told if value]


def costs(transcript: Transcript, words: Words) -> list[str]:
    return [line.strip() for line in cost_lines(transcript.state, 0.0, words)[1:]]
