"""Runs of a project's own tests, linters and builds, told apart from other code by strict tables.

Such a run executes the project's code, so it asks like any other command. It is named for what it is: a rule may then
cover it however it is called, and its risk is that of an edit where a sandbox and undo stand behind it. A word, option
or place that is not known here makes it a command like others."""

import posixpath
import re
from collections.abc import Sequence

from duckflow.safety.commands.paths import TRUSTED_FOLDERS, Scene, is_outside, is_secret
from duckflow.safety.commands.readers import Reader, read_table
from duckflow.safety.commands.reading import read_strictly
from duckflow.safety.commands.verdict import CommandFinding, ask
from duckflow.safety.commands.words import Call, Word

TESTS = r"""
pytest, py.test | qvxsl r: k: m: n: --tb: --maxfail: --lf --ff --nf --sw --last-failed --failed-first --new-first
  --stepwise --exitfirst --no-header --no-summary --durations: --color --quiet --verbose --capture: --showlocals
  --deselect: --ignore@ --collect-only --co --strict-markers --strict-config --cov --cov-report: --no-cov --cov-branch
  --disable-warnings --timeout: --dist: --setup-show --runxfail
unittest | vqfbc k: --verbose --quiet --failfast --buffer --locals
unittest discover | vqfb s@ t@ p: k: --start-directory@ --top-level-directory@ --pattern: --verbose --quiet --failfast
tox | qv e: --quiet --verbose
nox | s: k: --sessions:
jest | iob t: --ci --silent --verbose --coverage --runInBand --testNamePattern: --bail --onlyChanged --no-coverage
vitest | t: --run --coverage --silent --bail: --testNamePattern:
mocha | b g: --grep: --bail --recursive --timeout:
rspec, ctest, bats, phpunit | v --verbose
node --test, bun test, mix test, swift test, deno test, flutter test | v --test-name-pattern: --coverage --quiet
dotnet test | v: --no-build --no-restore --nologo --verbosity: --filter: --configuration:
go test | v --v --race --short --cover --count: --run: --timeout: --bench: --cpu: --parallel: --failfast --json --p:
  --covermode: --shuffle:
cargo test, cargo nextest run | qv p: j: --all --workspace --release --all-features --no-default-features --features:
  --lib --bins --bin: --test: --tests --doc --examples --package: --no-run --no-fail-fast --locked --offline --quiet
  --verbose --all-targets
"""
LINTERS = r"""
ruff check | q --quiet --select: --ignore: --statistics --no-cache --preview --show-files --diff
ruff format, black | q l: --check --diff --quiet --line-length: --no-cache | needs=--check,--diff
isort | cq --check-only --check --diff --quiet --profile: | needs=-c,--check-only,--check,--diff
flake8, pycodestyle, pyflakes | q --max-line-length: --select: --ignore: --extend-ignore: --count --statistics
pylint | E d: e: j: --disable: --enable: --errors-only --score: --jobs:
mypy | p: --strict --ignore-missing-imports --no-error-summary --show-error-codes --python-version: --pretty
  --no-incremental --check-untyped-defs
pyright, basedpyright | p@ --outputjson --level: --pythonversion: --project@ --warnings --stats
lint-imports | v --verbose
tsc | p@ --noEmit --project@ --pretty --strict --skipLibCheck | needs=--noEmit
eslint | --quiet --max-warnings: --ext: --cache --no-color --color
prettier | cl --check --list-different | needs=-c,-l,--check,--list-different
biome check, biome lint, stylelint, golangci-lint run | --quiet
shellcheck | x s: e: S: f: --shell: --exclude: --severity: --format:
go vet | v --v
cargo clippy, cargo check | qv p: --all --workspace --all-targets --all-features --release --tests --lib --locked
  --offline --quiet --package: --features:
cargo fmt | --check --all | needs=--check
"""
BUILDS = r"""
go build | v o@ --v --race
cargo build | qv p: j: --all --workspace --release --all-targets --all-features --lib --bins --bin: --locked --offline
  --quiet --package: --features:
dotnet build, swift build | v: --no-restore --nologo --configuration:
tsc | p@ b --build --project@ --pretty --strict
"""
TASK_RUNNERS = r"""
make, gmake | ksB j: --silent --jobs: --keep-going --no-print-directory
npm, npm run, pnpm, pnpm run, yarn, yarn run, bun run | s --silent --quiet
just, task, rake |
gradle, gradlew, mvn, mvnw | qo --quiet --offline --no-daemon --console: --tests: --info
"""
"""Programs whose next word names what they do."""
TARGET = re.compile(
    r"(?P<tests>tests?|t|check|checks|verify|unit|coverage|ci)|(?P<linters>lint|types?|typecheck|type-check|vet)"
    r"|(?P<builds>build|all|compile|package|assemble)"
)
TARGET_PART = re.compile(r"[:_-]")
SCRIPTED = ("npm", "pnpm", "yarn")
"""Their short forms take only `test` and `t`; any other name would be a command of their own."""
PASSED_ON = re.compile(
    r"--(?:coverage|ci|run|runInBand|silent|verbose|bail|watch=false|watchAll=false|nocapture|ignored|exact|quiet"
    r"|test-threads=\d+)|-[DWA]|-[qvi]+"
)
"""Options after `--` that only say how much is run or shown."""
NUMBERED = r"-?[\d.]+[smhd]?"
WRAPPER = re.compile(
    rf"(?:timeout(?: (?:-k|-s) \w+| --foreground| --preserve-status)* {NUMBERED}|time(?: -p)?|nice(?: -n {NUMBERED})?"
    r"|stdbuf(?: -\w+)+|uv run(?: (?:--frozen|--locked|--no-sync|--offline|-q|--quiet))*|(?:poetry|pipenv|pdm|rye) run"
    r"|bundle exec|pnpm exec|npx(?: (?:--no-install|--no|--yes|-y))*) "
)
MODULE = re.compile(r"(?P<python>(?:[\w./-]*/)?python[\d.]*)(?: -[BuPEsS]+)* -m ")
VARIABLE = re.compile(
    r"(?:CI|NO_COLOR|FORCE_COLOR|NODE_ENV|TZ|TERM|COLUMNS|LANG|LC_[A-Z]+|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    r"|RUST_BACKTRACE)"
)
"""Variables that change how a program speaks, not what it runs."""
SEARCHED = "PYTHONPATH"
"""This variable may name folders of the project."""
INSTALLED = re.compile(r"(?:^|/)(?:\.venv/bin|venv/bin|node_modules/\.bin|vendor/bin)$")
OWN_SCRIPTS = ("./gradlew", "./mvnw")


def _by_program() -> dict[str, list[tuple[str, Reader]]]:
    rows = dict[str, list[tuple[str, Reader]]]()
    for kind, table in (("tests", TESTS), ("linters", LINTERS), ("builds", BUILDS), ("", TASK_RUNNERS)):
        for program, reader in read_table(table).items():
            rows.setdefault(program, []).append((kind, reader))
    return rows


PROGRAMS = _by_program()


def project_run(call: Call, scene: Scene) -> CommandFinding | None:
    """The one finding that stands for the whole call; nothing when it is a call like others."""
    words = call.words
    if scene.place == "elsewhere" or not words or not all(word.literal and word.known for word in words):
        return None
    if not all(_harmless(name, value, scene) for name, value in call.assignments):
        return None
    words = _unwrapped(words, scene)
    if not words or not _in_place(words[0], scene):
        return None
    for length in (3, 2, 1):
        name = _name(words[:length])
        for kind, reader in PROGRAMS.get(name, ()):
            run = _task(name, words[length:], reader, scene) if not kind else _plain(words[length:], reader, scene)
            if run is not None:
                return ask(f"runs_{kind or run}", program=_tool(name, kind, words[length:]))
    return None


def _plain(arguments: Sequence[Word], reader: Reader, scene: Scene) -> str | None:
    """Options that are known and paths of the project: then it is such a run."""
    read = read_strictly([_long(word) for word in arguments], reader)
    needed = reader.listed("needs")
    if read.unknown or (needed and read.given.isdisjoint(needed)):
        return None
    fine = all(_harmless_operand(word, scene) for word in (*read.operands, *read.paths))
    return "" if fine else None


def _task(program: str, arguments: Sequence[Word], reader: Reader, scene: Scene) -> str | None:
    """The kind of what a task runner is told to do."""
    if _plain(arguments, reader, scene) is None:
        return None
    targets = _targets(arguments)
    if program in SCRIPTED and targets[:1] not in (["test"], ["t"]):
        return None
    # Without a target make builds; other runners then do something that is not said.
    named = targets or (["all"] if program in ("make", "gmake") else [])
    matches = [TARGET.fullmatch(TARGET_PART.split(text)[0]) for text in named]
    kinds = {match.lastgroup if match else None for match in matches}
    return kinds.pop() if len(kinds) == 1 else None


def _targets(arguments: Sequence[Word]) -> list[str]:
    texts = [word.text for word in arguments]
    before = texts[: texts.index("--")] if "--" in texts else texts
    return [text for text in before if not text.startswith("-") and not text.isdigit()]


def _tool(program: str, kind: str, arguments: Sequence[Word]) -> str:
    """The name by which a rule knows it: of a task runner with what it is told to do."""
    return program.removesuffix(" discover") if kind else " ".join([program, *_targets(arguments)])


def _name(words: Sequence[Word]) -> str:
    first = posixpath.basename(words[0].text)
    return " ".join(["pytest" if first == "py.test" else first, *(word.text for word in words[1:])])


def _long(word: Word) -> Word:
    """Programs such as go write long options with one dash."""
    if re.match(r"-[a-z]{2,}(?:=|$)", word.text) and not re.fullmatch(r"-[qvxslrb]+\w?", word.text):
        return Word(f"-{word.text}")
    return word


def _harmless_operand(word: Word, scene: Scene) -> bool:
    text = word.text
    if text.startswith("-"):
        return bool(PASSED_ON.fullmatch(text))
    return text[:1] != "@" and "=" not in text and not is_outside(word, scene) and not is_secret(text)


def _harmless(name: str, value: Word, scene: Scene) -> bool:
    if not (value.literal and value.known):
        return False
    if name == SEARCHED:
        return not any(is_outside(Word(path), scene) for path in value.text.split(":"))
    return bool(VARIABLE.fullmatch(name))


def _in_place(program: Word, scene: Scene) -> bool:
    """Where the system or an installer has put it. The folder's own copy is no more than the model's code may be: the
    sandbox holds it."""
    folder = posixpath.dirname(program.text)
    if folder in TRUSTED_FOLDERS or program.text in OWN_SCRIPTS:
        return True
    return bool(INSTALLED.search(folder)) and not is_outside(program, scene)


def _unwrapped(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Without what only says how long or from which environment it runs."""
    while True:
        text = " ".join(word.text if " " not in word.text else "\0" for word in words) + " "
        if words and words[0].text == "env":
            words = words[1:]
            while words and "=" in words[0].text:
                name, _, value = words[0].text.partition("=")
                if not _harmless(name, Word(value), scene):
                    return ()
                words = words[1:]
        elif module := MODULE.match(text):
            if not _in_place(Word(module["python"]), scene):
                return ()
            return words[module[0].count(" ") :]
        elif wrapper := WRAPPER.match(text):
            words = words[wrapper[0].count(" ") :]
        else:
            return words
