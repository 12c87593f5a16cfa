"""Does what was chosen at a Duck Call."""

import json
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Literal

from duckflow.agent.connection import ModelConnection
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending
from duckflow.agent.session import Session, StateOwner
from duckflow.errors import UsageError
from duckflow.events.types import (
    FiveChanged,
    LanguageChosen,
    MessageAdded,
    MessagesSetAside,
    ModeChosen,
    Noticed,
    PermissionGiven,
    PermissionTaken,
    SessionTitled,
)
from duckflow.i18n.language import is_language, languages
from duckflow.i18n.template import note
from duckflow.pacemaker.interventions import BACK_TO_PLANNING, DuckCall, Effect, Resolution
from duckflow.state.five import StateDelta
from duckflow.state.message import Message, last_request
from duckflow.state.mode import OFFERED, STRICTEST_FIRST, Mode
from duckflow.state.phrase import Phrase, say


class Choices:
    """Whatever is chosen holds from the next action on. `by_client`: another program chooses, so the mode of the
    settings is the highest."""

    def __init__(
        self, session: Session, gatekeeper: Gatekeeper, connection: ModelConnection, by_client: bool = False
    ) -> None:
        self._highest = gatekeeper.mode if by_client else Mode.CONTAINED
        self._session = session
        self._gatekeeper = gatekeeper
        self._connection = connection

    @property
    def budget_usd(self) -> float:
        return self._connection.budget_usd

    @property
    def mode(self) -> Mode:
        return self._gatekeeper.mode

    @property
    def modes(self) -> tuple[Mode, ...]:
        highest = STRICTEST_FIRST.index(self._highest)
        return tuple(mode for mode in OFFERED if STRICTEST_FIRST.index(mode) <= highest)

    def change_mode(self, mode: str) -> None:
        if mode == Mode.CONTAINED and not self._gatekeeper.contained:
            raise UsageError("contained.at_start")
        if mode not in tuple(Mode):
            raise UsageError("mode.choices", mode=self.mode, modes=", ".join(OFFERED))
        if mode not in (*self.modes, self._highest):
            raise UsageError("serve.mode_bound", mode=mode, highest=self._highest)
        if mode != self.mode:
            self._gatekeeper.mode = Mode(mode)
            self._session.emit(ModeChosen(mode=mode))

    async def change_model(self, name: str) -> str:
        return await self._connection.change(name)

    def change_language(self, language: str) -> None:
        if not is_language(language):
            raise UsageError("language.choices", languages=", ".join(languages()))
        self._session.emit(LanguageChosen(language=language))

    def rename(self, title: str) -> None:
        if not title.strip():
            raise UsageError("rename.no_title")
        self._session.emit(SessionTitled(title=title))

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


STOCK_LINES = 12


class DuckCallAnswers:
    """Each effect of a choice, carried out. What goes into the next prompt is in the resolution itself."""

    def __init__(self, session: StateOwner, phases: Phases, second_opinion: Callable[[], None]) -> None:
        self._session = session
        self._phases = phases
        self._second_opinion = second_opinion

    def carry_out(self, call: DuckCall, resolution: Resolution) -> Ending | None:
        """How the turn ends, if that was chosen; else nothing, and the loop goes on."""
        effect, state = resolution.effect, self._session.state
        if effect is Effect.STOP:
            self._phases.wait_for_user()
            return Ending("pacemaker", say("turn.stopped"))
        if effect is Effect.ACCEPT:
            files = ", ".join(state.files_changed) or "–"
            return Ending("done", say("turn.accepted", files=files))
        if effect in BACK_TO_PLANNING:
            self._phases.plan_anew(call.reason)
        match effect:
            case Effect.RESTART:
                self._set_attempts_aside()
            case Effect.TAKE_STOCK:
                self._take_stock(call)
            case Effect.NEW_REQUEST:
                goal = resolution.text.partition("\n")[0]
                self._session.emit(FiveChanged(delta=StateDelta(goal=goal, plan_brief=[], open_questions=[])))
            case Effect.SECOND_OPINION:
                self._second_opinion()
            case _:
                pass
        if resolution.text:
            # It stays in the conversation: what is only told once is forgotten with the next request.
            self._keep(note(state.language, "user_says", text=resolution.text))
        return None

    def _keep(self, text: str) -> None:
        self._session.emit(MessageAdded(message=Message(role="system", text=text, turn=self._session.state.turn)))

    def _set_attempts_aside(self) -> None:
        """The attempts of this turn leave the context; the user's own words stay."""
        messages, turn = self._session.state.messages, self._session.state.turn
        here = [(number, one.role) for number, one in enumerate(messages) if one.turn == turn]
        for said, together in groupby(here, key=lambda one: one[1] == "user"):
            numbers = [number for number, _ in together]
            if not said:
                self._session.emit(MessagesSetAside(first=numbers[0], last=numbers[-1] + 1))

    def _take_stock(self, call: DuckCall) -> None:
        """What is known, what was tried, what is open: computed, shown, and kept in the conversation."""
        state = self._session.state
        results = [message for message in state.messages if message.turn == state.turn and message.role == "tool"]
        told = partial(note, state.language)
        goal = state.five.goal or last_request(state.messages)
        lines = [
            told("stock_goal", goal=goal),
            told("stock_files", files=", ".join(state.files_changed) or "-"),
            *(told("stock_result", operation=one.operation, text=_quoted(one.text)) for one in results[-STOCK_LINES:]),
            *(told("stock_tried", what=line) for line in call.tried),
            *(told("stock_open", question=question) for question in state.five.open_questions),
        ]
        stock = "\n".join(lines)
        self._session.emit(Noticed(what=say("duck.stock", text=stock)))
        self._keep(f"{told('stock')}\n{stock}")


def _quoted(text: str) -> str:
    """The first line of a result, in quotes that it cannot close."""
    return json.dumps(text.partition("\n")[0][:160], ensure_ascii=False)
