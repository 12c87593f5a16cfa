"""Programs that run another one given in their arguments: they always ask, and what is behind them is judged too."""

import re
from collections.abc import Container
from dataclasses import dataclass

from duckflow.safety.commands.words import UNKNOWN, Call, Word

TABLE = """
as_administrator | sudo doas pkexec gosu su-exec chroot nsenter unshare systemd-run runuser
unknown_program | time timeout gtimeout nohup setsid nice ionice chrt taskset stdbuf unbuffer chronic caffeinate command
  builtin exec coproc noglob nocorrect busybox toybox fakeroot rlwrap winpty torsocks proxychains proxychains4 env
  flock watch
on_another_machine | ssh mosh
runs_code | strace ltrace valgrind entr xvfb-run npx bunx uvx
runs_code | uv poetry pipenv pdm hatch rye conda mamba | run
runs_code | bundle pnpm yarn npm mise pixi direnv | exec dlx x run
runs_code | docker podman nerdctl docker-compose podman-compose | run exec
runs_code | java | -jar
at_run_time | xargs gxargs parallel
"""
"""A row: why the wrapper is asked about | programs | words of which one must come first, if any."""
NOT_A_PROGRAM = re.compile(r"^-|^[A-Za-z_]\w*=|^[\d.]+[smhd]?$|^$")


@dataclass(frozen=True, slots=True)
class Behind:
    """What a wrapper runs: from the first program that is known, or else from the first word that may be one."""

    doubt: str
    words: tuple[Word, ...] = ()
    known: bool = False
    texts: tuple[str, ...] = ()
    """Words with spaces before it: whole command lines."""


def _read_table() -> dict[str, tuple[str, list[str]]]:
    rows = dict[str, tuple[str, list[str]]]()
    for line in re.sub(r"\n +", " ", TABLE).strip().splitlines():
        doubt, programs, *first = line.split("|")
        rows.update((program, (doubt.strip(), " ".join(first).split())) for program in programs.split())
    return rows


WRAPPERS = _read_table()


def look_behind(call: Call, known: Container[str]) -> Behind | None:
    """None when the call is no wrapper. Options and their values are not told apart: a known program ends the look."""
    if call.program not in WRAPPERS or (call.program == "command" and call.texts[:1] in (("-v",), ("-V",))):
        return None
    doubt, first = WRAPPERS[call.program]
    words = call.arguments
    if first:
        place = next((place for place, text in enumerate(call.texts[:3]) if text in first), None)
        if place is None:
            return None
        words = words[place + 1 :]
    added = (UNKNOWN,) if doubt == "at_run_time" else ()
    guess, texts = (), list[str]()
    for place, word in enumerate(words):
        if " " in word.text.strip():
            texts.append(word.text.removeprefix("-S").removeprefix("--split-string="))
        elif not NOT_A_PROGRAM.match(word.text):
            guess = guess or words[place:] + added
            if not word.text.isupper() and Call((word,)).program in known:
                return Behind(doubt, words[place:] + added, True, tuple(texts))
    return Behind(doubt, guess, False, tuple(texts))
