"""What other programs find: who runs them, rules that count before others, and how an editor has a model set up."""

import json

import pytest

from tests.cli.shell import Shell
from tests.editor.editor import Editor, opened
from tests.journeys.story import act, decide, respond


def test_commands_and_hooks_find_out_who_runs_them(bare: Shell) -> None:
    seen = bare.home / "seen"
    bare.write_config(
        f'[[hooks.UserPromptSubmit]]\nhooks = [{{ type = "command", command = "echo $AI_AGENT > {seen}" }}]\n'
    )
    command = decide(act("shell.run", command='echo "by <$AI_AGENT>" > who.txt'), next_step="continue")
    model = bare.script(command, decide(respond("Done.")))
    done = bare.run("-p", "go", "-m", model, "--mode", "full-auto", AI_AGENT="another")
    assert (bare.work / "who.txt").read_text() == "by <duckflow>\n", done.stderr
    assert seen.read_text() == "duckflow\n"


def test_an_override_takes_the_place_of_the_rules_beside_it(bare: Shell) -> None:
    for name in ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md"):
        (bare.work / name).write_text(f"Rule of {name}: whistle.\n")
    told = bare.run("prompt", "-m", bare.script()).stdout
    assert "Rule of AGENTS.override.md" in told and "Rule of AGENTS.md" not in told and "Rule of CLAUDE" not in told


@pytest.mark.one_in(3)
@pytest.mark.parametrize("model", ["", "local", "openai:gpt-x"])
async def test_an_editor_that_allows_everything_fetches_no_model_and_types_no_key(bare: Shell, model: str) -> None:
    """Such an editor would take the first choice of every question. So it is asked nothing, and told what is needed."""
    editor = Editor(*["key", "fetch", "openai"] * 3)
    async with opened(bare, editor, *(("-m", model) if model else ())) as session:
        with pytest.raises(Exception, match=r"model|key") as refused:
            await session.say("hello")
    assert getattr(refused.value, "code", 0) == -32000 and editor.requests == []


def test_an_editor_is_told_to_set_up_a_model_in_a_terminal(bare: Shell) -> None:
    params = {"protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": True}}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    done = bare.run("acp", "-m", bare.script(), stdin=json.dumps(asked) + "\n")
    (method,) = json.loads(done.stdout.splitlines()[0])["result"]["authMethods"]
    assert (method["type"], method["args"]) == ("terminal", ["init"])
