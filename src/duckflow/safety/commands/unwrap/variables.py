"""Variables that change what other programs do, and so what a harmless-looking command runs."""

import re
from collections.abc import Iterator
from dataclasses import replace

from duckflow.safety.commands.invocation import Assignment, Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.text.words import Word, joined
from duckflow.safety.commands.verdict import ask

ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
CHANGES_WHAT_RUNS = re.compile(
    r"^(?:PATH|LD_\w+|DYLD_\w+|IFS|ENV|BASH_ENV|BASHOPTS|SHELLOPTS|SHELL|PS4|PROMPT_COMMAND|CDPATH|GLOBIGNORE"
    r"|GIT_\w+|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|EDITOR|VISUAL|BROWSER|\w*PAGER|\w*EDITOR"
    r"|PYTHON(?:PATH|STARTUP|HOME|WARNINGS|BREAKPOINT)|PERL5?(?:LIB|OPT|5OPT|5LIB|5DB)|RUBY(?:OPT|LIB)"
    r"|NODE_(?:OPTIONS|PATH)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|CLASSPATH|GCONV_PATH|TERMINFO|HOME|TMPDIR"
    r"|RUSTC_WRAPPER|RUSTC|CC|CXX|MAKEFLAGS|GOFLAGS|npm_config_\w+|PIP_\w+|UV_\w+"
    r"|RIPGREP_CONFIG_PATH|TAR_OPTIONS|SSH_ASKPASS|SUDO_ASKPASS|XDG_CONFIG_\w+)$"
)
HOLDS_A_COMMAND = re.compile(
    r"^(?:GIT_(?:SSH_COMMAND|SSH|PAGER|EDITOR|SEQUENCE_EDITOR|ASKPASS|EXTERNAL_DIFF|PROXY_COMMAND)"
    r"|PAGER|MANPAGER|EDITOR|VISUAL|BROWSER|PROMPT_COMMAND|SSH_ASKPASS|RUSTC_WRAPPER)$"
)


def judge_assignments(assignments: tuple[Assignment, ...]) -> Iterator[Opinion]:
    for assignment in assignments:
        if HOLDS_A_COMMAND.match(assignment.name) and assignment.value.text:
            yield RunsText(assignment.value.text)
        if CHANGES_WHAT_RUNS.match(assignment.name):
            yield ask("changes_what_runs", name=assignment.name)
        else:
            yield ask("sets_variable", name=assignment.name)


def unwrap_env(call: Invocation) -> Iterator[Opinion]:
    """`env NAME=value … program`; `-S` holds a whole command line."""
    words = list(call.arguments)
    assignments = list[Assignment]()
    while words:
        text = words[0].text
        if text.startswith(("-S", "--split-string")):
            value = text.partition("=")[2] if text.startswith("--") else text[2:]
            yield RunsText(joined((Word(value), *words[1:])).text)
            return
        if text in ("-u", "--unset", "-C", "--chdir", "-P"):
            del words[:2]
        elif text.startswith("-"):
            del words[0]
        elif ASSIGNMENT.match(text):
            name, _, value = text.partition("=")
            assignments.append(Assignment(name, replace(words.pop(0), text=value)))
        else:
            break
    yield from judge_assignments(tuple(assignments))
    if words:
        yield Runs(tuple(words))
    else:
        yield ask("shows_environment")
