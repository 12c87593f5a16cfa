"""The first five minutes with a key or a server of one's own: typed, tried at once, kept, and never shown."""

import tomllib
from pathlib import Path

import pytest

from duckflow.i18n.words import Words
from tests.journeys.story import decide, respond
from tests.llm.fake_endpoint import FakeEndpoint, falls_silent, says
from tests.ui.console.terminal import Terminal, open_terminal
from tests.ui.console.test_set_up_chat import NOWHERE

KEY = "sk-the-users-own-key-0123456789"
MODELS = [{"id": "duck-large"}, {"id": "duck-small"}]


def leaks(top: Path) -> list[Path]:
    """Returns the files below a folder that contain the key."""
    return [path for path in top.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_message_gets_its_answer_from_a_server_that_was_named_on_the_way(
    tmp_path: Path, opened: list[Terminal], language: str
) -> None:
    words = Words(language)
    answer = str(decide(respond("Quack, here I am."), step="PLANNING")).replace("'", '"')
    again = answer.replace("here I am", "the key was asked for again")
    with FakeEndpoint(says("ok"), says(answer), says("ok"), says(again), models=MODELS, key=KEY) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, "--lang", language, **NOWHERE)
        terminal.wait_for("/help")
        terminal.enter("hello")
        terminal.wait_for("4. ")
        terminal.answer("2")
        terminal.wait_for("http://192.168.1.5:8000/v1")
        terminal.answer("127.0.0.1:9")
        terminal.wait_for("http://127.0.0.1:9")
        terminal.answer(endpoint.url.removeprefix("http://").removesuffix("/v1"))
        terminal.wait_for(words("own.wants_key"))
        terminal.answer("sk-wrong-wrong-wrong")
        screen = terminal.wait_for("Incorrect API key")
        assert "SERVER_API_KEY" not in screen, "it is asked for again; nothing is to be set or started anew"
        terminal.answer(KEY)
        terminal.wait_for("2. duck-small")
        terminal.answer("2")
        terminal.wait_for("Quack, here I am.")
        # The reply is seen while it is written, a moment before the lines above it are printed.
        screen = terminal.wait_until(lambda screen: "exportSERVER_API_KEY=" in "".join(screen.split()))
        assert KEY not in screen and "sk-wrong" not in screen and KEY.encode() not in terminal.raw
        assert words("own.leave") in screen
        terminal.enter("/quit")
        assert terminal.wait_for_end() == 0
        # The key was kept nowhere: the next start asks for it, and for another one where it is wrong.
        terminal = open_terminal(opened, tmp_path, None, "--lang", language, **NOWHERE)
        terminal.wait_for(words("first_run.key_later", endpoint="server"))
        terminal.enter("hello again")
        # The title of a panel is cut to the width of the screen.
        terminal.wait_for(words("own.ask.key", endpoint=endpoint.url)[:40])
        terminal.answer("sk-wrong-wrong-wrong")
        terminal.wait_for("Incorrect API key")
        terminal.answer(KEY)
        assert KEY not in terminal.wait_for("Quack, the key was asked for again.")
        terminal.enter("/quit")
        assert terminal.wait_for_end() == 0
    settings = tomllib.loads((tmp_path / "home/config/config.toml").read_text())["llm"]
    assert settings["model"] == "server:duck-small"
    assert settings["endpoints"]["server"] == {"base_url": endpoint.url, "key_env": "SERVER_API_KEY"}
    assert not leaks(tmp_path)


def test_init_goes_on_into_the_chat_without_asking_for_the_key_again(tmp_path: Path, opened: list[Terminal]) -> None:
    words = Words("ja")
    answer = str(decide(respond("Quack, here I am."), step="PLANNING")).replace("'", '"')
    with FakeEndpoint(says("ok"), says(answer), models=MODELS[:1], key=KEY) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, "init", **{**NOWHERE, "LC_ALL": "ja_JP.UTF-8"})
        terminal.wait_for("2. 自分のサーバー")
        terminal.answer("2")
        terminal.wait_for("http://192.168.1.5:8000/v1")
        terminal.answer(endpoint.url)
        terminal.wait_for(words("own.wants_key"))
        terminal.answer(KEY)
        terminal.wait_for("AGENTS.md")
        terminal.answer("2")
        terminal.wait_for(words("init.ask.start"))
        terminal.answer("")
        terminal.wait_for("/help")
        terminal.enter("hello")
        screen = terminal.wait_for("Quack, here I am.")
        assert screen.count(words("own.wants_key")) == 1 and KEY.encode() not in terminal.raw
        terminal.enter("/quit")
        assert terminal.wait_for_end() == 0
    assert not leaks(tmp_path)


def test_a_key_that_the_chosen_model_lacks_is_asked_for_with_the_first_message(
    tmp_path: Path, opened: list[Terminal]
) -> None:
    config = tmp_path / "home/config/config.toml"
    config.parent.mkdir(parents=True)
    mine = '[llm.endpoints.mine]\nbase_url = "https://duck.invalid/v1"\nkey_env = "MINE_API_KEY"\n'
    config.write_text(f'[llm]\nmodel = "mine:duck-small"\n{mine}')
    terminal = open_terminal(opened, tmp_path, None, **NOWHERE)
    terminal.wait_for("/help")
    terminal.enter("hello")
    terminal.wait_for(Words("en")("own.ask.key", endpoint="https://duck.invalid/v1"))
    terminal.answer("leave")
    terminal.wait_for("MINE_API_KEY")
    terminal.enter("/quit")
    assert terminal.wait_for_end() == 0


def test_a_key_is_gone_from_the_line_when_its_question_is_interrupted(tmp_path: Path, opened: list[Terminal]) -> None:
    with FakeEndpoint(says("ok"), models=MODELS, key=KEY) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, **NOWHERE)
        terminal.wait_for("/help")
        terminal.enter("hello")
        terminal.wait_for("4. not now")
        terminal.answer("2")
        terminal.wait_for("http://192.168.1.5:8000/v1")
        terminal.answer(endpoint.url)
        terminal.wait_for("The server needs a key.")
        terminal.type(KEY)
        terminal.wait_for("****")
        terminal.type("\x1b")
        terminal.wait_for("Interrupted.")
        terminal.wait_until(lambda screen: "****" not in screen, what="an empty line")
        asked = len(endpoint.paths)
        terminal.enter("and now?")
        # It is a message that needs a model, not an answer to a question that is gone.
        terminal.wait_until(lambda screen: screen.count("4. not now") == 2, what="the ways to a model")
        assert len(endpoint.paths) == asked and KEY not in terminal.shown() and KEY.encode() not in terminal.raw
        assert not leaks(tmp_path)


def test_an_interrupted_trial_ends_and_the_next_message_is_asked_about_anew(
    tmp_path: Path, opened: list[Terminal]
) -> None:
    words = Words("en")
    with FakeEndpoint(falls_silent(), models=MODELS[:1]) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, **NOWHERE)
        terminal.wait_for("/help")
        terminal.enter("hello")
        terminal.wait_for("4. not now")
        terminal.answer("2")
        terminal.wait_for("http://192.168.1.5:8000/v1")
        terminal.answer(endpoint.url)
        terminal.wait_for(words("own.trying", model="server:duck-large"))
        terminal.type("\x1b")
        terminal.wait_for("Interrupted.")
        assert endpoint.disconnected.wait(10)
        terminal.enter("hello again")
        terminal.wait_until(lambda screen: screen.count("4. not now") == 2, what="the ways to a model")


def test_a_terminal_that_cannot_draw_does_not_echo_the_key(tmp_path: Path, opened: list[Terminal]) -> None:
    with FakeEndpoint(says("ok"), models=MODELS, key=KEY) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, **{**NOWHERE, "TERM": "dumb"})
        terminal.wait_for("/help")
        terminal.enter("hello")
        terminal.wait_for("4. not now")
        terminal.answer("2")
        terminal.wait_for("http://192.168.1.5:8000/v1")
        terminal.answer(endpoint.url)
        terminal.wait_for("The server needs a key.")
        terminal.answer(KEY)
        terminal.wait_for("2. duck-small")
        assert KEY.encode() not in terminal.raw
        terminal.answer("what is typed is seen again")
        terminal.wait_for("what is typed is seen again")


@pytest.mark.parametrize("early", ["at the menu", "at the providers", "at the address"])
def test_a_key_that_is_pasted_too_early_is_taken_and_shown_nowhere(
    tmp_path: Path, opened: list[Terminal], early: str
) -> None:
    key = "sk-proj-" + KEY.removeprefix("sk-")
    answer = str(decide(respond("Quack, here I am."), step="PLANNING")).replace("'", '"')
    with FakeEndpoint(says("ok"), says(answer), models=MODELS[:1], key=key) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, **NOWHERE)
        terminal.wait_for("/help")
        terminal.enter("hello")
        terminal.wait_for("4. not now")
        if early == "at the address":
            terminal.answer("2")
            terminal.wait_for("http://192.168.1.5:8000/v1")
            terminal.answer(key)
            terminal.wait_for("Its address is still needed")
            terminal.answer(endpoint.url)
            terminal.wait_for("Quack, here I am.")
        else:
            if early == "at the providers":
                terminal.answer("1")
                terminal.wait_for("Which provider is the key for?")
            terminal.answer(key)
            # Nothing answers for the provider here; the way back leads to one's own server.
            terminal.wait_for("How shall I go on?")
            terminal.answer("3")
            terminal.wait_for("2. my own server")
            terminal.answer(endpoint.url)
            terminal.wait_for("The server needs a key.")
            terminal.answer(key)
            terminal.wait_for("Quack, here I am.")
        screen = terminal.shown()
        assert key not in screen and "/model local" not in screen
        terminal.enter("/quit")
        assert terminal.wait_for_end() == 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


@pytest.mark.parametrize(("language", "word"), [("en", "stop"), ("en", "q"), ("ja", "やめる"), ("ja", "quit")])
def test_a_word_for_stopping_stops_at_the_key_and_the_message_is_back_in_the_line(
    tmp_path: Path, opened: list[Terminal], language: str, word: str
) -> None:
    words = Words(language)
    answer = str(decide(respond("Quack, here I am."), step="PLANNING")).replace("'", '"')
    with FakeEndpoint(says("ok"), says(answer), models=MODELS[:1], key=KEY) as endpoint:
        terminal = open_terminal(opened, tmp_path, None, "--lang", language, **NOWHERE)
        terminal.wait_for("/help")
        terminal.enter("count the ducks")
        terminal.wait_for("4. ")
        # The address of a server is taken at the menu, too.
        terminal.answer(endpoint.url)
        terminal.wait_for(words("own.wants_key"))
        terminal.answer(word)
        terminal.wait_until(lambda screen: "".join(words("first_run.left").split()) in "".join(screen.split()))
        assert "export" not in terminal.shown()
        terminal.wait_until(lambda screen: screen.count("› count the ducks") == 2, what="the message in the line")
        terminal.type("\r")
        terminal.wait_until(lambda screen: screen.count("4. ") == 2, what="the ways to a model again")
        terminal.answer("2")
        terminal.wait_until(lambda screen: screen.count("http://192.168.1.5:8000/v1") == 1)
        terminal.answer(endpoint.url)
        terminal.wait_until(lambda screen: screen.count(words("own.wants_key")) == 2)
        terminal.answer(KEY)
        terminal.wait_for("Quack, here I am.")
        assert "count the ducks" in str(endpoint.received[-1])
