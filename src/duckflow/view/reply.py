"""The reply of the model while it is written, and what becomes of its words."""

from duckflow.events.types import ActionFinished, DecisionMade, TextStreamed, ThoughtKept
from duckflow.state.action import DUCK_CALL, EXIT, RESPOND, Action, Decision, wire_name
from duckflow.state.noun import ELLIPSIS
from duckflow.view.items import Item, ReasonItem, TextItem

TALKING = (RESPOND, DUCK_CALL, EXIT)
TEXTS = ("text", "question")
"""How models call the argument that holds the words for the user."""
NOTHING = "-"
"""The rationale of a model that gives none."""


class ReplyView:
    """The words of one loop. They have the same ids whether they were streamed or are read from the record."""

    def __init__(self) -> None:
        self._loop = 0
        self._text: TextItem | None = None
        self._thought: TextItem | None = None
        self._streamed = self._thoughts = ""
        self._said = False

    def begin(self, number: int) -> list[Item]:
        """A loop begins; what is left of the one before was no answer."""
        left = self.end()
        self._loop, self._streamed, self._thoughts, self._said = number, "", "", False
        return left

    def end(self) -> list[Item]:
        """Nothing more will be written in this loop."""
        left: list[Item] = [item._replace(state="passed", piece="") for item in (self._thought, self._text) if item]
        self._text = self._thought = None
        return left

    def stream(self, event: TextStreamed) -> list[Item]:
        if event.channel == "think":
            thought = self._thought or TextItem(f"thought-{self._loop}", 0, event.at, "thought", "", "streaming")
            self._thoughts += event.text
            self._thought = thought._replace(text=thought.text + event.text, piece=event.text)
            return [self._thought]
        items: list[Item] = []
        if self._thought:
            items.append(self._thought._replace(state="whole", piece=""))
            self._thought = None
        if event.channel == "body":
            return [*items, TextItem(f"body-{self._loop}", 0, event.at, "body", "", "streaming", event.text)]
        text = self._text or TextItem(f"text-{self._loop}", 0, event.at, "model", "", "streaming")
        self._streamed += event.text
        self._text = text._replace(text=text.text + event.text, piece=event.text)
        return [*items, self._text]

    def think(self, event: ThoughtKept) -> list[Item]:
        """What was thought, for whom has not heard it stream in."""
        self._thoughts = event.text
        return []

    def reset(self) -> list[Item]:
        """What was streamed does not count; nothing where nothing was."""
        text, self._text, self._streamed = self._text, None, ""
        return [text._replace(state="reset", text="", piece="")] if text else []

    def decide(self, number: int, event: DecisionMade) -> list[Item]:
        """Words that no action says were the reason for what is done."""
        decision, items = event.decision, list[Item]()
        answers = [text for action in decision.actions if (text := _answer(action))]
        if self._text and not any(text in self._streamed for text in answers):
            items.append(self._text._replace(state="passed", piece=""))
            self._text = None
        rationale = "" if _says_nothing(decision, answers) else decision.rationale
        streamed = rationale.removesuffix(ELLIPSIS) in self._streamed
        return [
            *items,
            ReasonItem(
                f"reason-{number}",
                number,
                event.at,
                rationale,
                decision.confidence,
                decision.task_profile,
                decision.alternative or "",
                "" if streamed else rationale,
                self._thoughts,
            ),
        ]

    def say(self, number: int, event: ActionFinished, text: str) -> list[Item]:
        """What was said to the user. The first text of a loop is the one that was streamed."""
        again = self._said or bool(event.job) or not self._loop
        name = f"text-{event.result.action_id}" if again else f"text-{self._loop}"
        piece = "" if text in self._streamed and not event.job else text
        duck = event.result.operation == DUCK_CALL
        items: list[Item] = [TextItem(name, number, event.at, "model", text, piece=piece, duck=duck)]
        if not event.job:
            if self._text and self._text.id != name:
                items.insert(0, self._text._replace(state="passed", piece=""))
            self._said, self._text = True, None
        return items


def _answer(action: Action) -> str:
    """What an action says to the user; nothing where it does something else."""
    if action.operation not in TALKING:
        return ""
    return next((text for name in TEXTS if isinstance(text := action.args.get(name), str)), "")


def _says_nothing(decision: Decision, answers: list[str]) -> bool:
    """Whether a rationale is the answer's own beginning, or no more than the names of the tools that are called."""
    begin = decision.rationale.removesuffix(ELLIPSIS)
    names = {name for action in decision.actions for name in (action.operation, wire_name(action.operation))}
    return (
        begin in ("", NOTHING)
        or any(text.startswith(begin) for text in answers)
        or all(part in names for part in begin.split("; "))
    )
