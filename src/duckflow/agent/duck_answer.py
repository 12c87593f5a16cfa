"""Carries out the user's choices: mode, model, permissions, and the answer to a Duck Call (the question when work goes
badly)."""

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
from duckflow.i18n.template import note
from duckflow.i18n.words import is_language, languages
from duckflow.pacemaker.interventions import BACK_TO_PLANNING, DuckCall, Effect, Resolution
from duckflow.state.data import Phrase, say
from duckflow.state.message import Message, last_request
from duckflow.state.mode import OFFERED, STRICTEST_FIRST, Mode
from duckflow.state.phase import StateDelta


class Choices:
    """The settings that a user chooses. Each takes effect with the next action. `by_client` means that another program
    chooses. It cannot choose a mode that allows more than the mode in the settings."""

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
        highest_index = STRICTEST_FIRST.index(self._highest)
        return tuple(mode for mode in OFFERED if STRICTEST_FIRST.index(mode) <= highest_index)

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
        rules, limit = self._gatekeeper.permissions, self._gatekeeper.said.limit()
        return (
            *(("always", rule.describe()) for rule in rules.always),
            *(("session", rule.describe()) for rule in rules.session),
            *((("session", say("permission.limit", limit=limit.shown)),) if limit else ()),
        )

    def usual(self) -> tuple[tuple[Phrase, int], ...]:
        return tuple((rule.describe(), times) for rule, times in self._gatekeeper.permissions.usual())

    def add_usual(self, number: int) -> Phrase:
        usual_rules = self._gatekeeper.permissions.usual()
        if not 1 <= number <= len(usual_rules):
            raise UsageError("permission.no_such", number=number)
        rule = usual_rules[number - 1][0]
        self._gatekeeper.permissions.add(rule, for_good=True)
        self._session.emit(PermissionGiven(rule=rule.describe(), scope="always"))
        return rule.describe()

    def remove_permission(self, number: int) -> Phrase:
        entries = self.permissions()
        if self._gatekeeper.said.limit() and number == len(entries):
            self._gatekeeper.said.lift()
            return entries[-1][1]
        rule = self._gatekeeper.permissions.remove(number).describe()
        self._session.emit(PermissionTaken(rule=rule))
        return rule


STOCK_LINES = 12


class DuckCallAnswers:
    """Does what the user's answer to a Duck Call (the question when work goes badly) demands. The resolution of the
    call contains the text for the next prompt."""

    def __init__(self, session: StateOwner, phases: Phases, second_opinion: Callable[[], None]) -> None:
        self._session = session
        self._phases = phases
        self._second_opinion = second_opinion

    def carry_out(self, call: DuckCall, resolution: Resolution) -> Ending | None:
        """Does what the user has chosen. Returns the ending if the choice ends the turn; otherwise None, and the loop
        goes on."""
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
            # The text stays in the conversation, because a note for one request is forgotten with the next.
            self._keep(note(state.language, "user_says", text=resolution.text))
        return None

    def _keep(self, text: str) -> None:
        self._session.emit(MessageAdded(message=Message(role="system", text=text, turn=self._session.state.turn)))

    def _set_attempts_aside(self) -> None:
        """Removes the attempts of this turn from the context. What the user said stays there."""
        messages, turn = self._session.state.messages, self._session.state.turn
        roles_in_turn = [(number, message.role) for number, message in enumerate(messages) if message.turn == turn]
        for is_from_user, messages_group in groupby(roles_in_turn, key=lambda numbered: numbered[1] == "user"):
            numbers = [number for number, _ in messages_group]
            if not is_from_user:
                self._session.emit(MessagesSetAside(first=numbers[0], last=numbers[-1] + 1))

    def _take_stock(self, call: DuckCall) -> None:
        """Sums up what is known, what was tried and what is open; shows the summary, and keeps it in the
        conversation."""
        state = self._session.state
        results = [message for message in state.messages if message.turn == state.turn and message.role == "tool"]
        stock_note = partial(note, state.language)
        goal = state.five.goal or last_request(state.messages)
        lines = [
            stock_note("stock_goal", goal=goal),
            stock_note("stock_files", files=", ".join(state.files_changed) or "-"),
            *(
                stock_note("stock_result", operation=result.operation, text=_quoted(result.text))
                for result in results[-STOCK_LINES:]
            ),
            *(stock_note("stock_tried", what=line) for line in call.tried),
            *(stock_note("stock_open", question=question) for question in state.five.open_questions),
        ]
        summary = "\n".join(dict.fromkeys(lines))
        self._session.emit(Noticed(what=say("duck.stock", text=summary)))
        self._keep(f"{stock_note('stock')}\n{summary}")


def _quoted(text: str) -> str:
    """Returns the first line of a result in quotes. Quotes inside the line cannot end it early."""
    return json.dumps(text.partition("\n")[0][:160], ensure_ascii=False)
