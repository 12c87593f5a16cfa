"""`duckflow prompt`, and what really goes over the wire."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.cli.test_headless import FINE, Server, impatient_shell
from tests.journeys.story import Story, decide, respond

SAYS = {"en": "What can you do for me in this folder?", "ja": "このフォルダーで何ができますか。教えてください。"}
DOCS = Path(__file__).parent.parent.parent / "docs/prompts.md"
LIMITS = {("full", "en"): 7000, ("full", "ja"): 7000, ("compact", "en"): 5120, ("compact", "ja"): 5120}
"""Bytes of a first request in all, the tools included. A Japanese letter has three."""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return impatient_shell(tmp_path)


@pytest.mark.parametrize(
    ("profile", "language"),
    [
        ("full", "en"),
        ("compact", "ja"),
        pytest.param("full", "ja", marks=pytest.mark.slow),
        pytest.param("compact", "en", marks=pytest.mark.slow),
    ],
)
def test_the_prompt_that_is_printed_is_sent_and_the_first_request_is_small(
    shell: Shell, language: str, profile: str
) -> None:
    server = Server()
    server.replies = [FINE]
    with (shell.home / "config/config.toml").open("a") as config:
        config.write(f'\n[prompts]\nprofile = "{profile}"\n')
    given = (SAYS[language], "-m", "gpt-5-mini", "--lang", language)
    try:
        shown = json.loads(shell.run("prompt", *given, "--json", **server.variables).stdout)
        text = shell.run("prompt", *given, **server.variables)
        assert server.bodies == []
        assert shell.run("-p", *given, **server.variables).returncode == 0
    finally:
        server.close()
    first_request = server.bodies[0].replace(str(shell.work).encode(), b"/home/user/project")
    assert len(first_request) <= LIMITS[profile, language], "with a folder of common length"
    sent: dict[str, Any] = json.loads(re.sub(rb"\d{8}-\d{6}-[0-9a-f]{6}", b"preview", server.bodies[0]))
    assert shown["messages"] == sent["messages"]
    if profile == "compact":
        assert shown["schema"] == sent["response_format"]["json_schema"]["schema"]
    else:
        assert [tool["name"] for tool in shown["tools"]] == [tool["function"]["name"] for tool in sent["tools"]]
    assert all(message["content"] in text.stdout for message in sent["messages"])
    assert "/ 500" in text.stderr if language == "ja" else "of 500" in text.stderr


def test_step_pattern_and_profile_can_be_chosen_and_nothing_is_left_behind(shell: Shell) -> None:
    before = sorted(shell.home.rglob("*.db"))
    shown = shell.run("prompt", "--step", "REVIEW", "--pattern", "base_main_specialized", "--profile", "full").stdout
    assert "[procedure REVIEW]" in shown and "Step: REVIEW" in shown
    assert "[procedure" not in shell.run("prompt", "--step", "REVIEW", "--profile", "full").stdout
    assert "Two examples" in shell.run("prompt", "--profile", "compact").stdout
    assert sorted(shell.home.rglob("*.db")) == before and list(shell.work.iterdir()) == []


def test_the_example_in_the_docs_is_real(shell: Shell) -> None:
    with (shell.home / "config/config.toml").open("a") as config:
        config.write('\n[sandbox]\nkind = "bubblewrap"\n')
    (shell.work / "tests").mkdir()
    (shell.work / "tests/test_till.py").write_text("def test_it(): ...\n")
    (shell.work / "till.py").write_text("x = 1\n")
    (shell.work / "AGENTS.md").write_text("Prices are whole numbers.\n")
    wanted = ("--profile", "full", "--step", "REVIEW", "--pattern", "base_main_specialized", "Is the till right?")
    shown = shell.run("prompt", *wanted).stdout.replace(str(shell.work), "/home/you/till").strip()
    before, _, rest = DOCS.read_text(encoding="utf-8").partition("````text\n")
    example, fence, after = rest.partition("````\n")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        example = f"{shown}\n"
        DOCS.write_text(f"{before}````text\n{example}{fence}{after}", encoding="utf-8")
    assert example == f"{shown}\n"


async def test_the_pattern_the_model_chose_is_used_for_the_next_call(tmp_path: Path) -> None:
    replies = [
        decide(respond("I look."), step="PLANNING", next_step="continue", prompt_pattern="base_main_specialized"),
        decide(respond("Done."), step="PLANNING", prompt_pattern="base_main"),
        decide(respond("Yes."), step="PLANNING"),
    ]
    story = Story(tmp_path, replies)
    await story.tell("look")
    await story.tell("again")
    assert ["[procedure PLANNING]" in story.prompt(number) for number in range(3)] == [False, True, False]


async def test_the_size_of_each_layer_is_known(tmp_path: Path) -> None:
    story = Story(tmp_path, [decide(respond("Done."), step="PLANNING")])
    await story.tell("look")
    layers = {layer.name: layer for layer in await story.chat.context()}
    assert 0 < layers["base"].tokens <= layers["base"].budget == 500
    assert 0 < layers["main"].tokens <= layers["main"].budget == 800
    assert layers["specialized"].tokens == 0 and layers["conversation"].tokens > 0
