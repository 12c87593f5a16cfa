"""The same requests in both languages: which operations does the first Decision choose?

Usage: python -m benchmarks.languages -m local [--only NUMBER]. Each request goes through the product's own compiler and
thinker in a folder with a few files; nothing of what is decided is done.
"""

import argparse
import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

from duckflow.agent.connection import Connected
from duckflow.agent.session import begin
from duckflow.cli.build import build_conversation
from duckflow.cli.setup import Setup
from duckflow.config.load import load
from duckflow.errors import DuckflowError
from duckflow.events.types import DecisionMade, Event, QuestionAsked
from duckflow.i18n.words import Words
from duckflow.llm.connect import Places
from duckflow.llm.connect import connect as connected
from duckflow.llm.discover import discover
from duckflow.llm.provider import Chunk, Provider, Request, WithoutTools
from duckflow.state.data import say
from duckflow.store.paths import Paths

FILES = {
    "README.md": "# Till\n\nA small cash register. Run it with `python till.py`.\n",
    "till.py": "from prices import PRICES\n\n\ndef total(items):\n    return sum(PRICES[item] for item in items)\n",
    "prices.py": "PRICES = {'tea': 3, 'cake': 5}\n",
    "old_notes.txt": "call the printer\n",
    "data/sales.csv": "item,count\ntea,3\ncake,1\n",
}
PAIRS = (
    ("Create hello.py that prints hello.", "hello と表示する hello.py を作ってください。"),
    ("Show me what is in README.md.", "README.md の中身を見せてください。"),
    ("Which files are in the folder data?", "data フォルダーにはどんなファイルがありますか。"),
    ("Search the code for the name PRICES.", "コードの中から PRICES という名前を検索してください。"),
    ("Delete old_notes.txt.", "old_notes.txt を削除してください。"),
    ("Rename prices.py to price_list.py.", "prices.py の名前を price_list.py に変えてください。"),
    ("Hello! Who are you?", "こんにちは。あなたは誰ですか。"),
    ("Write a file notes.txt with the word tea.", "notes.txt に「紅茶」と書いてください。"),
    ("Find all files that end in .csv.", ".csv で終わるファイルをすべて探してください。"),
    ("Explain what till.py does.", "till.py が何をするか説明してください。"),
)  # fmt: skip
Chosen = tuple[str, ...]


class Shared(WithoutTools):
    """A model that stays when a conversation leaves it: loading one takes longer than all the rest."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.model, self.window = provider.model, provider.window

    def stream(self, request: Request) -> AsyncIterator[Chunk]:
        return self._provider.stream(request)

    async def aclose(self) -> None:
        pass


async def chosen(request: str, language: str, shared: Shared) -> Chosen:
    """The operations of the first Decision, or why there was none."""
    with TemporaryDirectory() as top:
        folder = Path(top) / "work"
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        own = Paths.of_user()
        paths = Paths(Path(top) / "data", own.config, own.cache)
        settings = load(own.user_config, folder, {"language": language, "safety.mode": "plan"}).settings
        session = begin(Path(top) / "s.db", "languages", folder, language)

        async def connect(second: bool) -> Connected:
            return Connected(shared, say("model.chosen.flag"))

        built = build_conversation(Setup(settings, paths, folder, Words(language)), session, connect)
        found: list[Chosen] = []

        def hear(_: int, event: Event) -> None:
            if isinstance(event, QuestionAsked):
                built.conversation.answer(event.question.question_id, choice="no")
            if isinstance(event, DecisionMade):
                found.append(tuple(action.operation for action in event.decision.actions))
                built.conversation.interrupt()

        built.conversation.hear(hear)
        try:
            await built.conversation.say(request)
        except DuckflowError as problem:
            return (problem.key,)
        finally:
            await built.close()
            session.close()
        return found[0] if found else ("none",)


async def found(model: str) -> Provider:
    """The model by its name, as the program itself would find it."""
    paths = Paths.of_user()
    settings = load(paths.user_config, Path.cwd(), {}).settings
    choice = await discover(model, settings.llm, os.environ)
    places = Places(paths.models, paths.abilities, paths.local_log)
    return connected(choice, settings.llm, settings.local, places, os.environ)


async def main(model: str, only: int) -> None:
    provider = await found(model)
    shared, same = Shared(provider), 0
    pairs = [pair for number, pair in enumerate(PAIRS, 1) if only in (0, number)]
    start = time.perf_counter()
    # One language after the other, so that the model keeps what it has read of the prompt.
    english = [await chosen(request, "en", shared) for request, _ in pairs]
    japanese = [await chosen(request, "ja", shared) for _, request in pairs]
    for (request, _), first, second in zip(pairs, english, japanese, strict=True):
        same += first == second
        print(f"{'=' if first == second else '≠'} {', '.join(first):<28} {', '.join(second):<28} {request}")
    seconds = (time.perf_counter() - start) / len(pairs) / 2
    print(f"{seconds:.0f} s a request")
    await provider.aclose()
    print(f"the same operations in {same} of {len(pairs)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", default="local")
    parser.add_argument("--only", type=int, default=0, metavar="NUMBER")
    given = parser.parse_args()
    asyncio.run(main(given.model, given.only))
