"""`duckflow init`: asks a few questions, and writes a config and, after a yes, an AGENTS.md."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Mapping
from getpass import getpass
from pathlib import Path

from duckflow.agent.plain_answers import FREE, read_access, read_choice, read_words
from duckflow.cli.arguments import parse
from duckflow.cli.init.own_model import LEAVE
from duckflow.cli.init.set_up import ASK_DRAFT, CHANGE, KEEP, InterviewLeft, SetUpResult, said_yes, set_up
from duckflow.cli.parser import Options, wrap
from duckflow.cli.start import start
from duckflow.errors import exit_code_of
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.state.data import Phrase, say
from duckflow.state.question import Answer, Question
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out
from duckflow.whole_text import key_in


def run_init(options: Options, words: Words, paths: Paths) -> int:
    is_unattended = options.yes or not (sys.stdin.isatty() and sys.stdout.isatty())
    flags = {"language": options.lang, "mode": options.mode}
    flags |= {"model": options.model} if options.model is not None or is_unattended else {}
    asker = _Unasked(options.yes, options.force) if is_unattended else _Asking(words)
    try:
        starts_chat = asyncio.run(_set_up(asker, flags, words, paths))
    except InterviewLeft:
        print_out(words("init.nothing"))
        return exit_code_of("interrupted")
    # A key that was typed stays in this process, so the chat does not ask for it again.
    return start(parse([], words)[1], words, paths) if starts_chat else 0


def run_log_in(options: Options, words: Words, paths: Paths) -> int:
    """Sets up a model in a terminal that an editor opens. It ends after that, and fails if the editor would still have
    no model."""
    is_unattended = not (sys.stdin.isatty() and sys.stdout.isatty())
    asker = _Unasked(False, False) if is_unattended else _Asking(words)
    try:
        result = asyncio.run(_told_set_up(asker, {"language": options.lang}, words, paths, None))
    except InterviewLeft:
        print_out(words("init.nothing"))
        return exit_code_of("interrupted")
    if result.unkept_key:
        _print(plain(words("editor.key_unkept", variable=result.unkept_key)))
    elif not result.has_model:
        _print(plain(words("editor.still_no_model")))
    return 0 if result.has_model and not result.unkept_key else 1


async def _told_set_up(
    asker: "_Asking | _Unasked", flags: Mapping[str, str | None], words: Words, paths: Paths, folder: Path | None
) -> SetUpResult:
    def tell(phrase: Phrase) -> None:
        _print(plain(words.phrase(phrase)))

    result = await set_up(asker, flags, words, paths, folder, tell)
    for phrase in result.notes:
        # An editor takes the key from elsewhere than a shell, which is said at the end.
        if folder or not phrase.key.startswith("own.export"):
            tell(phrase)
    return result


async def _set_up(asker: "_Asking | _Unasked", flags: Mapping[str, str | None], words: Words, paths: Paths) -> bool:
    """Sets everything up, and says whether the user now wants to begin a chat."""
    result = await _told_set_up(asker, flags, words, paths, Path.cwd())
    if result.has_model and isinstance(asker, _Asking) and await said_yes(asker, say("init.ask.start"), first=CHANGE):
        return True
    _print(plain(words.phrase(result.next_step)))
    return False


def _print(text: str, head: str = "") -> None:
    """Prints a text after its `head`. In a terminal, lines break only between words, and all begin below the first."""
    width = shutil.get_terminal_size().columns - 1 - len(head)
    lines = [part for line in text.split("\n") for part in wrap(line, width)] if sys.stdout.isatty() else [text]
    print_out(head + f"\n{' ' * len(head)}".join(lines))


def _wipe(line: str) -> None:
    """Takes a line that was just typed off the screen."""
    rows = 1 + (len(line) - 1) // shutil.get_terminal_size().columns
    sys.stdout.write(f"\x1b[{rows}A\x1b[J")
    sys.stdout.flush()


class _Unasked:
    """Answers in place of a person who is not there, by taking the first choice. Existing files stay unless `force` is
    set, and the folder gets a new file only if `yes` is set."""

    def __init__(self, yes: bool, force: bool) -> None:
        self._yes = yes
        self._force = force

    async def __call__(self, question: Question) -> Answer:
        keys = [choice.key for choice in question.choices]
        if question.title.key == ASK_DRAFT:
            return Answer(choice=keys[0] if self._yes else KEEP)
        return Answer(choice=(CHANGE if self._force else KEEP) if CHANGE in keys else keys[0])


class _Asking:
    """Asks a question as plain lines. Enter alone takes the first choice, and Ctrl+C leaves, which is said once."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._is_first = True

    async def __call__(self, question: Question) -> Answer:
        """Returns the answer. Ctrl+C leaves; the event loop's own handler would only take effect after the answer."""
        handler_before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return self._answered(question)
        except KeyboardInterrupt:
            print_out("")
            return Answer(choice=LEAVE)
        finally:
            signal.signal(signal.SIGINT, handler_before)

    def _answered(self, question: Question) -> Answer:
        if self._is_first:
            _print(self._words("init.keys"))
            self._is_first = False
        print_out("")
        for line in (question.title, *question.details):
            _print(plain(self._words.phrase(line)))
        if question.kind == "text":
            return self._typed(question)
        for number, choice in enumerate(question.choices, 1):
            _print(plain(self._words.phrase(choice.label)), f"  {number}. ")
        while True:
            try:
                text = input("[1] › ")
            except EOFError:
                return Answer(choice=LEAVE)
            if key_in(text):
                _wipe(f"[1] › {text}")
            answer = read_access(text, question) or read_choice(text or "1", question, self._words.language)
            if answer.choice != FREE:
                return answer
            print_out(self._words("choice.unclear"))

    def _typed(self, question: Question) -> Answer:
        """Reads text that the user types. A secret is not shown while it is typed."""
        text = ""
        while not text.strip():
            try:
                text = getpass("› ") if question.secret else input("› ")
            except EOFError:
                return Answer(choice=LEAVE)
            if not question.secret and question.hides(text):
                _wipe(f"› {text}")
        return read_words(text, question, self._words.language)
