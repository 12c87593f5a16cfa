"""Whatever is wrong with the surroundings ends as a line that says what, and a line that says what to do."""

import signal
import subprocess
import sys

import pytest

from duckflow.cli.arguments import parse
from duckflow.cli.last_resort import report_crash
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from tests.cli.shell import Shell
from tests.journeys.story import decide, respond

DUCK = decide(respond("日本 🦆"), step="PLANNING")


def two_lines(done: subprocess.CompletedProcess[str]) -> str:
    """What was said: short, and no traceback."""
    assert "Traceback" not in done.stderr + done.stdout
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("·", "🦆"))]
    assert len(lines) == 2, done.stderr
    return done.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("line", "code", "hints"),
    [
        ("duckflow docter", 2, ("duckflow doctor",)),
        ("duckflow --modle x", 2, ("--model",)),
        ("duckflow audit --jsn", 2, ("--json", "duckflow audit --help")),
        ("duckflow --zzz", 2, ("--zzz", "--help")),
        ("duckflow fix the bug", 2, ('"fix the bug"',)),
        ("duckflow -p", 2, ("-p", "--help")),
        ("duckflow --mode wild", 2, ("wild", "ask, auto-edit, auto, plan, full-auto")),
        ("duckflow --max-loops 0", 2, ("--max-loops", "0")),
        ("duckflow --mo plan", 2, ("--model", "--mode")),
        ("duckflow --fork=3", 2, ("--fork", "3")),
        ("duckflow completion", 2, ("shell",)),
        ("duckflow sessions zz", 2, ("duckflow sessions does not know “zz”", "list, search, export, rename, rm")),
        ("duckflow web --port 99999", 2, ("--port", "99999")),
        ("mkdir gone && cd gone && rmdir ../gone && duckflow sessions", 2, ("no longer exists", "cd")),
        ("duckflow --version > /dev/full", 1, ("could not be written",)),
        ("duckflow --help > /dev/full", 1, ("no space",)),
        ("duckflow -p hi -m $MODEL > /dev/full", 1, ("no space", "duckflow.log")),
        ("(ulimit -f 8; duckflow -p hi -m $MODEL)", 1, ("journal", "disk")),
        ("(ulimit -f 40; duckflow -p hi -m $MODEL)", 1, ("journal", "disk")),
        ("DUCKFLOW_HOME=/dev/null duckflow -p hi -m $MODEL", 1, ("journal", "DUCKFLOW_HOME")),
        ("DUCKFLOW_HOME=~nobodyhere/x duckflow -p hi", 2, ("home folder", "DUCKFLOW_HOME")),
        ("DUCKFLOW_HOME= HOME=/proc/nowhere duckflow -p hi -m $MODEL", 1, ("/proc/nowhere", "DUCKFLOW_HOME")),
        ("DUCKFLOW_HOME=/dev/null duckflow models pull smollm2-135m", 1, ("/dev/null", "DUCKFLOW_HOME")),
    ],
)
def test_an_error_says_what_happened_and_what_to_do(bare: Shell, line: str, code: int, hints: tuple[str, ...]) -> None:
    done = bare.sh(line, MODEL=bare.script())
    assert done.returncode == code, done.stderr
    told = two_lines(done)
    for hint in hints:
        assert hint in told


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("not toml [", ("line 1",)),
        (b"model = '\xff\xfe'", ("UTF-8",)),
        ("[safety]\nmode = 5", ("safety.mode", "auto-edit")),
        ("safety = 5", ("safety",)),
        ("[llm]\nmodl = 'x'", ("llm.modl", "llm.model")),
        ("[agent]\nbody_tokens = 'many'", ("agent.body_tokens", "whole number")),
        ("[shell]\ntimeout_seconds = 0", ("shell.timeout_seconds", "1")),
    ],
)
def test_a_config_that_makes_no_sense_is_named(bare: Shell, text: str | bytes, hints: tuple[str, ...]) -> None:
    bare.write_config(text)
    done = bare.run("-p", "hi", "-m", bare.script())
    assert done.returncode == 2
    told = two_lines(done)
    for hint in (*hints, "config"):
        assert hint in told


def test_a_folder_in_place_of_the_config_is_reported(bare: Shell) -> None:
    bare.config.mkdir(parents=True)
    assert "config.toml" in two_lines(bare.run("-p", "hi", "-m", bare.script()))


def test_complaints_come_in_the_language_of_the_config(bare: Shell) -> None:
    bare.write_config('language = "ja"\n[llm]\nmodl = 1')
    assert "設定" in bare.run("-p", "hi").stderr
    assert "オプション" in bare.run("--modle").stderr
    assert "使い方:" in bare.run("--help").stdout
    assert "usage:" in bare.run("--help", "--lang", "en").stdout


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "line",
    [
        "DUCKFLOW_LOG=nonsense LC_ALL=C duckflow -p hi -m $MODEL <&-",
        "LC_ALL=xx_YY.SJIS duckflow -p hi -m $MODEL 2>&-",
        "duckflow -p $'\\xff\\xfe' -m $MODEL 2>/dev/full",
    ],
)
def test_odd_surroundings_do_not_keep_it_from_answering(bare: Shell, line: str) -> None:
    done = bare.sh(line, MODEL=bare.script())
    assert (done.returncode, done.stdout) == (0, "Hello there.\n"), done.stderr


@pytest.mark.parametrize(
    "line", ["duckflow --version >&-", "duckflow --help | head -1", "duckflow -p hi -m $MODEL >&- 2>&- <&-"]
)
def test_a_closed_output_is_no_error(bare: Shell, line: str) -> None:
    done = bare.sh(f"set -o pipefail; {line}", MODEL=bare.script())
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_that_lacks_a_character_shows_a_question_mark(bare: Shell) -> None:
    model = bare.script(DUCK)
    done = bare.sh("duckflow -p hi -m $MODEL | iconv -f cp932 -t utf-8", MODEL=model, PYTHONIOENCODING="cp932")
    assert done.stdout == "日本 ?\n"


def test_a_session_open_in_another_window_is_not_touched(bare: Shell) -> None:
    bare.run("-p", "hi", "-m", bare.script())
    journal = next(bare.home.joinpath("data/sessions").rglob("*.db"))
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import fcntl; f = open({str(journal.with_suffix('.lock'))!r}); "
            "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        assert "another window" in two_lines(bare.run("-c", "-p", "again", "-m", bare.script()))
    finally:
        holder.communicate("\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_ended_from_outside_prints_no_complaint(bare: Shell, number: signal.Signals) -> None:
    slow = {"json": DUCK, "chunk": 1, "delay": 0.2}
    process = subprocess.Popen(
        # The tests themselves may have been started with `nohup`.
        ["env", "--default-signal=HUP", sys.executable, "-m", "duckflow", "-p", "hi", "-m", bare.script(slow)]
        + ["--output-format", "stream-json"],
        cwd=bare.work,
        env=bare.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and any("turn_began" in line for line in process.stdout)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in told


def test_even_a_broken_installation_says_what_to_do(bare: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_crash(ImportError("no pydantic")) == 1
    told = capsys.readouterr().err
    assert "ImportError" in told and "pip install" in told and len(told.splitlines()) == 2


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["--lang", "ja", "doctor"], "doctor"),
        (["--lang=ja", "-m", "local", "doctor"], "doctor"),
        (["--mode", "plan", "--trust", "acp"], "acp"),
        (["-c", "web"], ""),
        (["-p", "doctor"], ""),
        (["-r", "web"], ""),
    ],
)
def test_flags_may_stand_before_a_subcommand_that_knows_them(argv: list[str], name: str) -> None:
    assert parse(argv, Words("en"))[0] == name


def test_a_flag_before_a_subcommand_that_has_no_such_flag_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        parse(["--mode", "ask", "models", "list"], Words("en"))
    assert caught.value.values == {"option": "--mode", "prog": "duckflow models"}
    with pytest.raises(UsageError) as caught:
        parse(["-c", "review", "the", "code"], Words("en"))
    assert caught.value.key == "usage.too_many"


def test_a_proxy_that_cannot_be_reached_is_reported_at_once(bare: Shell) -> None:
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:9", "OPENAI_API_KEY": "sk-0123456789abcdef"}
    done = bare.run("-p", "hi", **proxy)
    assert done.returncode != 0 and "HTTPS_PROXY" in done.stderr and "again" not in done.stderr
    assert "127.0.0.1:9 cannot be reached" in done.stderr, "it is the proxy that does not answer, and it is named"
