"""The line shown while waiting: a spinner, the time, and the tokens and money that the work costs."""

import time
from collections.abc import Callable

from rich.text import Text

from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, fitted
from duckflow.i18n.words import Words
from duckflow.state.data import Phrase
from duckflow.state.message import Usage
from duckflow.state.progress import duration
from duckflow.ui.console.printer import Glyphs, rows

SPINS_A_SECOND = 8
CHARACTERS_A_TOKEN = 3
DOING_COLUMNS = 16
THOUGHT_ROWS = 12


class Wait:
    """One wait, from `begin` to `end`. While a question is open to the user, the time since the question is shown; it
    does not count as time of the work."""

    def __init__(self, words: Words, glyphs: Glyphs, clock: Callable[[], float] = time.monotonic) -> None:
        self._words = words
        self._glyphs = glyphs
        self._clock = clock
        self._since = 0.0
        self._stopped = 0.0
        self._spent = Usage()
        self._heard = 0
        self.doing: Phrase | None = None
        self.work = ""
        """The name of the kind of work."""

    @property
    def going_on(self) -> bool:
        return self._since > 0

    def begin(self, doing: Phrase | None = None) -> None:
        self._since, self._stopped, self._spent, self._heard = self._clock(), 0.0, Usage(), 0
        self.doing = doing

    def stand_still(self, asked: bool) -> None:
        """Stops the clock while the user is asked something, and starts it again after the answer."""
        if asked:
            self._stopped = self._stopped or self._clock()
        elif self._stopped:
            self._since += self._clock() - self._stopped if self._since else 0.0
            self._stopped = 0.0

    def end(self) -> None:
        self._since, self.doing, self.work = 0.0, None, ""

    def spend(self, usage: Usage) -> None:
        """Takes the usage of the turn so far."""
        if usage != self._spent:
            self._spent, self._heard = usage, 0

    def hear(self, text: str) -> None:
        """Counts text that came in but whose tokens are not reported yet."""
        self._heard += len(text)

    def line(self, columns: int) -> str:
        """Returns the line: the kind of work, its time and its cost, and how to stop it if there is room."""
        now = self._clock()
        # While the user is asked, only that is told: narrow screens have no room for more.
        works = self.work and not self._stopped
        work_text = self._words("work", work=self._words(f"work.{self.work}")) if works else ""
        doing_text = " · ".join(filter(None, (work_text, plain(self._words.phrase(self.doing)) if self.doing else "")))
        tokens = self._spent.prompt_tokens + self._spent.completion_tokens + self._heard // CHARACTERS_A_TOKEN
        figures = [duration(now - (self._stopped or self._since))]
        if tokens:
            figures.append(self._words("bar.tokens", tokens=thousands(tokens)))
        if self._spent.cost_usd:
            figures.append(money(self._spent.cost_usd))
        spinner = self._glyphs.spinner(int(now * SPINS_A_SECOND))
        cost = " · ".join(figures)
        free_columns = columns - cells(f"{spinner}  {cost}") - 1
        line = f"{spinner} {fitted(doing_text, max(DOING_COLUMNS, free_columns))} {cost}"
        hint = f" · {self._words('wait.esc')}"
        return self._glyphs.fit(line + hint if cells(line + hint) < columns else fitted(line, columns - 1))


class ThinkingLine:
    """The model's thoughts: one line that grows while the model thinks, and the last rows of the text if the user opens
    them."""

    def __init__(self) -> None:
        self._text = ""
        self.going_on = False
        self.open = False

    def begin(self) -> None:
        self._text, self.going_on = "", False

    def hear(self, text: str) -> None:
        self._text += text
        self.going_on = True

    def end(self) -> int:
        """Ends the thoughts. Returns their approximate number of tokens, or 0 if there were none."""
        was_going_on, self.going_on = self.going_on, False
        return max(1, len(self._text) // CHARACTERS_A_TOKEN) if was_going_on else 0

    def lines(self, columns: int) -> list[str]:
        lines = [line for line in plain(self._text).split("\n") if line.strip()]
        if self.open:
            thought_rows = (row for line in lines[-THOUGHT_ROWS:] for row in rows(Text(f"  {line}"), columns - 1))
            return [row.plain for row in thought_rows][-THOUGHT_ROWS:]
        latest_line = lines[-1].strip() if lines and self.going_on else ""
        return [f"… {latest_line[-(columns // 2) :]}"] if latest_line else []


def thousands(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.1f}k"


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.01 else f"${dollars:.4f}"
