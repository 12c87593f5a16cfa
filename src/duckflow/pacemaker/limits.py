"""Limits the loops that a turn with all its agents may take, explains the limit, and guesses the kind of work."""

from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.words import search
from duckflow.pacemaker.progress import Gain, Gained, TurnProgress
from duckflow.pacemaker.settings import LimitSettings
from duckflow.pacemaker.signatures import LoopStep
from duckflow.state.action import DOCUMENTS, TaskProfile
from duckflow.state.data import Phrase, say
from duckflow.state.phase import Vitals

ALMOST = 1e-9
"""A tiny number against rounding errors, so that 15 times 1.2 is 18 and not 17.999…"""


class Load(NamedTuple):
    """The figures, besides the vitals, that the limit of loops depends on."""

    profile: str
    files: int = 0
    turns: int = 0
    error_rate: float = 0.0
    plan_running: bool = False


class LoopLimit(NamedTuple):
    """The limit with its explanation, part by part. `fallback` is true when the calculation failed."""

    value: int
    parts: tuple[Phrase, ...]
    complexity: float = 0.0
    fallback: bool = False
    extended: int = 0


def compute_limit(load: Load, vitals: Vitals, settings: LimitSettings) -> LoopLimit:
    """Returns clamp(base × vitals factor × complexity factor, lowest, highest), or the fallback if that fails."""
    try:
        return _calculated(load, vitals, settings)
    except (AttributeError, ValueError, TypeError, ArithmeticError) as problem:
        fallback_phrase = say("limit.fallback", limit=settings.fallback, reason=f"{type(problem).__name__}: {problem}")
        return LoopLimit(settings.fallback, (fallback_phrase,), fallback=True)


def _calculated(load: Load, vitals: Vitals, settings: LimitSettings) -> LoopLimit:
    profile_base: int = getattr(settings.base, load.profile)
    base = max(profile_base, settings.base.MULTI_STEP_TASK) if load.plan_running else profile_base
    score_of_vitals = vitals_score(vitals, settings)
    by_vitals = vitals_factor(score_of_vitals, settings)
    complex_ = complexity(load, settings)
    by_complexity = 1 + settings.complexity_weight * complex_
    raw_limit = int(base * by_vitals * by_complexity + ALMOST)
    limit = max(settings.lowest, min(raw_limit, max(settings.lowest, settings.highest)))
    limit_phrases = [say("limit.base", profile=load.profile, base=profile_base)]
    if base != profile_base:
        limit_phrases.append(say("limit.plan", base=base))
    limit_phrases += [
        say("limit.mood", value=f"{vitals.mood:.2f}"),
        say("limit.focus", value=f"{vitals.focus:.2f}"),
        say("limit.stamina", value=f"{vitals.stamina:.2f}"),
        say(f"limit.vitals.{_word(by_vitals)}", score=round(score_of_vitals, 2), factor=by_vitals),
        say("limit.complexity", complexity=round(complex_, 2), factor=round(by_complexity, 2)),
        say("limit.files", files=load.files, turns=load.turns, errors=round(100 * load.error_rate)),
        say("limit.result", base=base, vitals=by_vitals, complexity=round(by_complexity, 2), limit=limit),
    ]
    if limit != raw_limit:
        limit_phrases.append(say("limit.bounds", raw=raw_limit, lowest=settings.lowest, highest=settings.highest))
    return LoopLimit(limit, tuple(limit_phrases), complex_)


def ceiling_of(settings: LimitSettings) -> int:
    return max(settings.ceiling, settings.highest)


def extend_limit(limit: LoopLimit, by: int, ceiling: int) -> LoopLimit:
    """Returns the limit plus the loops that progress has earned, up to the ceiling."""
    new_limit = max(limit.value, min(limit.value + by, ceiling))
    if new_limit == limit.value:
        return limit
    extension_phrase = say("limit.extended", by=new_limit - limit.value, limit=new_limit)
    return limit._replace(value=new_limit, parts=(*limit.parts, extension_phrase), extended=new_limit - limit.value)


def vitals_score(vitals: Vitals, settings: LimitSettings) -> float:
    return (
        settings.mood_weight * vitals.mood
        + settings.focus_weight * vitals.focus
        + settings.stamina_weight * vitals.stamina
    )


def vitals_factor(score: float, settings: LimitSettings) -> float:
    if score < settings.poor_below - ALMOST:
        return settings.poor_factor
    return settings.good_factor if score > settings.good_above + ALMOST else 1.0


def complexity(load: Load, settings: LimitSettings) -> float:
    """Returns from 0 to 1 how complex the work is: the mean of three shares, for many files, a long conversation and
    frequent errors."""
    complexity_shares = (
        load.files / settings.full_files,
        load.turns / settings.full_turns,
        load.error_rate * settings.error_weight,
    )
    return sum(max(0.0, min(share, 1.0)) for share in complexity_shares) / len(complexity_shares)


def _word(factor: float) -> str:
    if factor == 1.0:
        return "normal"
    return "good" if factor > 1 else "poor"


GUESSED = (
    TaskProfile.DEBUGGING,
    TaskProfile.MULTI_STEP_TASK,
    TaskProfile.RESEARCH,
    TaskProfile.COMPLEX_REASONING,
    TaskProfile.CODE_ANALYSIS,
    TaskProfile.CREATIVE_WRITING,
    TaskProfile.FILE_OPERATION,
    TaskProfile.SIMPLE_QUESTION,
)
LONG = 400


def guess_profile(text: str, language: str = DEFAULT_LANGUAGE) -> TaskProfile:
    """Returns the first kind of task whose words are in the text; without such words its length decides."""
    text = text.strip()
    for profile in GUESSED:
        if search(f"profiles.{profile.lower()}", text, language):
            return profile
    return TaskProfile.MULTI_STEP_TASK if len(text) > LONG else TaskProfile.GENERAL_CHAT


LARGE = 500
"""A file of this many lines counts as two files, a file of twice as many lines as three."""
SEVERAL = 3
"""Work that changes at least this many files counts as a task of several steps. Work that looks at least this many
times and changes nothing counts as an analysis."""
WEB = "web."


class WorkKind:
    """Tells the kind of work (such as an analysis) by what the turn has done: its files, edits, failed runs and web
    pages. Until it has done something, the user's request decides."""

    def __init__(self) -> None:
        self.begin(TaskProfile.GENERAL_CHAT)

    def begin(self, guessed: TaskProfile) -> None:
        self._guessed = guessed
        self._read: dict[str, int] = {}
        self._changed: set[str] = set()
        self._pages = self._looks = self._failed_runs = 0

    def see(self, step: LoopStep) -> None:
        self._changed.update(step.changed)
        self._failed_runs += step.kind == "run" and step.is_error
        if step.is_error:
            return
        self._pages += step.name.startswith(WEB)
        self._looks += step.kind in ("read", "search")
        if step.kind == "read":
            lines = step.result.count("\n")
            self._read[step.subject] = max(self._read.get(step.subject, 0), 1 + lines // LARGE)

    @property
    def files(self) -> int:
        """Returns the number of files that were read or changed; a large file counts as several."""
        return sum(self._read.values()) + len(self._changed - self._read.keys())

    @property
    def profile(self) -> TaskProfile:
        if len(self._changed) >= SEVERAL:
            return TaskProfile.MULTI_STEP_TASK
        if self._failed_runs and (self._changed or self._looks):
            return TaskProfile.DEBUGGING
        if self._changed:
            only_documents = all(path.casefold().endswith(DOCUMENTS) for path in self._changed)
            return TaskProfile.CREATIVE_WRITING if only_documents else TaskProfile.FILE_OPERATION
        if self._pages:
            return TaskProfile.RESEARCH
        return TaskProfile.CODE_ANALYSIS if self._looks >= SEVERAL else self._guessed


EASY_EXTENSIONS = 2
"""A turn can earn this many extensions of its limit by progress that is easy to fake. For more extensions it needs
progress that is hard to fake (a solid gain): a recent one, or more of them than extensions so far."""


class LoopAllowance:
    """The loops that a conversation and its agents may take together. Progress earns more loops. Progress is shared
    too: material that one agent has seen is not new for the others."""

    def __init__(self, settings: LimitSettings) -> None:
        self._settings = settings
        self.progress = TurnProgress()
        self.notices: list[Phrase] = []
        self.limit: LoopLimit | None = None
        """The limit of loops as it was at the last call of `used_up` or `spent`."""
        self.restart()

    def restart(self, loop: int = 0) -> None:
        """Starts counting anew, after the conversation has taken `loop` loops."""
        self.counted_from = loop
        self._plain: LoopLimit | None = None
        self._own = self._agents = self._more = self._beats = 0
        self._earned = self._extensions = self._solid = self._waited = 0
        self._gain: Gain = ""
        self._gained_at = self._solid_at = 0
        self._under_way: set[int] = set()
        """Numbers of the loops that have begun, and whose results are not known yet."""
        self._looks_from()

    def _looks_from(self) -> None:
        """Sets the counts of loops that only look around back to zero, because this loop has done or found
        something."""
        self._idle = 0
        self._elsewhere: set[int] = set()
        """Numbers of the loops that made progress only on things that the user did not ask about."""
        self._foreign: set[int] = set()
        """Numbers of the loops that worked on things that the user did not ask about. Loops whose progress was easy to
        fake, such as new output of the model's own program, are not among them."""

    def beat(self, in_agent: bool = False) -> None:
        """Counts a loop at its beginning."""
        self._beats += 1
        self._agents += in_agent

    def begun(self, beat: int) -> None:
        self._under_way.add(beat)

    def ended(self, beat: int) -> None:
        self._under_way.discard(beat)

    def asked_more(self, requests: int) -> None:
        """Counts further requests of a loop: for texts of files, or because a reply could not be read."""
        self._more += requests

    @property
    def beats(self) -> int:
        return self._beats

    @property
    def taken(self) -> int:
        return self._own + self._agents + self._more

    @property
    def most(self) -> int:
        """Returns the highest number of loops that the turn may reach. Loops of agents raise this number, up to a
        ceiling of their own."""
        return ceiling_of(self._settings) + min(self._agents, self._settings.agents_ceiling) + self._more

    def gained(self, gained: Gained, beat: int) -> None:
        """Records a gain (progress). `beat` is the number of the loop that made it, since other agents may have begun
        loops meanwhile."""
        if gained.elsewhere and (gained.solid or not gained.kind):
            self._foreign.add(beat)
        if not gained.kind:
            return
        self._gain, self._gained_at = gained.kind, self._beats
        if gained.solid:
            self._solid_at, self._solid = self._beats, self._solid + gained.solid
        if gained.elsewhere:
            self._elsewhere.add(beat)
        elif gained.kind != "read":
            self._looks_from()
        elif gained.solid > 1:
            self._idle = 0

    def idled(self) -> None:
        """Counts a step that only looked at something, and gained nothing."""
        self._idle += 1

    def heard(self, text: str) -> bool:
        """Says whether a text of the model reports something new that the model has read. Such a report makes reading
        on worthwhile, unless the request names a file: then other places may have nothing to do with it."""
        is_report = self.progress.is_told_in(text)
        if is_report and not self.progress.has_named_places:
            self._looks_from()
        return is_report

    @property
    def wanders(self) -> bool:
        return len(self._elsewhere) > self._settings.elsewhere

    def waited(self) -> None:
        """Gives the turn another loop, because this one only looked at a running command. The number of such loops is
        limited."""
        self._waited += 1

    def gained_since(self, beat: int) -> bool:
        return bool(self._gain) and self._gained_at >= beat

    def used_up(self, loop: int, plain: LoopLimit) -> str:
        """Returns the reason why the conversation may take no further loop, or an empty text."""
        self._own, self._plain = loop - self.counted_from, plain
        extensions, spent_reason = self._extensions, self.spent()
        if self.limit and self._extensions > extensions:
            self.notices.append(say(f"pacemaker.extended.{self._gain}", limit=self.limit.value))
        return spent_reason

    def spent(self) -> str:
        """Returns the reason why no further loop may be taken, also while agents work. A turn that makes progress gets
        more loops, up to the ceiling."""
        if self._plain is None:
            return ""
        # Agents work side by side, so the loops of the others that are under way may turn out to be such loops too.
        if max(len(self._elsewhere), len(self._foreign)) + len(self._under_way) >= self._settings.wandering:
            return "wandering"
        plain_limit = self._plain
        if self._agents:
            # A turn that uses agents has more to do than it seemed.
            plain_limit = plain_limit._replace(value=max(plain_limit.value, self._settings.highest))
        most_waiting = self._settings.highest + EASY_EXTENSIONS * self._settings.extension - 1 - plain_limit.value
        self.limit = extend_limit(plain_limit, max(self._earned, min(self._waited, most_waiting)), self.most)
        if self.taken >= self.limit.value and (added_loops := self._earns()) > 0:
            self._earned = self.taken - plain_limit.value + added_loops
            limit_before, self.limit = self.limit.value, extend_limit(plain_limit, self._earned, self.most)
            if self.limit.value > limit_before:
                self._extensions += 1
        if self.taken < self.limit.value:
            return ""
        return "ceiling" if self.taken >= self.most else "loop_exhausted"

    def _earns(self) -> int:
        """Returns the number of loops to add. It is above 0 only if one of the last loops has gained something, and if
        not too many loops have looked around in vain since something was last done or found."""
        needs_no_solid_gain = self._extensions < max(EASY_EXTENSIONS, self._solid)
        gain, gained_at = (self._gain, self._gained_at) if needs_no_solid_gain else (self._solid, self._solid_at)
        if not gain or self._idle > self._settings.elsewhere:
            return 0
        return min(self._settings.extension, gained_at + self._settings.progress_within - self._beats)
