"""What the user does beside the conversation: it goes on the record, and the model will know of it."""

from duckflow.agent.session import Session
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded
from duckflow.state.action import Action, ActionResult
from duckflow.state.message import Message
from duckflow.state.noun import shorten
from duckflow.state.phrase import say

OPERATION = "user.shell"
SHOWN_COMMAND = 80


class OwnDeeds:
    """Told to the model with the next message, as a quotation: a running turn is not talked into."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._untold: list[tuple[str, str]] = []

    def ran(self, command: str, code: int, output: str, seconds: float) -> None:
        """A command that the user typed and ran."""
        action = Action(operation=OPERATION, args={"command": command}, reasoning="typed by the user")
        text = f"exit code {code}\n{output or '(no output)'}"
        result = ActionResult(
            action_id=action.action_id,
            operation=OPERATION,
            ok=code == 0,
            for_model=text,
            for_user=say("shell.finished", command=shorten(command, SHOWN_COMMAND), code=code, seconds=seconds),
            seconds=seconds,
        )
        self._session.emit(ActionStarted(action=action))
        self._session.emit(ActionFinished(result=result))
        self._untold.append((f"!{command}", text))
        if not self._session.state.turn_open:
            self.tell()

    def tell(self) -> None:
        """Now is a good time."""
        untold, self._untold = self._untold, []
        for source, text in untold:
            message = Message(role="tool", operation=source, text=text, turn=self._session.state.turn)
            self._session.emit(MessageAdded(message=message))
