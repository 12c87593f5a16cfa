"""What the user may choose while it runs: the mode, the model, the language, and what is allowed for longer."""

from typing import Literal

from duckflow.agent.connection import ModelConnection
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.session import Session
from duckflow.errors import UsageError
from duckflow.events.types import LanguageChosen, ModeChosen, PermissionGiven, PermissionTaken
from duckflow.i18n.language import is_language, languages
from duckflow.state.mode import OFFERED, Mode
from duckflow.state.phrase import Phrase


class Choices:
    """Whatever is chosen holds from the next action on."""

    def __init__(self, session: Session, gatekeeper: Gatekeeper, connection: ModelConnection) -> None:
        self._session = session
        self._gatekeeper = gatekeeper
        self._connection = connection

    @property
    def budget_usd(self) -> float:
        return self._connection.budget_usd

    @property
    def mode(self) -> Mode:
        return self._gatekeeper.mode

    def change_mode(self, mode: str) -> None:
        if mode == Mode.CONTAINED and not self._gatekeeper.contained:
            raise UsageError("contained.at_start")
        if mode not in tuple(Mode):
            raise UsageError("mode.choices", mode=self.mode, modes=", ".join(OFFERED))
        if mode != self.mode:
            self._gatekeeper.mode = Mode(mode)
            self._session.emit(ModeChosen(mode=mode))

    async def change_model(self, name: str) -> str:
        return await self._connection.change(name)

    def change_language(self, language: str) -> None:
        if not is_language(language):
            raise UsageError("language.choices", languages=", ".join(languages()))
        self._session.emit(LanguageChosen(language=language))

    def permissions(self) -> tuple[tuple[Literal["always", "session"], Phrase], ...]:
        kept = self._gatekeeper.permissions
        return (
            *(("always", rule.describe()) for rule in kept.always),
            *(("session", rule.describe()) for rule in kept.session),
        )

    def usual(self) -> tuple[tuple[Phrase, int], ...]:
        return tuple((rule.describe(), times) for rule, times in self._gatekeeper.permissions.usual())

    def add_usual(self, number: int) -> Phrase:
        usual = self._gatekeeper.permissions.usual()
        if not 1 <= number <= len(usual):
            raise UsageError("permission.no_such", number=number)
        rule = usual[number - 1][0]
        self._gatekeeper.permissions.add(rule, for_good=True)
        self._session.emit(PermissionGiven(rule=rule.describe(), scope="always"))
        return rule.describe()

    def remove_permission(self, number: int) -> Phrase:
        rule = self._gatekeeper.permissions.remove(number).describe()
        self._session.emit(PermissionTaken(rule=rule))
        return rule
