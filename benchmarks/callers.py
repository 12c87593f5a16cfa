"""Two tasks that need callers across files: a function renamed with its uses, a new first argument in every call.

`python -m benchmarks.callers task FOLDER PATH SYMBOL OUT.json [--to NEW | --argument TEXT]` writes a task with the
edits that basedpyright's references ask for. `python -m benchmarks.callers play FOLDER TASK.json ORACLE AGENT --
COMMAND` runs a program on a copy of the folder against a model that knows these edits, but not where they are: ORACLE
is oracle.py, whose server and tongues it uses, and COMMAND is as there.

The model's rules are the same for every program. It looks for the places with the best tool that it is offered
(callers, else grep, else the shell). Where the folder defines the name more than once and nothing told whose it is, it
looks at six lines around every hit. Files that no answer has named it searches for once more, folder by folder. It
edits only lines that it sees, and reads those that it does not; then it checks and answers.
"""

import argparse
import asyncio
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.code_references import definitions, references

LIMIT = 300.0
COMMIT = "git init -q && git add -A && git -c user.email=a@b -c user.name=a commit -qm start"


def task(folder: Path, path: str, symbol: str, to: str, argument: str) -> dict[str, Any]:
    owner, _, name = symbol.rpartition(".")
    above = next((one.line for one in definitions(folder) if (one.path, one.name) == (path, owner)), 0)
    named = [one for one in definitions(folder) if (one.path, one.name) == (path, name) and one.line > above]
    drawn = min(named, key=lambda one: one.line)
    [found] = asyncio.run(references(folder, [drawn], "python"))
    places = {(drawn.path, drawn.line, drawn.column), *map(tuple, found["places"])}
    edits = list[dict[str, str]]()
    for file in sorted({place[0] for place in places}):
        old = (folder / file).read_text().splitlines(keepends=True)
        new = list(old)
        for _, line, column in sorted((place for place in places if place[0] == file), reverse=True):
            new[line - 1] = _changed(new[line - 1], column, name, to, argument)
        edits += [{"path": file, "old": before, "new": after} for before, after in _pieces(old, new)]
    asked = f"Rename {symbol} in {path} to {to}" if to else f"Give {symbol} in {path} a new first argument, {argument}"
    shared = sum(one.name == name for one in definitions(folder)) > 1
    what = {"name": name, "symbol": symbol, "path": path, "shared": shared}
    check = "python3 -m compileall -q . && echo ALL GOOD"
    return {**what, "prompt": f"{asked}, with all its uses in this project.", "check": check, "edits": edits}


def _changed(line: str, column: int, name: str, to: str, argument: str) -> str:
    before, after = line[:column], line[column + len(name) :]
    if to:
        return before + to + after
    if before.rstrip().endswith("def"):
        return before + name + re.sub(r"^\((self|cls)?(, )?", lambda m: f"({m[1]}, {argument}{m[2] or ''}", after)
    return before + name + re.sub(r"^\((\))?", lambda m: f"({argument}{m[1] or ', '}", after)


def _pieces(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """The changed lines, with as many around them as make each piece the only one of its kind in the file."""
    text, spans = "".join(old), list[list[int]]()
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        if before == after:
            continue
        first, last = number, number + 1
        while text.count("".join(old[first:last])) > 1:
            first, last = max(0, first - 1), min(len(old), last + 1)
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(last, spans[-1][1])
        else:
            spans.append([first, last])
    return [("".join(old[first:last]), "".join(new[first:last])) for first, last in spans]


class Finder:
    """A model that has to find the places before it does the same as the oracle: it reads what it does not see, edits,
    checks and answers."""

    def __init__(self, oracle: Any, about: dict[str, Any], folder: Path) -> None:
        self.said = 0
        self.task = about
        self.known: Any = oracle.Oracle(about, folder, 0)
        self._oracle = oracle
        self._folder = folder
        self._searched = self._narrowed = self._certain = False

    @property
    def requests(self) -> int:
        return self.known.requests

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        seen = "\n".join(self._oracle.text_of(message) for message in request["messages"])
        unnamed = [edit["path"] for edit in self.task["edits"] if edit["path"] not in seen]
        speaker = self._oracle.Native(request["tools"], self._folder)
        if not self._searched:
            self._searched = True
            self._certain = not self.task["shared"] or bool(self._oracle.named(speaker.tools, "callers"))
            calls = [search(speaker, self.task, ".")]
        elif unnamed and not self._narrowed:
            self._narrowed = True
            calls = [search(speaker, self.task, top) for top in sorted({path.split("/")[0] for path in unnamed})]
        elif not self._certain:
            self._certain = True
            hits = [hit for hit in every_hit(self._folder, self.task["name"]) if hit["path"] in seen]
            calls = [call for place in self.known.ranges(hits) for call in speaker.calls("read", place)]
            self.known.looked.clear()
        else:
            self.known.blind += len(unnamed)
            return self.known.reply(request)
        self._count(request)
        return {"content": "find the places", "tool_calls": calls}

    def _count(self, request: dict[str, Any]) -> None:
        whole = json.dumps(request["messages"], ensure_ascii=False)
        pairs = enumerate(zip(self.known.before, whole, strict=False))
        same = next((place for place, (one, two) in pairs if one != two), min(len(self.known.before), len(whole)))
        rest = len(json.dumps({key: value for key, value in request.items() if key != "messages"}, ensure_ascii=False))
        self.known.requests += 1
        self.known.sent += len(whole) + rest
        self.known.fresh += len(whole) - same + (rest if self.known.requests == 1 else 0)
        self.known.before = whole


def play(folder: Path, written: dict[str, Any], oracle: Any, agent: str, command: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as top:
        work = Path(top) / "work"
        shutil.copytree(folder, work, symlinks=True)
        subprocess.run(["bash", "-c", COMMIT], cwd=work, check=True)
        expected = {path: (work / path).read_text() for path in {edit["path"] for edit in written["edits"]}}
        for edit in written["edits"]:
            expected[edit["path"]] = expected[edit["path"]].replace(edit["old"], edit["new"], 1)
        model = Finder(oracle, written, work)
        server = oracle.serve(model, None)
        line = " ".join(command).replace("{url}", f"http://127.0.0.1:{server.server_port}/v1")
        begun = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", line.replace("{prompt}", shlex.quote(written["prompt"]))],
            cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        took = time.perf_counter() - begun
        server.shutdown()
        right = all((work / path).read_text() == text for path, text in expected.items())
        changed = subprocess.run(["git", "diff", "--name-only"], cwd=work, capture_output=True, text=True, check=True)
        right &= set(changed.stdout.split()) == set(expected)
    known, note = model.known, "" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-200:]}"
    return {
        "agent": agent, "files": len(expected), "edits": len(written["edits"]), "solved": right and known.passed,
        "requests": known.requests, "kchars_in": round(known.sent / 1000, 1), "fresh": round(known.fresh / 1000, 1),
        "blind": known.blind, "looked": known.again, "seconds": round(took, 1), "note": note,
    }  # fmt: skip


def search(speaker: Any, about: dict[str, Any], top: str) -> dict[str, Any]:
    name, tools = about["name"], list(speaker.tools)
    if (callers := next((tool for tool in tools if "callers" in tool), "")) and top == ".":
        return speaker.filled(callers, {"symbol": about["symbol"], "path": about["path"]})
    if grep := next((tool for tool in tools if "grep" in tool), ""):
        return speaker.filled(grep, {"pattern": rf"\b{name}\b", "path": top})
    return speaker.calls("run", f"grep -rnw --include='*.py' {name} {top}")[0]


def every_hit(folder: Path, name: str) -> list[dict[str, str]]:
    """The lines that have the name, in the form in which the oracle is asked for what is around them."""
    hits = list[dict[str, str]]()
    for file in sorted(folder.rglob("*.py")):
        lines = file.read_text("utf-8", "replace").splitlines(keepends=True)
        hits += [
            {"path": str(file.relative_to(folder)), "old": "".join(lines[: number + 1])[-len(line) :]}
            for number, line in enumerate(lines)
            if re.search(rf"\b{name}\b", line)
        ]
    return hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    making = what.add_parser("task")
    making.add_argument("folder", type=Path)
    making.add_argument("path")
    making.add_argument("symbol")
    making.add_argument("out", type=Path)
    making.add_argument("--to", default="")
    making.add_argument("--argument", default="")
    playing = what.add_parser("play")
    playing.add_argument("folder", type=Path)
    playing.add_argument("task", type=Path)
    playing.add_argument("oracle", type=Path)
    playing.add_argument("agent")
    playing.add_argument("command", nargs="+")
    given = parser.parse_args()
    if given.what == "task":
        made = task(given.folder.resolve(), given.path, given.symbol, given.to, given.argument)
        given.out.write_text(json.dumps(made))
        return
    spec = importlib.util.spec_from_file_location("oracle", given.oracle)
    assert spec and spec.loader
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    print(
        json.dumps(play(given.folder.resolve(), json.loads(given.task.read_text()), oracle, given.agent, given.command))
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
