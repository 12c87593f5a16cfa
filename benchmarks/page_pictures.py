"""Pictures of the page from real runs in a real browser, with a scripted model: part of `make screenshots`."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.events.types import QuestionAsked
from duckflow.llm.scripted import Line, ScriptedReply
from duckflow.state.message import Usage
from tests.journeys.plans import when
from tests.journeys.story import act, decide, respond
from tests.web.chromium import PHONE, Tab, browsing, chromium, visit
from tests.web.played import PlayedFleet, PlayedModels
from tests.web.site import ID, Site, Talk

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

Said = dict[str, str]
HOME, FOLDER, SNAKE = Path("/tmp/ann"), "snake", "snake.py"
DESK: "ViewportSize" = {"width": 1400, "height": 840}
PHONES: Mapping[str, "ViewportSize"] = {"-phone": PHONE}
SIZES: Mapping[str, "ViewportSize"] = {"": DESK, **PHONES}
OTHER, TASKS = "20260102-000000-abcdef", 200
OLD = '''"""The board and how the snake moves on it."""

WIDTH, HEIGHT = 40, 20


def step(head, way):
    x, y = head[0] + way[0], head[1] + way[1]
    if x < 0 or x >= WIDTH or y < 0 or y >= HEIGHT:
        raise GameOver("the wall")
    return x, y


def draw(snake, food):
    rows = [["."] * WIDTH for _ in range(HEIGHT)]
    for x, y in snake:
        rows[y][x] = "#"
    return "\\n".join("".join(row) for row in rows)
'''
WALL = '    if x < 0 or x >= WIDTH or y < 0 or y >= HEIGHT:\n        raise GameOver("the wall")\n    return x, y\n'
NEW = OLD.replace(WALL, "    return x % WIDTH, y % HEIGHT\n").replace(
    '        rows[y][x] = "#"\n', '        rows[y][x] = "#"\n    rows[food[1]][food[0]] = "*"\n'
)
TESTS = "for n in 1 2 3 4 5 6; do echo tests/test_board.py::test_step_$n PASSED; sleep 0.1; done; sleep 60"
USED = Usage(prompt_tokens=2900, completion_tokens=160, cached_tokens=2048, cost_usd=0.0042, calls=1)


CHANGE: dict[str, Said] = {
    "en": {
        "request": "Let the snake come back on the other side, and draw the food",
        "intent": "no walls any more, and the food is seen",
        "why": "the remainder takes the place of the check; nobody caught GameOver",
        "instead": "keep the walls as a setting",
        "body": "complete content of board.py",
    },
    "ja": {
        "request": "端から出たヘビが反対側に戻るようにして、エサも描いて",
        "intent": "壁をなくし、エサが見えるようにする",
        "why": "余りを取れば判定は要りません。GameOver を受け取る所もありません",
        "instead": "壁を設定として残す",
        "body": "では board.py の内容",
    },
}


def replies(said: Said, change: Said) -> list[Line]:
    """An answer, a plan, its first job, and a change that asks."""
    steps: list[dict[str, Any]] = [
        {"name": said["core"], "description": said["core_text"], "success": said["core_done"], "depends_on": []},
        {"name": said["score"], "description": said["score_text"], "success": "", "depends_on": [1]},
        {"name": said["keys"], "description": said["keys_text"], "success": "", "depends_on": [1]},
    ]
    script: list[dict[str, Any]] = [
        decide(act("file_ops.read_file", path=SNAKE), step="PLANNING", next_step="continue", rationale=SNAKE),
        decide(respond(said["answer"]), step="PLANNING", rationale=said["rationale"]),
        decide(act("plan_tool.propose", goal=said["goal"]), step="PLANNING", next_step="pending_user"),
        {"name": said["plan"], "steps": steps, "risks": [said["risk"]]},
        decide(act("task_tool.generate_list", step_id="1"), act("task_loop.run", step_id="1"), next_step="defer"),
        {"tasks": [act("file_ops.write_file", path="board.py"), act("shell.run", command=TESTS)]},
    ]
    wanted = act("file_ops.write_file", change["intent"], path=SNAKE, content=NEW)
    asks = decide(wanted, rationale=change["why"], alternative=change["instead"])
    board = when(change["body"], "WIDTH, HEIGHT = 40, 20\n")
    told = [ScriptedReply(json.dumps(one, ensure_ascii=False), usage=USED) for one in script]
    return [*told, board, when(change["request"], asks, usage=USED)]


async def take(language: str, said: Said, folder: Path) -> None:
    talk = Talk(HOME, replies(said, CHANGE[language]), language=language, folder=FOLDER)
    (talk.folder / SNAKE).write_text(OLD)
    conversation, asked = talk.built.conversation, asyncio.Event()
    conversation.hear(lambda _, event: asked.set() if isinstance(event, QuestionAsked) else None)
    fleet, models = PlayedFleet(TASKS, asks=1), PlayedModels()
    async with (
        talk,
        other_talk(language) as other,
        Site(talk.paths, language=language, fleet=fleet, models=models) as site,
        browsing() as browser,
    ):
        for text in (said["question"], said["goal"], said["yes_please"]):
            await conversation.say(text)
        await other.built.conversation.say(CHANGE[language]["request"])
        await asyncio.sleep(2)
        conversation.choices.change_mode("ask")
        await conversation.take(CHANGE[language]["request"])
        await asked.wait()
        camera = Camera(browser, site, folder, language)
        await camera.shoot("gate", f"#/s/{ID}", ".card")
        # On a desk the plan stands beside the Gate already.
        await camera.shoot("work", f"#/s/{ID}/work", ".panel .job", sizes=PHONES)
        await camera.shoot("vitals", f"#/s/{ID}/health", ".chart")
        await camera.shoot("list", "#/", ".session .question")
        await camera.shoot("new", "#/new", ".new-session textarea")
        await camera.shoot("models", "#/models", ".endpoints li")
        await camera.shoot("fleet", "#/fleet", "table.tasks-of", prepare=to_the_tasks)
        await camera.shoot("review", f"#/s/{OTHER}/changes", ".turns summary", prepare=comment)


def other_talk(language: str) -> Talk:
    """A conversation whose change has been made, and is looked through."""
    change = CHANGE[language]
    read = decide(act("file_ops.read_file", path=SNAKE), step="PLANNING", next_step="continue", rationale=SNAKE)
    write = act("file_ops.write_file", change["intent"], path=SNAKE, content=NEW)
    wrote = decide(write, respond(change["why"]), rationale=change["intent"])
    talk = Talk(HOME, [read, wrote], session_id=OTHER, language=language, folder="snake-2")
    (talk.folder / SNAKE).write_text(OLD)
    return talk


async def comment(tab: Tab) -> None:
    """A comment on a line of the change, and the next one being written."""
    await tab.find(".turns details summary").first.click()
    await tab.see(".review .d-add")
    if not await tab.find("tr.comment p").count():
        button = tab.find(".d-add .add-comment").first
        await button.evaluate("(button) => button.click()")
        await (await tab.see("tr.comment textarea")).fill("HEIGHT % 2 ?")
        await tab.page.keyboard.press("Enter")
        await tab.see("tr.comment p")
    await tab.find(".d-add .add-comment").nth(1).evaluate("(button) => button.click()")
    await tab.see("tr.comment textarea")


async def to_the_tasks(tab: Tab) -> None:
    await tab.find(".fleet-of h2").first.evaluate("(heading) => heading.scrollIntoView()")


class Camera:
    """Takes each scene on a desk, in light, and on a phone, in the dark."""

    def __init__(self, browser: "Browser", site: Site, folder: Path, language: str) -> None:
        self._browser = browser
        self._site = site
        self._folder = folder
        self._language = language

    async def shoot(
        self,
        name: str,
        place: str,
        seen: str,
        prepare: Callable[[Tab], Awaitable[None]] | None = None,
        sizes: Mapping[str, "ViewportSize"] = SIZES,
    ) -> None:
        for where, size in sizes.items():
            tab = await visit(self._browser, self._site, place, size, "dark" if where else "light")
            await tab.see(seen)
            if prepare:
                await prepare(tab)
            await tab.page.wait_for_timeout(700)
            await tab.page.screenshot(path=self._folder / f"page-{name}{where}.{self._language}.png")
            await tab.page.close()


def take_pages(texts: dict[str, Said], folder: Path) -> None:
    if not chromium():
        print("No Chromium here: no pictures of the page.")
        return
    folder = folder.absolute()
    for language, said in texts.items():
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir(parents=True)
        # The folder that one is in stands in the form.
        with chdir(HOME):
            asyncio.run(take(language, said, folder))
        shutil.rmtree(HOME, ignore_errors=True)
