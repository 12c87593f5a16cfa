"""`duckflow init`: a few questions, a commented config and a first AGENTS.md, and nothing that exists is lost."""

import io
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pexpect
import pytest

from duckflow.cli.init.set_up import config_text
from duckflow.config.settings import Settings
from duckflow.i18n.words import languages, read_piece
from tests.cli.shell import DUCKFLOW, Shell
from tests.llm.fake_endpoint import FakeEndpoint, refuses, says

CTRL_C = "ctrl+c"


def asked(shell: Shell, *answers: str, command: str = "init") -> tuple[int, str]:
    """`duckflow init` or another command at a terminal, answered line by line."""
    line, where = f"exec {DUCKFLOW} {command}", str(shell.work)
    spawn: Any = pexpect.spawn
    process = spawn(
        "/bin/sh", ["-c", line], cwd=where, env=shell.environment, timeout=60, encoding="utf-8", use_poll=True
    )
    process.setecho(False)
    process.logfile_read = screen = io.StringIO()
    for answer in answers:
        process.expect("› ")
        process.send("\x03") if answer == CTRL_C else process.sendline(answer)
    process.expect(pexpect.EOF)
    process.close()
    return int(process.exitstatus or 0), screen.getvalue()


def uncommented(text: str) -> str:
    """The file with every shown default taken for real."""
    return re.sub(r"^# (\[|\w+ = )", r"\1", text, flags=re.M)


@pytest.mark.parametrize("language", languages())
def test_the_config_is_valid_and_so_is_every_default_it_shows(language: str) -> None:
    text = config_text(language, "local", "plan")
    settings = Settings.model_validate(tomllib.loads(text))
    assert (settings.language, settings.llm.model, settings.safety.mode) == (language, "local", "plan")
    shown = tomllib.loads(uncommented(text).replace('model = "local"', 'model = ""').replace('"plan"', '"ask"'))
    shown["llm"].pop("endpoints")
    assert Settings.model_validate(shown) == Settings(language=settings.language)


def test_all_languages_show_the_same_settings() -> None:
    def keys(language: str) -> list[str]:
        text = read_piece(language, "config.toml")
        return re.findall(r"^#? ?(\[[\w.]+\]|\w+ =)", text, re.M)

    assert all(keys(language) == keys("en") for language in languages())


def test_answers_make_two_files(bare: Shell) -> None:
    code, told = asked(bare, "２", "何？", "常に local", "はい")
    assert code == 0 and "~/home/config/config.toml" in told and "AGENTS.md" in told
    settings = tomllib.loads(bare.config.read_text())
    assert (settings["language"], settings["llm"]["model"], settings["safety"]["mode"]) == ("ja", "local", "ask")
    assert "## コマンド" in (bare.work / "AGENTS.md").read_text()


def test_enter_alone_takes_the_first_choice_of_each_question(bare: Shell) -> None:
    bare.environment["OPENAI_API_KEY"] = "sk-duck-duck-duck"
    assert asked(bare, "", "", "", "no")[0] == 0
    assert tomllib.loads(bare.config.read_text())["safety"]["mode"] == "ask"


def test_the_present_setting_is_the_first_choice_and_a_new_answer_is_written(bare: Shell) -> None:
    bare.write_config('language = "en"\n[llm]\nmodel = "ollama:duck"\n[safety]\nmode = "plan"\n')
    before = bare.config.read_text()
    assert asked(bare, "", "", "")[0] == 0 and bare.config.read_text() == before
    code, told = asked(bare, "", "local", "", "")
    assert code == 0 and 'model = "local"' in bare.config.read_text() and 'mode = "plan"' in bare.config.read_text()
    assert "duckflow models pull" in told, "what the local model still needs is said"


def test_a_folder_gets_no_new_file_without_a_yes_and_the_end_says_what_is_true(bare: Shell) -> None:
    code, told = asked(bare, "", "auto", "no")
    assert code == 0 and bare.config.exists() and not (bare.work / "AGENTS.md").exists()
    assert bare.work.name in told and "Read through" not in told
    assert "No model is set up yet" in told
    assert bare.run("init").returncode == 0 and not (bare.work / "AGENTS.md").exists(), "nobody is there to say yes"
    with FakeEndpoint(says("ok"), models=[{"id": "gpt-5"}]) as endpoint:
        ready = bare.run("init", "--yes", OPENAI_BASE_URL=endpoint.url)
    assert ready.returncode == 0 and (bare.work / "AGENTS.md").exists()
    assert "Read through AGENTS.md" in ready.stdout and "No model" not in ready.stdout


def test_leaving_in_the_middle_writes_nothing(bare: Shell) -> None:
    code, told = asked(bare, "1", "\x04")
    assert code == 130 and "Nothing was written" in told
    assert not bare.config.exists() and not (bare.work / "AGENTS.md").exists()


@pytest.mark.parametrize("answers", [("1", CTRL_C), ("1", "key", "1", CTRL_C)])
def test_ctrl_c_leaves_at_once(bare: Shell, answers: tuple[str, ...]) -> None:
    code, told = asked(bare, *answers)
    assert code == 130 and "Nothing was written" in told and not bare.config.exists()


def test_existing_files_stay_unless_the_user_says_otherwise(bare: Shell) -> None:
    mine = '# mine\n[safety]\nmode = "plan" # careful\n'
    bare.write_config(mine)
    agents = bare.work / "AGENTS.md"
    agents.write_text("my rules\n")
    assert asked(bare, "1", "auto", "2", "1")[0] == 0
    assert bare.run("init", "--yes", "--mode", "full-auto").returncode == 0
    assert bare.config.read_text() == mine and agents.read_text() == "my rules\n"
    assert bare.run("init", "--yes", "--mode", "auto-edit", "--force").returncode == 0
    assert 'mode = "auto-edit" # careful' in bare.config.read_text() and "# mine" in bare.config.read_text()
    assert (bare.work / "AGENTS.md.old").read_text() == "my rules\n" and agents.read_text() != "my rules\n"


def project(folder: Path) -> None:
    files = {
        "package.json": json.dumps({"scripts": {"test": "jest", "lint": "eslint .", "dev": "vite"}}),
        "pnpm-lock.yaml": "",
        "Makefile": "build: x\n\techo\nclean:\n",
        "README.md": "# Shop\n\n[![badge](x)](y)\n\nSells ducks\nto people.\n\nMore.\n",
        "src/a.ts": "",
        "src/b.ts": "",
        "tools/x.py": "",
        "node_modules/z/z.js": "",
        ".gitignore": "node_modules/\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_the_draft_describes_the_folder(bare: Shell) -> None:
    project(bare.work)
    assert bare.run("init", "--yes").returncode == 0
    draft = (bare.work / "AGENTS.md").read_text()
    assert "Sells ducks to people." in draft and "More." not in draft
    assert "TypeScript (2 files)" in draft and "Python (1 file)" in draft and "JavaScript" not in draft
    for line in ("- Test: `npm test`", "- Check: `pnpm run lint`", "- Run: `pnpm run dev`", "- Build: `make build`"):
        assert line in draft
    assert "- `src/` 2 files, mostly TypeScript" in draft and "node_modules" not in draft


def test_an_empty_folder_gets_a_draft_too(bare: Shell) -> None:
    assert bare.run("init", "--yes", "--lang", "ja").returncode == 0
    assert "見つかりませんでした" in (bare.work / "AGENTS.md").read_text()


def test_a_folder_that_cannot_be_written_is_reported(bare: Shell) -> None:
    done = bare.run("init", "--yes", DUCKFLOW_HOME="/dev/null")
    assert done.returncode == 2 and "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_a_key_is_tried_at_once_and_its_models_are_offered_with_their_prices(bare: Shell) -> None:
    models = [{"id": "gpt-5-mini"}, {"id": "gpt-5"}]
    with FakeEndpoint(says("ok"), models=models, key="sk-right-right-right") as endpoint:
        bare.environment["OPENAI_BASE_URL"] = endpoint.url
        code, told = asked(bare, "1", "key", "1", "sk-wrong-wrong-wrong", "sk-right-right-right", "1", "no", "no")
    assert code == 0 and "Incorrect API key" in told and "sk-" not in told
    assert "gpt-5-mini ($0.25 / $2)" in told and "openai:gpt-5-mini answered" in told
    assert "export OPENAI_API_KEY=" in told.replace("\r\n", "")
    assert tomllib.loads(bare.config.read_text())["llm"]["model"] == "openai:gpt-5-mini"


def test_a_key_in_place_of_a_provider_is_taken_as_its_key_and_leaves_the_screen(bare: Shell) -> None:
    with FakeEndpoint(says("ok"), models=[{"id": "gpt-5"}], key="sk-proj-right-right-right-1") as endpoint:
        bare.environment["OPENAI_BASE_URL"] = endpoint.url
        code, told = asked(bare, "1", "key", "sk-proj-right-right-right-1", "no", "no")
    assert code == 0 and "openai:gpt-5 answered" in told and "\x1b[1A\x1b[J" in told


def test_a_key_that_never_fits_leaves_everything_as_it_was(bare: Shell) -> None:
    with FakeEndpoint(says("ok"), models=[{"id": "gpt-5"}], key="sk-right-right-right") as endpoint:
        bare.environment["OPENAI_BASE_URL"] = endpoint.url
        assert asked(bare, "1", "key", "1", "sk-wrong-wrong-wrong", "", CTRL_C)[0] == 130
    assert not bare.config.exists()


def test_a_wrong_path_a_copied_line_and_a_model_without_credit_each_lead_on(bare: Shell) -> None:
    models = [{"id": "duck-large"}, {"id": "duck-small"}]
    refusal = refuses(402, "Insufficient credits")
    with FakeEndpoint(refusal, says("ok"), models=models, key="sk-right-right-right") as endpoint:
        path, copied = endpoint.url.replace("/v1", "/api/chat"), "export OPENAI_API_KEY='sk-right-right-right'"
        code, told = asked(bare, "1", "address", path, copied, "1", "2", "2", "no", "no")
    assert code == 0 and "Insufficient credits" in told and "server:duck-small answered" in told and "sk-" not in told
    assert tomllib.loads(bare.config.read_text())["llm"]["endpoints"]["server"]["base_url"] == endpoint.url


def test_a_server_that_lists_no_models_is_asked_for_one_by_name(bare: Shell) -> None:
    with FakeEndpoint(says("ok")) as endpoint:
        code, told = asked(bare, "1", "address", endpoint.url, "duck", "no", "no")
    assert code == 0 and "server:duck answered" in told


def test_a_server_without_a_list_is_told_from_a_wrong_address_by_the_place_for_chats(bare: Shell) -> None:
    refusal = refuses(400, "field required: model")
    with FakeEndpoint(refusal, says("ok"), key="sk-right-right-right") as endpoint:
        endpoint.lists = False
        server = endpoint.url.removesuffix("/v1")
        code, told = asked(bare, "1", "address", server, "sk-right-right-right", "duck", "no", "no")
    assert code == 0 and "server:duck answered" in told and "sk-" not in told
    with FakeEndpoint(refuses(404), refuses(404)) as endpoint:
        endpoint.lists = False
        assert "No model is served" in asked(bare, "1", "address", endpoint.url, CTRL_C)[1]


def test_no_line_of_the_questions_breaks_inside_a_word(bare: Shell) -> None:
    code, screen = asked(bare, "", "auto", "")
    assert code == 0
    lines = [line.rstrip() for line in screen.replace("\r", "").split("\n")]
    assert all(len(line) < 80 for line in lines if str(bare.work) not in line)
    assert "it asks for a key, a server or the local model." in " ".join(" ".join(lines).split())


def test_an_editors_terminal_sets_up_a_model_and_ends(bare: Shell) -> None:
    with FakeEndpoint(says("ok"), models=[{"id": "duck"}]) as endpoint:
        code, told = asked(bare, "1", "2", endpoint.url, command="acp -m mine:other init")
    assert code == 0 and "server:duck answered" in told
    assert tomllib.loads(bare.config.read_text())["llm"]["model"] == "server:duck"
    assert "AGENTS.md" not in told and "chat" not in told and not list(bare.work.iterdir())


def test_an_editors_terminal_fails_if_the_editor_still_has_no_model(bare: Shell) -> None:
    code, told = asked(bare, "1", "auto", command="acp init")
    assert code == 1 and "the editor has none" in told
    code, told = asked(bare, "1", "leave", command="acp init")
    assert code == 130 and "quit; nothing is written" in told
    assert bare.run("acp", "init").returncode != 0, "nobody is there to answer"
    with FakeEndpoint(says("ok"), models=[{"id": "duck"}], key="sk-right-right-right") as endpoint:
        code, told = asked(bare, "1", "2", endpoint.url, "sk-right-right-right", "", command="acp init")
    assert code == 1 and "SERVER_API_KEY" in told and "agent_servers" in told and "export" not in told


def test_enter_alone_leads_to_a_model_where_there_is_none_yet(bare: Shell) -> None:
    code, told = asked(bare, "", "", CTRL_C)
    assert code == 130 and "Which provider is the key for?" in told
