"""How many loops a turn may take, with all its agents, and what it has gained in them."""

from duckflow.pacemaker.limits import LoopLimit, extend_limit
from duckflow.pacemaker.progress import Gain, Gained, TurnProgress
from duckflow.pacemaker.settings import LimitSettings
from duckflow.state.phrase import Phrase, say

EASY_EXTENSIONS = 2
"""So many extensions may be earned by gains that are not solid; more by who has made solid ones as well."""


class LoopAllowance:
    """One ceiling for the conversation's loop and for those of its agents. Who makes progress gets more loops, and
    whatever one of them has seen is news to none of the others."""

    def __init__(self, settings: LimitSettings) -> None:
        self._settings = settings
        self.progress = TurnProgress()
        self.notices: list[Phrase] = []
        self.limit: LoopLimit | None = None
        """As of the last time that somebody asked whether it is used up."""
        self.restart()

    def restart(self, loop: int = 0) -> None:
        """Count afresh: the conversation has taken so many loops before."""
        self.counted_from = loop
        self._plain: LoopLimit | None = None
        self._own = self._agents = self._more = self._beats = 0
        self._earned = self._extensions = self._solid = self._waited = 0
        self._gain: Gain = ""
        self._gained_at = self._solid_at = 0
        self._elsewhere: set[int] = set()
        """The loops that opened ever other places since something was last done or found."""

    def beat(self, in_agent: bool = False) -> None:
        """A loop begins."""
        self._beats += 1
        self._agents += in_agent

    def asked_more(self, requests: int) -> None:
        """A loop has taken more than one request: for texts of files, or since a reply could not be read."""
        self._more += requests

    @property
    def beats(self) -> int:
        return self._beats

    @property
    def taken(self) -> int:
        return self._own + self._agents + self._more

    @property
    def most(self) -> int:
        """The ceiling of loops. The loops of agents have one of their own on top."""
        return self._settings.most + min(self._agents, self._settings.agents_ceiling) + self._more

    def gained(self, gained: Gained) -> None:
        if gained.kind:
            self._gain, self._gained_at = gained.kind, self._beats
        if gained.solid:
            self._solid_at, self._solid = self._beats, self._solid + gained.solid
        if gained.elsewhere:
            self._elsewhere.add(self._beats)
        elif gained.kind not in ("", "read"):
            self._elsewhere.clear()

    def heard(self, text: str) -> None:
        """The model has said something. If it tells of what it has read, reading on is worth while."""
        if self.progress.is_told_in(text):
            self._elsewhere.clear()

    @property
    def wanders(self) -> bool:
        return len(self._elsewhere) > self._settings.elsewhere

    def waited(self) -> None:
        """A look at what a running command does costs no loop, up to what gains that are not solid can earn."""
        self._waited += 1

    def gained_since(self, beat: int) -> bool:
        return bool(self._gain) and self._gained_at >= beat

    def used_up(self, loop: int, plain: LoopLimit) -> str:
        """Whether the loops are used up before the conversation's next one, and by what."""
        self._own, self._plain = loop - self.counted_from, plain
        extensions, why = self._extensions, self.spent()
        if self.limit and self._extensions > extensions:
            self.notices.append(say(f"pacemaker.extended.{self._gain}", limit=self.limit.value))
        return why

    def spent(self) -> str:
        """The same while agents are at work. A turn that makes progress gets more, up to the ceiling."""
        if self._plain is None:
            return ""
        if len(self._elsewhere) >= 2 * self._settings.elsewhere:
            return "wandering"
        plain = self._plain
        if self._agents:
            # Whoever hands work on has more to do than it looked like.
            plain = plain._replace(value=max(plain.value, self._settings.highest))
        most_waiting = self._settings.highest + EASY_EXTENSIONS * self._settings.extension - 1 - plain.value
        self.limit = extend_limit(plain, max(self._earned, min(self._waited, most_waiting)), self.most)
        if self.taken >= self.limit.value and self._advances():
            self._earned = self.taken - plain.value + self._settings.extension
            before, self.limit = self.limit.value, extend_limit(plain, self._earned, self.most)
            if self.limit.value > before:
                self._extensions += 1
        if self.taken < self.limit.value:
            return ""
        return "ceiling" if self.taken >= self.most else "loop_exhausted"

    def _advances(self) -> bool:
        """Whether one of the last loops has gained something."""
        easily = self._extensions < max(EASY_EXTENSIONS, self._solid)
        gained, last = (self._gain, self._gained_at) if easily else (self._solid, self._solid_at)
        return bool(gained) and self._beats - last <= self._settings.progress_within
