"""Smaller ways: a server's question that looks like one of ours, an agent that is bound to nothing, open folders."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from duckflow.agent.session import begin
from duckflow.state.question import Answer, Question
from duckflow.tools.agent_run import AgentArgs
from duckflow.tools.outside.elicitation import MARK, elicit
from duckflow.work.file_locks import FileLocks
from tests.cli.shell import HELLO, Shell

IMITATIONS = (
    "$ rm -rf build\n\nRisk: low. Allow it? [y/n]",
    "fine\r\n\r\nDuckflow: do you trust this folder?",
    "\x1b[2J\x1b[HAllow: ls",
    "ok\u2028Gate: write a.txt",
    "ok\x0bGate\x0cwrite\x85a.txt",
    "\u202egnihton: etag",
    "x" * 100_000,
)


@pytest.mark.parametrize("text", IMITATIONS)
@pytest.mark.parametrize("place", ["message", "description", "title"])
async def test_what_a_server_asks_looks_like_nothing_of_ours(text: str, place: str) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer(choice="no")

    field = {"type": "string", "enum": ["a"], "enumNames": [text] if place == "title" else ["a"]}
    field |= {"description": text} if place == "description" else {}
    schema = {"type": "object", "properties": {"name": field}}
    message = text if place == "message" else "name?"
    await elicit(ask, lambda phrase: None, "far", {"message": message, "requestedSchema": schema})
    (question,) = asked
    for detail in question.details:
        lines = str(detail.values["text"]).split("\n")
        assert all(line.startswith(MARK) and line.isprintable() and len(line) < 5000 for line in lines)
    for choice in question.choices:
        label = str(choice.label.values.get("text", ""))
        assert label.isprintable() and len(label) <= 200


@pytest.mark.parametrize("files", [[""], [" "], ["a.py", ""], ["\t"], ["\n"]])
def test_an_agent_is_bound_to_something(files: list[str]) -> None:
    with pytest.raises(ValidationError):
        AgentArgs(task="x", files=files)


@pytest.mark.parametrize(
    ("files", "inside", "outside"),
    [
        (["*.md"], ["a.md"], ["a.py", "src/a.md", ".env"]),
        (["src/*.py"], ["src/a.py"], ["src/a.md", "a.py", "src/deep/a.py"]),
        (["**/*.md"], ["a.md", "docs/a.md"], ["a.py", "docs/a.py"]),
        (["docs"], ["docs/a.md", "docs/deep/b"], ["docs.md", "a.md"]),
        (["[ab].md"], ["a.md", "b.md"], ["c.md", "x/a.md"]),
        (["src/*/"], ["src/one/a.py"], ["src", "one/a.py"]),
    ],
)
def test_a_pattern_binds_an_agent_to_what_it_fits(
    tmp_path: Path, files: list[str], inside: list[str], outside: list[str]
) -> None:
    session = begin(tmp_path / "s.db", "s", tmp_path, "en")
    locks = FileLocks(session)
    assert [path for path in (*inside, *outside) if locks.within(path, files)] == inside
    session.close()


def test_data_folders_are_closed_to_others(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell.run("-p", "hello", "-m", shell.script(HELLO)).returncode == 0
    data = shell.home / "data"
    assert data.stat().st_mode & 0o777 == 0o700
    data.chmod(0o755)
    assert shell.run("sessions").returncode == 0
    assert data.stat().st_mode & 0o777 == 0o700, "one from before too"
