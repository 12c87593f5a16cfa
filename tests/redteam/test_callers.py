"""Programs that call Duckflow: the user's settings and the folders named at the start are the upper bound, whatever the
caller asks for and answers."""

from pathlib import Path

import pytest

from duckflow.state.question import Answer
from tests.cli.shell import Shell
from tests.cli.test_mcp import agent
from tests.editor.editor import Editor, Session, at
from tests.journeys.story import Story, act, decide, respond

YES = {"action": "accept", "content": {"answer": "yes"}}
HELLO = decide(respond("Hello."), step="PLANNING")


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def spellings(shell: Shell, home: Path) -> dict[str, str]:
    """Returns spellings of folders that were not named at the start."""
    (shell.work / "way").symlink_to(home)
    (shell.work / "beside").symlink_to(shell.work.parent)
    return {
        "root": "/",
        "home": str(home),
        "above home": str(home.parent),
        "by dots": f"{shell.work}/..",
        "by a link": f"{shell.work}/way",
        "by a link upwards": f"{shell.work}/beside",
        "by a tilde": "~",
        "machine": "/etc",
        "the same beginning": f"{shell.work}-other",
    }


def test_a_caller_chooses_no_folder_that_was_not_named(bare: Shell, tmp_path: Path) -> None:
    home = tmp_path / "people/duck"
    home.mkdir(parents=True)
    Path(f"{bare.work}-other").mkdir()
    (bare.work / "below").mkdir()
    bare.environment["HOME"] = str(home)
    model = bare.script(HELLO)
    with agent(bare, elicitation={}) as other:
        for way, folder in spellings(bare, home).items():
            done = other.call("duckflow", YES, prompt="hi", cwd=folder, model=model)
            assert done["isError"] and "mcp serve" in done["content"][0]["text"], way
        done = other.call("duckflow", YES, prompt="hi", cwd=str(bare.work / "below"), model=model)
        assert not done["isError"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("highest", ["plan", "ask", "auto-edit", "auto"])
def test_a_caller_chooses_no_mode_beyond_the_users(bare: Shell, highest: str) -> None:
    bare.write_config(f'[safety]\nmode = "{highest}"\n')
    modes = ["plan", "ask", "auto-edit", "auto", "full-auto"]
    model = bare.script(HELLO)
    with agent(bare, elicitation={}) as other:
        for mode in modes:
            done = other.call("duckflow", YES, prompt="hi", cwd=str(bare.work), mode=mode, model=model)
            assert bool(done["isError"]) == (modes.index(mode) > modes.index(highest)), mode


@pytest.mark.parametrize("folder", ["/", "~", "home/..", "home", "home/."])
def test_home_and_above_are_refused_on_the_command_line(bare: Shell, tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    named = folder if folder in ("/", "~") else str(tmp_path / folder)
    done = bare.run("mcp", "serve", named, HOME=str(home))
    assert done.returncode == 2 and "mcp serve" in done.stderr


@pytest.mark.parametrize("way", ["itself", "above", "far above", "by a link", "by dots", "a link to above"])
async def test_a_client_that_allows_everything_opens_no_home(tmp_path: Path, way: str) -> None:
    """An editor's client does not even get the question."""
    work, people = tmp_path / "work", tmp_path / "people"
    (people / "duck").mkdir(parents=True)
    match way:
        case "by a link" | "a link to above":
            home = people / "duck"
            work.symlink_to(home if way == "by a link" else people)
        case _:
            work.mkdir()
            home = {"itself": work, "above": work / "duck", "far above": work / "a/b/duck"}.get(way, work / "../work")
            home.mkdir(parents=True, exist_ok=True)
    story = Story(tmp_path, [HELLO], home=home, by_client=True)
    story.answer = lambda question: Answer(choice="trust")
    await story.tell("hello")
    assert not story.questions and not story.model.requests
    assert not (tmp_path / "home/trusted.json").exists()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", ["mode", "option", "command", "a command with blanks", "a session that is loaded"])
@pytest.mark.parametrize("highest", ["plan", "ask", "auto-edit"])
async def test_an_editor_chooses_no_mode_beyond_the_users(bare: Shell, highest: str, way: str) -> None:
    from acp import RequestError

    bare.write_config(f'[safety]\nmode = "{highest}"\n')
    runs = decide(act("shell.run", command="echo x > made; cp made more"), next_step="continue")
    editor = Editor("no")
    async with at(bare, editor, "-m", bare.script(runs, HELLO, HELLO)) as connection:
        made = await connection.new_session(cwd=str(bare.work), mcp_servers=[])
        session = Session(connection, editor, made.session_id)
        assert made.modes and "full-auto" not in {mode.id for mode in made.modes.available_modes}
        if way == "mode":
            with pytest.raises(RequestError, match="allows more"):
                await connection.set_session_mode(session_id=session.id, mode_id="full-auto")
        elif way == "option":
            with pytest.raises(RequestError, match="allows more"):
                await connection.set_config_option(session_id=session.id, config_id="mode", value="full-auto")
        elif way == "a session that is loaded":
            await connection.load_session(cwd=str(bare.work), session_id=session.id, mcp_servers=[])
            with pytest.raises(RequestError, match="allows more"):
                await connection.set_session_mode(session_id=session.id, mode_id="full-auto")
        else:
            await session.say("/mode full-auto" if way == "command" else "  /mode   full-auto ")
        await session.say("go on")
    assert not (bare.work / "more").exists()
