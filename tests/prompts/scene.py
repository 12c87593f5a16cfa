"""A conversation in the middle of its work, and one at its beginning, for the compiled prompts."""

from collections.abc import Sequence

from duckflow.memory.tokens import count
from duckflow.prompts.compile import Compiler
from duckflow.prompts.layers import Layers, NearRules
from duckflow.prompts.settings import PromptSettings
from duckflow.state.action import Evidence
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.phase import FiveItems
from duckflow.state.plan import Plan, Step
from duckflow.tools.toolbox import packaged_operations

WORDS = {
    "en": ("Make a snake game with tests", "A snake game for the terminal", "no network", "core loop", "Which size?"),
    "ja": (
        "テスト付きのヘビゲームを作って",
        "ターミナルのヘビゲーム",
        "ネットワークなし",
        "中心のループ",
        "大きさは？",
    ),
}


class Surroundings:
    """A small Python project with rules."""

    def rules(self) -> str:
        return "Use tabs."

    def rules_near(self, paths: Sequence[str]) -> list[NearRules]:
        return [NearRules("game", "Use spaces here.")] if "game/core.py" in paths else []

    def facts(self) -> str:
        return "Python; game/ tests/"

    def known(self) -> str:
        return "conversations: 2; the last: a parser"

    def lessons(self) -> str:
        return "- run the tests twice"

    def tests(self) -> str:
        return "python -m pytest -q"

    def skills(self, room: int) -> list[tuple[str, str]]:
        return []

    def limits(self, language: str, /) -> str:
        return ""

    def branch(self) -> str:
        return "main"


def compiler(settings: PromptSettings | None = None) -> Compiler:
    return Compiler(packaged_operations, Layers(Surroundings(), settings or PromptSettings(), count))


def at_work(language: str) -> AgentState:
    request, goal, constraint, step, question = WORDS[language]
    done, now = Step(step_id="step_1", name="setup", status="completed"), Step(step_id="step_2", name=step)
    return AgentState(
        folder="/work/snake",
        session_id="s1",
        language=language,
        turn=1,
        loop=3,
        messages=[Message(role="user", text=request, turn=1)],
        five=FiveItems(goal=goal, why_now=goal, constraints=[constraint], plan_brief=[step], open_questions=[question]),
        plans={"p": Plan(plan_id="p", name="Snake", goal=goal, status="in_progress", steps=[done, now])},
        active_plan="p",
        files_changed=["game/core.py"],
        context_refs=["game/core.py"],
        evidence=[Evidence(ok=True, text="python -m pytest -q: exit code 0")],
        decision_log=["curses"],
    )


def long_one(language: str) -> AgentState:
    """Returns a state in which every item is as long as it can be."""
    word = "あ漢カ" if language == "ja" else "word "
    line, state = word * 100, at_work(language)
    state.five = FiveItems(
        goal=line, why_now=line, constraints=[line] * 2, plan_brief=[line] * 3, open_questions=[line] * 2
    )
    state.decision_log = [line[:100]] * 5
    state.files_changed = [f"{word.strip()}/{number}/some_long_name_of_a_file.py" for number in range(20)]
    return state
