"""The project's own tests, checkers and builds: their programs, and the options that keep such a run harmless.

The table is used twice. The judge of commands recognises such a run, which a rule may allow (`project_run`), and the
shell tool treats it as a check (`tools/shell/checkers.py`). A row is written as in `reader_programs.py`. An option that
loads code, names another place for it or sends something away is in no row."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from duckflow.safety.commands.paths import TRUSTED_FOLDERS, Scene, is_outside, is_secret
from duckflow.safety.commands.reader_programs import Reader, read_table
from duckflow.safety.commands.reading_doubts import read_strictly
from duckflow.safety.commands.verdict import CommandFinding, ask
from duckflow.safety.commands.words import Call, Word
from duckflow.safety.environment import HARMLESS_VARIABLE
from duckflow.state.checks import CHECK_KINDS, CheckKind

TESTS = r"""
pytest, py.test | qvxslVhd r: k: m: n: W: p~ --tb: --maxfail: --lf --ff --nf --sw --last-failed --failed-first
  --new-first --stepwise --sw-skip --stepwise-skip --sw-reset --stepwise-reset --lfnf: --last-failed-no-failures:
  --exitfirst --no-header --no-summary --no-fold-skipped --force-short-summary --durations: --durations-min: --color
  --code-highlight: --quiet --verbose --verbosity: --report-chars: --capture: --show-capture: --showlocals
  --no-showlocals --full-trace --xfail-tb --deselect: --ignore@ --ignore-glob: --collect-only --co --keep-duplicates
  --collect-in-virtualenv --continue-on-collection-errors --noconftest --confcutdir@ --rootdir@ --import-mode: --assert:
  --strict --strict-markers --strict-config --disable-warnings --disable-pytest-warnings --pythonwarnings:
  --max-warnings: --disable-plugin-autoload --runxfail --cache-clear --cache-show --markers --fixtures --funcargs
  --fixtures-per-test --setup-show --setup-only --setup-plan --trace-config --version --help --doctest-modules
  --doctest-report: --doctest-glob: --doctest-ignore-import-errors --doctest-continue-on-failure --junitxml@
  --junit-xml@ --junitprefix: --junit-prefix: --log-level: --log-format: --log-date-format: --log-cli-level:
  --log-cli-format: --log-file@ --log-file-level: --log-auto-indent: --log-disable: --cov --cov-report: --no-cov
  --cov-branch --cov-append --cov-fail-under: --cov-context: --no-cov-on-fail --timeout: --session-timeout:
  --timeout-method: --numprocesses: --maxprocesses: --max-worker-restart: --dist: --maxschedchunk: --loadscope-reorder
  --no-loadscope-reorder --forked --reruns: --reruns-delay: --only-rerun: --count: --randomly-seed:
  --randomly-dont-reorganize --random-order --random-order-seed: --asyncio-mode: --asyncio-debug --anyio-mode:
  --hypothesis-seed: --hypothesis-show-statistics --hypothesis-verbosity: --hypothesis-explain --benchmark-only
  --benchmark-skip --benchmark-disable --benchmark-columns: --benchmark-sort: --no-migrations --nomigrations --create-db
  --reuse-db --slow --runslow --run-slow --sugar --picked
unittest | vqfbc k: --verbose --quiet --failfast --buffer --catch --locals --durations:
unittest discover | vqfbc s@ t@ p: k: --start-directory@ --top-level-directory@ --pattern: --verbose --quiet --failfast
  --buffer --catch --locals --durations:
python manage.py test | v: k: p: --pattern: --verbosity: --failfast --keepdb --noinput --no-input --parallel --tag:
  --exclude-tag: --reverse --timing --debug-mode --buffer --shuffle --durations: --no-color --force-color
doctest, nose2, green, ward, stestr run, behave, robot, prove, busted, ginkgo, gotestsum, ava, tap, sbt test,
  bazel test, dart test, cabal test, stack test, lein test, rebar3 eunit, dune runtest | vqrf j: --verbose --quiet
tox | qvl e: f: p: --quiet --verbose --parallel: --skip-missing-interpreters --listenvs
nox | lrR s: k: t: e: p: --sessions: --session: --keywords: --tags: --reuse-existing-virtualenvs --list --no-install
  --stop-on-first-error --error-on-missing-interpreters
jest | iob w: t: --ci --silent --verbose --coverage --runInBand --testNamePattern: --testPathPattern: --bail
  --onlyChanged --onlyFailures --no-coverage --no-cache --colors --noStackTrace --maxWorkers: --testTimeout:
  --passWithNoTests --detectOpenHandles --forceExit --findRelatedTests --changedSince: --expand --listTests --shard:
  --logHeapUsage --errorOnDeprecated
vitest, vitest run | t: --run --coverage --silent --bail: --testNamePattern: --no-color --passWithNoTests --maxWorkers:
  --minWorkers: --testTimeout: --retry: --changed --hideSkippedTests --no-coverage --shard: --allowOnly --isolate
  --no-isolate --globals --typecheck
mocha | bcC g: f: t: s: --grep: --fgrep: --invert --bail --recursive --timeout: --slow: --parallel --jobs: --exit
  --retries: --full-trace --color --no-color --forbid-only --forbid-pending --check-leaks --sort
playwright test | x g: j: --grep: --grep-invert: --headed --workers: --retries: --repeat-each: --max-failures:
  --project: --timeout: --quiet --list --shard: --last-failed --forbid-only
rspec | bw f: e: t: --example: --tag: --order: --seed: --fail-fast --only-failures --next-failure --backtrace --color
  --no-color --format: --profile --dry-run --verbose
ctest | VQNF R: E: L: j: C: --verbose --extra-verbose --output-on-failure --test-dir@ --parallel: --timeout: --quiet
  --rerun-failed --stop-on-failure --tests-regex: --label-regex: --show-only --progress --schedule-random
bats | ct j: f: r --recursive --filter: --tap --pretty --jobs: --count --timing --print-output-on-failure --verbose-run
phpunit | v --verbose --filter: --testsuite: --group: --exclude-group: --testdox --stop-on-failure --stop-on-error
  --colors --debug --no-coverage --no-progress --list-tests --order-by: --display-warnings --display-deprecations
node --test, bun test, mix test, swift test, deno test, flutter test, zig build test | v --test-name-pattern:
  --test-skip-pattern: --test-only --test-timeout: --test-concurrency: --coverage --quiet --experimental-test-coverage
  --bail --timeout: --only --filter: --skip: --parallel --trace --seed: --max-failures: --failed --stale --fail-fast
  --no-check
dotnet test | t v: c: f: --no-build --no-restore --nologo --verbosity: --filter: --configuration: --framework:
  --list-tests --blame --tl
go test | vxna p: --v --x --n --race --short --cover --count: --run: --skip: --list: --timeout: --bench: --benchmem
  --benchtime: --cpu: --parallel: --failfast --json --p: --covermode: --coverprofile@ --coverpkg: --shuffle: --tags:
  --vet: --fullpath --trimpath --a --msan --asan --mod: --fuzz: --fuzztime:
cargo test, cargo nextest run | qv p: j: F: --all --workspace --release --all-features --no-default-features --features:
  --lib --bins --bin: --test: --tests --doc --example: --examples --package: --no-run --no-fail-fast --locked --offline
  --frozen --quiet --verbose --all-targets --exclude: --jobs: --profile: --color: --message-format: --keep-going
  --future-incompat-report --nocapture --no-capture --retries: --test-threads: --bench: --benches --manifest-path@
"""
TYPES = r"""
mypy | v p: m: --strict --ignore-missing-imports --no-error-summary --error-summary --show-error-codes
  --hide-error-codes --python-version: --platform: --pretty --no-pretty --no-incremental --check-untyped-defs
  --disallow-untyped-defs --disallow-incomplete-defs --disallow-untyped-calls --disallow-any-generics --warn-unreachable
  --warn-unused-ignores --warn-redundant-casts --warn-return-any --no-implicit-optional --strict-optional
  --strict-equality --follow-imports: --namespace-packages --explicit-package-bases --show-column-numbers
  --show-error-context --show-error-end --show-absolute-path --no-color-output --color-output --verbose --package:
  --module: --exclude: --disable-error-code: --enable-error-code: --implicit-reexport --no-implicit-reexport
  --skip-version-check --no-namespace-packages --output: --cache-fine-grained
pyright, basedpyright | p@ --outputjson --level: --pythonversion: --pythonplatform: --project@ --warnings --stats
  --verbose --skipunannotated --dependencies --threads
pyre, pyre check, pytype, ty check, pyrefly check | k --noninteractive --keep-going
tsc, vue-tsc | p@ --noEmit --project@ --pretty --strict --skipLibCheck --incremental --listFiles --diagnostics
  --extendedDiagnostics --noErrorTruncation | needs=--noEmit
vue-tsc, vue-tsc | p@ --noEmit --project@ --pretty --skipLibCheck | needs=--noEmit
"""
LINTERS = r"""
ruff check | qve --quiet --verbose --select: --ignore: --extend-select: --extend-ignore: --statistics --no-cache
  --preview --no-preview --show-files --show-settings --diff --output-format: --no-fix --exit-non-zero-on-fix
  --target-version: --line-length: --exclude: --extend-exclude: --per-file-ignores: --respect-gitignore --isolated
  --force-exclude --ignore-noqa --silent --no-unsafe-fixes
ruff format, black | qvS l: t: --check --diff --quiet --verbose --line-length: --no-cache --color --no-color --fast
  --target-version: --exclude: --extend-exclude: --include: --preview --isolated --force-exclude --workers:
  --skip-string-normalization --skip-magic-trailing-comma | needs=--check,--diff
isort | cqv l: --check-only --check --diff --quiet --verbose --profile: --line-length: --skip: --skip-glob: --color
  --filter-files --skip-gitignore | needs=-c,--check-only,--check,--diff
flake8, pycodestyle, pyflakes | qv j: --max-line-length: --select: --ignore: --extend-ignore: --extend-select: --count
  --statistics --show-source --exclude: --extend-exclude: --filename: --max-complexity: --per-file-ignores: --jobs:
  --exit-zero --color: --benchmark --first --show-pep8 --format: --quiet --verbose --isolated
pylint | Ev d: e: j: r: --disable: --enable: --errors-only --score: --jobs: --reports: --max-line-length:
  --msg-template: --fail-under: --fail-on: --ignore: --ignore-patterns: --ignore-paths: --recursive: --confidence:
  --verbose --py-version: --exit-zero
lint-imports | v --verbose --no-cache --show-timings
bandit, vulture | rqvil f: --recursive --quiet --verbose --exclude: --severity-level: --confidence-level:
  --min-confidence: --skip: --format:
eslint | --quiet --max-warnings: --ext: --cache --no-color --color --no-ignore --ignore-pattern:
  --no-error-on-unmatched-pattern --no-warn-ignored --report-unused-disable-directives --debug --stats
prettier | clu --check --list-different --ignore-unknown --no-color --color --no-cache --loglevel: --log-level: |
  needs=-c,-l,--check,--list-different
biome check, biome lint, biome ci, stylelint, golangci-lint run | --quiet --verbose --max-diagnostics:
  --diagnostic-level: --colors: --no-errors-on-unmatched --max-warnings: --formatter: --timeout: --fast --new
  --allow-empty-input
rubocop | lSDP f: --only: --except: --format: --parallel --fail-level: --display-cop-names --extra-details --lint
  --force-exclusion --no-color --color
shellcheck | xaC s: e: i: o: S: f: --shell: --exclude: --include: --severity: --format: --external-sources
  --check-sourced --color --enable: --wiki-link-count:
go vet | v x --v --x --tags: --json
cargo clippy, cargo check | qv p: j: F: --all --workspace --all-targets --all-features --no-default-features --release
  --tests --lib --bins --bin: --test: --examples --benches --locked --offline --frozen --quiet --verbose --package:
  --features: --exclude: --jobs: --profile: --color: --message-format: --keep-going --no-deps --manifest-path@
cargo fmt | qv p: --check --all --quiet --verbose --package: | needs=--check
"""
BUILDS = r"""
go build | vxna o@ --v --x --n --a --race --tags: --trimpath --mod: --p: --o@
cargo build | qv p: j: F: --all --workspace --release --all-targets --all-features --no-default-features --lib --bins
  --bin: --tests --examples --benches --locked --offline --frozen --quiet --verbose --package: --features: --exclude:
  --jobs: --profile: --color: --message-format: --keep-going --manifest-path@
compileall, py_compile, javac, rustc, gcc, g++, cc, c++, clang, clang++, ghc, gfortran, kotlinc, scalac | qc o@
dotnet build, swift build, zig build, mix compile | v: c: --no-restore --nologo --configuration: --verbosity: --tl
  --warnings-as-errors --force
tsc | b p@ --build --project@ --pretty --strict --skipLibCheck --incremental --force --verbose --dry --diagnostics
"""
TASK_RUNNERS = r"""
make, gmake | ksBwO j: l: --silent --quiet --jobs: --keep-going --always-make --no-print-directory --print-directory
  --output-sync --trace --warn-undefined-variables --load-average:
npm, npm run, pnpm, pnpm run, yarn, yarn run, bun run | s --silent --quiet --if-present --loglevel: --workspace:
  --workspaces --color --no-color
just, task, rake | v --verbose --quiet --silent --no-color
gradle, gradlew, mvn, mvnw | qoeBXi --quiet --offline --no-daemon --console: --tests: --info --warn --stacktrace
  --continue --parallel --rerun-tasks --batch-mode --no-transfer-progress --errors --fail-at-end --fail-fast
  --build-cache --no-build-cache
"""
TARGET = re.compile(
    r"(?P<tests>tests?|t|check|checks|verify|unit|coverage|ci)|(?P<lint>lint)|(?P<types>types?|typecheck|vet)"
    r"|(?P<build>build|all|compile|package|assemble)"
)
TARGET_PART = re.compile(r"[:_-]")
PASSES_ON = ("npm", "pnpm", "yarn", "bun", "task")
"""Task runners that pass the words after `--` on to their script; other task runners take them as further targets."""
COUNTED = re.compile(r"-\w*[jl]|--(?:jobs|load-average)")
"""Matches options that are followed by a number of parallel jobs."""
SCRIPTED = ("npm", "pnpm", "yarn")
"""Package managers that take only `test` and `t` for scripts; any other first word is a command of their own."""
MAKES = ("make", "gmake")
LONGEST_NAME = 3
"""The largest number of words in the name of a program."""


class ProjectProgram(NamedTuple):
    """A known tool of a project (test runner, linter, task runner …) that a command begins with."""

    name: str
    kind: CheckKind | None
    """The kind of check. It is None for a task runner, whose target decides."""
    reader: Reader
    arguments: int
    """The number of the word with which the program's arguments begin."""


@cache
def _programs() -> dict[str, list[tuple[CheckKind | None, Reader]]]:
    tables: tuple[tuple[CheckKind | None, str], ...] = (
        *(("tests", TESTS), ("types", TYPES), ("lint", LINTERS), ("build", BUILDS)),
        (None, TASK_RUNNERS),
    )
    rows = dict[str, list[tuple[CheckKind | None, Reader]]]()
    for kind, table in tables:
        for program, reader in read_table(table).items():
            rows.setdefault(program, []).append((kind, reader))
    return rows


def programs_in(words: Sequence[str]) -> Iterator[ProjectProgram]:
    """Yields the rows of the tables that match the beginning of these words, the longest name first."""
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        name = " ".join(words[:length])
        for kind, reader in _programs().get(name, ()):
            yield ProjectProgram(name, kind, reader, length)


def names_program(words: Sequence[str]) -> bool:
    """Says whether a call names a test runner, linter, build tool or task runner somewhere, even after `npx` or
    `xargs`. Such a program runs code that files of the work folder name."""
    names = [posixpath.basename(word) for word in words]
    return any(any(programs_in(names[start_index:])) for start_index in range(len(names)))


def check_kind(words: Sequence[str]) -> CheckKind | None:
    """Returns the kind of check that a command is, by its program, the target of a task runner and the options that it
    needs."""
    for program in programs_in(words):
        arguments = words[program.arguments :]
        needed_words = program.reader.listed("needs")
        if program.kind is None:
            kind = target_kind(program.name, arguments)
        else:
            kind = program.kind if not needed_words or not set(needed_words).isdisjoint(arguments) else None
        if kind:
            return kind
    return None


def target_kind(program: str, arguments: Sequence[str]) -> CheckKind | None:
    """Returns the kind of check that a task runner is told to do."""
    targets = targets_in(program, arguments)
    if program in SCRIPTED and targets[:1] not in (["test"], ["t"]):
        return None
    # Without a target make builds; other runners then do something that is not stated.
    target_names = targets or (["all"] if program in MAKES else [])
    target_matches = [TARGET.fullmatch(TARGET_PART.split(text)[0]) for text in target_names]
    kinds = {match.lastgroup if match else None for match in target_matches}
    kind = kinds.pop() if len(kinds) == 1 else None
    return next((known_kind for known_kind in CHECK_KINDS if known_kind == kind), None)


def targets_in(program: str, arguments: Sequence[str]) -> list[str]:
    """Returns every target that a task runner is told to make or run."""
    end_index = arguments.index("--") if "--" in arguments else len(arguments)
    count_indexes = {index + 1 for index, text in enumerate(arguments[:end_index]) if COUNTED.fullmatch(text)}
    target_names = [
        text
        for index, text in enumerate(arguments[:end_index])
        if not text.startswith("-") and not (text.isdecimal() and index in count_indexes)
    ]
    return target_names if program.split()[0] in PASSES_ON else [*target_names, *arguments[end_index + 1 :]]


FINDINGS = {"tests": "runs_tests", "types": "runs_linters", "lint": "runs_linters", "build": "runs_builds"}
PASSED_ON = re.compile(
    r"--(?:coverage|ci|run|runInBand|silent|verbose|bail|watch=false|watchAll=false|nocapture|ignored|exact|quiet"
    r"|test-threads=\d+)|-[DWA]|-[qvi]+"
)
"""Options after `--` that only change how much is run or shown."""
NUMBERED = r"-?[\d.]+[smhd]?"
WRAPPER = re.compile(
    rf"(?:timeout(?: (?:-k|-s) \w+| --foreground| --preserve-status)* {NUMBERED}|time(?: -p)?|nice(?: -n {NUMBERED})?"
    r"|stdbuf(?: -\w+)+|uv run(?: (?:--frozen|--locked|--no-sync|--offline|-q|--quiet))*|(?:poetry|pipenv|pdm|rye) run"
    r"|bundle exec|pnpm exec|npx(?: (?:--no-install|--no|--yes|-y))*) "
)
MODULE = re.compile(r"(?P<python>(?:[\w./-]*/)?python[\d.]*)(?: -[BuPEsS]+)* -m ")
MOST_WRAPPERS = 8
LANGUAGES = frozenset(("python", "pypy", "node", "nodejs", "ruby", "perl", "php", "lua"))
VERSION = re.compile(r"-[vV]|--version|--help|-h")
SEARCHED = "PYTHONPATH"
"""The variable by which a command may add folders of the project to Python's search path."""
USUAL = (".venv/bin", "venv/bin", "node_modules/.bin", "vendor/bin")
INSTALLED = re.compile(r"(?:^|/)(?:\.venv/bin|venv/bin|node_modules/\.bin|vendor/bin)$")
OWN_SCRIPTS = ("./gradlew", "./mvnw")


def project_run(call: Call, scene: Scene) -> CommandFinding | None:
    """Returns one finding for the whole call when it runs a tool of the project, or None for any other call."""
    if scene.place == "elsewhere" or not call.words or not all(word.literal and word.known for word in call.words):
        return None
    if not all(_harmless(name, value, scene) for name, value in call.assignments):
        return None
    words = _unwrapped(call.words, scene)
    if not words or not _in_place(words[0], scene):
        return None
    texts = [_name(words[0]), *(word.text for word in words[1:])]
    for program in programs_in(texts):
        arguments = texts[program.arguments :]
        kind = program.kind or target_kind(program.name, arguments)
        if kind and _is_plain(words[program.arguments :], program.reader, scene):
            # A rule identifies a task runner by its targets, too.
            targets = [] if program.kind else targets_in(program.name, arguments)
            name = " ".join([program.name.removesuffix(" discover"), *targets])
            return ask(FINDINGS[kind], program="".join(_origins(call, words, scene)) + name)
    return None


def _origins(call: Call, words: tuple[Word, ...], scene: Scene) -> Iterator[str]:
    """Yields the places that a run takes its code from, where they are not the usual ones of the project. A rule for a
    tool must not cover the tool of the same name from elsewhere, or another folder's settings and targets."""
    if scene.where:
        yield f"cd {scene.where} && "
    words_before = call.words[: len(call.words) - len(words)]
    assigned_texts = [f"{name}={value.text}" for name, value in call.assignments] + [word.text for word in words_before]
    yield from (f"{text} " for text in assigned_texts if text.startswith(f"{SEARCHED}="))
    for word in (*words_before, words[0]):
        folder = posixpath.dirname(word.text)
        top_folder = scene.facts.folder
        inner_folder = (
            posixpath.relpath(folder, top_folder)
            if top_folder and posixpath.isabs(folder)
            else posixpath.normpath(folder)
        )
        if INSTALLED.search(folder) and inner_folder not in USUAL:
            yield f"{inner_folder}/"


def undressed(call: Call, scene: Scene) -> Call:
    """Removes wrappers from the call of an interpreter: those that only set a time limit, harmless variables or an
    environment of the project. Any other call is returned as it is."""
    if scene.place == "elsewhere" or not all(word.literal and word.known for word in call.words):
        return call
    if not all(_harmless(name, value, scene) for name, value in call.assignments):
        return call
    words = _without_wrappers(call.words, scene)
    if len(words) < 2 or not _in_place(words[0], scene):
        return call
    inner_call = replace(call, words=(Word(posixpath.basename(words[0].text)), *words[1:]), assignments=())
    return inner_call if inner_call.program in LANGUAGES and not VERSION.fullmatch(words[1].text) else call


def _is_plain(arguments: Sequence[Word], reader: Reader, scene: Scene) -> bool:
    """Says whether all options are known and all paths are inside the project."""
    read_arguments = read_strictly([_long(word) for word in arguments], reader)
    needed_options = reader.listed("needs")
    if read_arguments.unknown or (needed_options and read_arguments.given.isdisjoint(needed_options)):
        return False
    return all(_harmless_operand(word, scene) for word in (*read_arguments.operands, *read_arguments.paths))


def _name(program: Word) -> str:
    name = posixpath.basename(program.text)
    return "pytest" if name == "py.test" else "python" if re.fullmatch(r"python[\d.]+", name) else name


def _long(word: Word) -> Word:
    """Returns a long option with two dashes; programs such as go write long options with one dash."""
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
    return bool(re.fullmatch(HARMLESS_VARIABLE, name))


def _in_place(program: Word, scene: Scene) -> bool:
    """Says whether the program is where the system or an installer has put it, such as in `.venv/bin`. If the model has
    put another program there, the sandbox lets it do no more than the model's other code."""
    folder = posixpath.dirname(program.text)
    if folder in TRUSTED_FOLDERS or program.text in OWN_SCRIPTS:
        return True
    return bool(INSTALLED.search(folder)) and not is_outside(program, scene)


def _unwrapped(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Returns the words without wrappers and without the interpreter that runs a module (`python -m`)."""
    words = _without_wrappers(words, scene)
    module = MODULE.match(_joined(words))
    if not module:
        return words
    return words[module[0].count(" ") :] if _in_place(Word(module["python"]), scene) else ()


def _joined(words: tuple[Word, ...]) -> str:
    return " ".join("\0" if re.search(r"\s", word.text) else word.text for word in words) + " "


def _without_wrappers(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Removes words that only set a time limit, variables or an environment for a program: `timeout 60`, `uv run`."""
    for _ in range(MOST_WRAPPERS):
        if words and words[0].text == "env":
            assignments = [word.text.partition("=") for word in takewhile(lambda word: "=" in word.text, words[1:])]
            if not all(_harmless(name, Word(value), scene) for name, _, value in assignments):
                return ()
            words = words[1 + len(assignments) :]
        elif wrapper := WRAPPER.match(_joined(words)):
            words = words[wrapper[0].count(" ") :]
        else:
            return words
    return ()
