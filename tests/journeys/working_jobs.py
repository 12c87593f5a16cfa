"""Jobs that are there to be killed: a model that reads what is asked, and processes that carry a job out.

`python -m tests.journeys.working_jobs job` reads folders, one a line, and forks a child for each, which writes its
process id and then the number of every event into the pipe `reported` in its folder; with an open job there it goes on
with that, as a process without a terminal does. `… serve PORT` is the model behind a real socket."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO

from duckflow.events.types import Event
from duckflow.llm.provider import Request
from duckflow.llm.scripted import Scripted, ScriptedReply
from duckflow.state.question import Answer, Question
from tests.journeys.calling import called
from tests.journeys.plans import report
from tests.journeys.story import Story, act, decide

STEPS = 4
PLAN = {
    "name": "Work",
    "steps": [{"name": f"s{n}", "success": f"f{n}.txt exists", "depends_on": [n] if n else []} for n in range(STEPS)],
    "risks": [],
}


def reply_to(asked: str) -> ScriptedReply:
    """A step gets what is not among its done tasks: a line for the log, and a file."""
    if "Make a plan for this goal" in asked:
        return ScriptedReply(json.dumps(PLAN))
    if "A background job has ended" in asked:
        return ScriptedReply(json.dumps(report()))
    if step := re.search(r"Your step: s(\d)", asked):
        number, done = step[1], re.search(r"already done: (.*)", asked)
        actions = [
            act("shell.run", command=f"echo {number} >> log"),
            act("file_ops.write_file", path=f"f{number}.txt", content="x\n"),
        ]
        left = [one for one in actions if not (done and f"{one['operation']} " in done[1])]
        return called({"rationale": "I do it.", "actions": left})
    if "approved the plan" in asked:
        return called(decide(act("task_loop.run"), next_step="defer"))
    return called(decide(act("plan_tool.propose", goal="the work"), step="PLANNING", next_step="pending_user"))


class Reader(Scripted):
    """A model that reads what it is asked."""

    def __init__(self) -> None:
        super().__init__([], native=True)

    def _choose(self, request: Request) -> ScriptedReply:
        return reply_to(request.messages[-1].text)


class CarefulStory(Story):
    """Before something is run again the user looks whether it was done."""

    def __init__(self, top: Path) -> None:
        super().__init__(top, [])
        self.model = Reader()

    def answer(self, question: Question) -> Answer | None:
        assert question.title.key == "job.again", question
        wanted = re.search(r"echo (\d)|f(\d)\.txt", str(question.title.values["task"]))
        assert wanted
        done = wanted[1] in self.log() if wanted[1] else (self.folder / f"f{wanted[2]}.txt").exists()
        return Answer(choice="no" if done else "yes")

    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().split() if path.exists() else []


async def begin_or_go_on(story: Story) -> None:
    """What the user does: asks for the work, or has it go on."""
    if not story.session.state.plans:
        await story.tell("do the work")
    plan = story.session.state.plan
    if plan and plan.status == "draft":
        await story.tell("yes")
    elif plan and not story.session.state.jobs:
        await story.tell("the user approved the plan: go on")
    else:
        await story.chat.work.resume_all()
    await story.chat.work.jobs_over()


async def _work(top: Path, reported: TextIO) -> None:
    story = CarefulStory(top)

    def tell(event: Event) -> None:
        if event.journaled:
            print(story.session.state.event_count, file=reported, flush=True)

    story.session.subscribe(tell)
    await begin_or_go_on(story)
    # Its events are all told; whoever waits for more sees that it has ended.
    story.session.close()


def _fork_for_each_line(work: Callable[[Path, TextIO], Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            folder = Path(line.rstrip("\n"))
            with (folder / "reported").open("w") as reported:
                print(os.getpid(), file=reported, flush=True)
                asyncio.run(work(folder, reported))
            os._exit(0)


class _Chat(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(json.dumps({"object": "list", "data": [{"id": "reader"}]}), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = reply_to(str(body["messages"][-1]["content"]))
        calls = [
            {
                "index": n,
                "id": one.call_id,
                "type": "function",
                "function": {"name": one.name, "arguments": one.arguments},
            }
            for n, one in enumerate(reply.calls)
        ]
        deltas: list[Any] = [{"content": reply.text}, *({"tool_calls": [one]} for one in calls)]
        chunks: list[Any] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        finish = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
        events = [*(json.dumps({"id": "r", "model": "reader", **chunk}) for chunk in chunks), "[DONE]"]
        self._send("".join(f"data: {one}\n\n" for one in events), "text/event-stream")

    def _send(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    if sys.argv[1] == "serve":
        ThreadingHTTPServer.allow_reuse_address = True
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), _Chat).serve_forever(0.05)
    else:
        _fork_for_each_line(_work)


if __name__ == "__main__":
    main()
