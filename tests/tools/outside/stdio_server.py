"""A small server of the Model Context Protocol on its streams, for tests: `python stdio_server.py [HABIT...]`."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HABITS = sys.argv[1:]
NUMBER = {"type": "number"}
TEXT = {"type": "string"}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
"""A picture of one point."""
MEMOS = {
    "memo://one": {"uri": "memo://one", "text": "The password of the duck is bread."},
    "memo://dot": {"uri": "memo://dot", "mimeType": "image/png", "blob": DOT},
}
writing = threading.Lock()
answers: dict[str, Any] = {}
answered = threading.Event()
called_off: set[Any] = set()
heard: list[str] = []
changed = threading.Event()


def tool(name: str, about: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": about, "inputSchema": schema, **more}


def tools() -> list[dict[str, Any]]:
    if "many" in HABITS:
        about = "Handles the thing with this number in the large registry of things, carefully and at length. " * 3
        return [tool(f"thing_{number}", f"{about} Thing {number}.", {"text": TEXT}) for number in range(200)]
    found = [
        tool("add", "Adds two numbers", {"a": NUMBER, "b": NUMBER}, annotations={"readOnlyHint": True}),
        tool(
            "write", "Writes a file where it likes", {"path": TEXT, "text": TEXT}, annotations={"destructiveHint": True}
        ),
        tool("environment", "Tells its variables", {}),
        tool("picture", "Gives a picture", {}),
        tool("table", "Gives a table", {}),
        tool("fails", "Always fails", {}),
        tool("long", "Says a lot", {}),
        tool("steps", "Tells how far it is", {}),
        tool("slow", "Takes long", {"mark": TEXT}),
        tool("ask", "Asks for a name", {}),
        tool("change", "Changes the list", {}),
        tool("crash", "Ends at once", {}),
        tool("odd.name", "Has a dot in its name", {}),
    ]
    return [*found, tool("fresh", "Came later", {})] if changed.is_set() else found


def send(message: dict[str, Any]) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def call(number: Any, params: dict[str, Any]) -> dict[str, Any] | None:
    given, token = params.get("arguments", {}), params.get("_meta", {}).get("progressToken")
    match params["name"]:
        case "add":
            return text(str(given["a"] + given["b"]))
        case "write":
            with open(given["path"], "w") as file:
                file.write(given["text"])
            return text("written")
        case "environment":
            return text(json.dumps({**os.environ, "CWD": str(Path.cwd())}))
        case "picture":
            return {"content": [{"type": "image", "data": DOT, "mimeType": "image/png"}]}
        case "table":
            return {"content": [], "structuredContent": {"rows": [1, 2]}}
        case "fails":
            return text("it is broken", isError=True)
        case "long":
            return text("".join(f"line {number}\n" for number in range(10_000)))
        case "steps":
            for done in (1, 2):
                told = {"progressToken": token, "progress": done, "total": 2, "message": f"step {done}"}
                send({"method": "notifications/progress", "params": told})
            return text("all steps done")
        case "slow":
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            for _ in range(600):
                if number in called_off:
                    with open(given["mark"], "w") as file:
                        file.write("called off")
                    return None
                time.sleep(0.05)
            return text("at last")
        case "ask":
            schema = {"type": "object", "properties": {"name": TEXT, "sure": {"type": "boolean"}}}
            answered.clear()
            send({"id": "q1", "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
            answered.wait(30)
            return text(json.dumps(answers["q1"]))
        case "change":
            changed.set()
            send({"method": "notifications/tools/list_changed"})
            return text("changed")
        case "crash":
            os._exit(3)
        case "odd.name" if "links" in HABITS:
            links = [{"type": "resource_link", "uri": f"memo://{name}", "name": name} for name in ("one", "gone")]
            links += [{"type": "resource_link", "uri": f"leak:{number}", "name": "x"} for number in range(256)]
            return {"content": links}
        case other:
            return text(f"called {other}")


def answer(message: dict[str, Any]) -> None:
    number, params = message["id"], message.get("params", {})
    match message["method"]:
        case "initialize":
            about = {"name": "test server", "version": "1"}
            offers = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": about}
        case "tools/list":
            listed = tools()
            half = len(listed) // 2
            page = (
                {"tools": listed[:half], "nextCursor": "more"} if "cursor" not in params else {"tools": listed[half:]}
            )
            result = page
        case "resources/list":
            result = {"resources": [{"uri": "memo://one", "name": "one"}]}
        case "resources/read" if params["uri"].startswith("leak:"):
            heard.append(params["uri"])
            result = {"contents": [{"uri": params["uri"], "text": f"heard {' '.join(heard)}"}]}
        case "resources/read":
            if params["uri"] not in MEMOS:
                send({"id": number, "error": {"code": -32002, "message": "no such resource"}})
                return
            result = {"contents": [MEMOS[params["uri"]]]}
        case "prompts/list":
            arguments = [{"name": "topic", "required": True}]
            result = {"prompts": [{"name": "explain", "description": "Explains a topic", "arguments": arguments}]}
        case "prompts/get":
            said = f"Please explain {params['arguments']['topic']}."
            said = next((habit.removeprefix("says ") for habit in HABITS if habit.startswith("says ")), said)
            result = {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
        case "tools/call":
            result = call(number, params)
            if result is None:
                return
        case _:
            send({"id": number, "error": {"code": -32601, "message": "unknown"}})
            return
    send({"id": number, "result": result})


def main() -> None:
    if "dead" in HABITS:
        sys.stderr.write("no key was given\n")
        sys.exit(1)
    if "slow" in HABITS:
        time.sleep(float(os.environ.get("SLOW", "3600")))
    if "stubborn" in HABITS:
        # A child that leaves the group and does not listen to anybody.
        subprocess.Popen(
            [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", *HABITS],
            start_new_session=True,
        )
    if "changing" in HABITS:
        threading.Thread(target=keep_changing, daemon=True).start()
    if "flood" in HABITS:
        threading.Thread(target=flood, daemon=True).start()
    sys.stdout.write("this line is no message\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            answers[message["id"]] = message.get("result")
            answered.set()
        elif message["method"] == "notifications/cancelled":
            called_off.add(message["params"]["requestId"])
        elif "id" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()
    if "deaf" in HABITS:
        time.sleep(600)


def keep_changing() -> None:
    while True:
        (changed.clear if changed.is_set() else changed.set)()
        send({"method": "notifications/tools/list_changed"})
        time.sleep(0.05)


def flood() -> None:
    while True:
        send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 200}})
        sys.stderr.write("y" * 200 + "\n")


if __name__ == "__main__":
    main()
