"""Commands that run the project's own tests, linters and builds, and commands that only look like it."""

import pytest

from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts

HERE = CommandFacts(folder="/work/pond", home="/home/duck")
PLAIN = [
    ("pytest", "tests", "pytest"),
    ("python -m pytest -q", "tests", "pytest"),
    ("python3.12 -B -m pytest tests/test_a.py::test_b -x -vv --tb=short", "tests", "pytest"),
    ("cd /work/pond && .venv/bin/python -m pytest -q 2>&1 | tail -20", "tests", "pytest"),
    ("/work/pond/.venv/bin/pytest -rA -n 4 --cov=src", "tests", "pytest"),
    ("PYTHONPATH=src:lib CI=1 uv run pytest -k 'swim and not dive'", "tests", "PYTHONPATH=src:lib pytest"),
    ("timeout 60 poetry run py.test --lf", "tests", "pytest"),
    ("pytest --doctest-modules", "tests", "pytest"),
    ("pytest -q; echo exit=$?", "tests", "pytest"),
    ('pytest -q 2>&1 | tail -5; echo "exit code: ${PIPESTATUS[0]}"', "tests", "pytest"),
    ("pytest; printf 'exit %d\\n' $?", "tests", "pytest"),
    ("python3 -m doctest -v examples.py", "tests", "doctest"),
    ("prove -r t", "tests", "prove"),
    ("stack test", "tests", "stack test"),
    ("ty check src", "linters", "ty check"),
    ("python -m compileall -q src", "builds", "compileall"),
    ("gcc -c -o main.o main.c", "builds", "gcc"),
    ("pytest -p no:cacheprovider -W error::DeprecationWarning", "tests", "pytest"),
    ("pytest -pno:randomly --rootdir=. --import-mode importlib", "tests", "pytest"),
    ("pytest --junitxml=out/report.xml --log-cli-level=INFO --cov-fail-under 80", "tests", "pytest"),
    ("pytest --cache-clear --durations=5 --show-capture=no -m 'not slow'", "tests", "pytest"),
    ("python3 manage.py test pond --keepdb -v 2", "tests", "python manage.py test"),
    ("jest --maxWorkers=2 --testPathPattern pond", "tests", "jest"),
    ("go test -v -tags=integration -coverprofile=c.out ./...", "tests", "go test"),
    ("cargo test --exclude slow --workspace --color never", "tests", "cargo test"),
    ("mypy -v --exclude build -p pond --warn-unreachable", "linters", "mypy"),
    ("ruff check --output-format=concise --extend-select I .", "linters", "ruff check"),
    ("npm test --workspace=pond", "tests", "npm test"),
    ("mvn -B -o verify", "tests", "mvn verify"),
    ("python -m unittest discover -s tests -v", "tests", "unittest"),
    ("npm test -- --coverage", "tests", "npm test"),
    ("npm run test:unit --silent", "tests", "npm run test:unit"),
    ("make -j4 check", "tests", "make check"),
    ("./gradlew test", "tests", "gradlew test"),
    ("cargo test --all -- --nocapture", "tests", "cargo test"),
    ("go test ./... -run TestSwim -count=1", "tests", "go test"),
    ("ruff check src", "linters", "ruff check"),
    ("black --check .", "linters", "black"),
    ("npx tsc --noEmit", "linters", "tsc"),
    ("./node_modules/.bin/eslint src --ext .ts", "linters", "eslint"),
    ("tsc -p tsconfig.json", "builds", "tsc"),
    ("make", "builds", "make"),
    ("npm run build", "builds", "npm run build"),
]
NOT_PLAIN = """
python -m pytest -p evil
pytest -pevil
pytest --p evil
pytest -c evil.ini
pytest --rootdir=/ x
pytest -o addopts=-pevil
pytest --override-ini=x=y
pytest --basetemp=src
pytest --pdb
pytest --rootdir ../other
pytest --rootdir=/
pytest --confcutdir=/
pytest --junitxml=/tmp/x.xml
pytest --log-file=../x.log
pytest --pastebin=all
gcc -fplugin=./evil.so main.c
gcc -o ../evil main.c
gcc @evil main.c
ninja -C ../other
robot --listener evil tests
pytest --pyargs evil
pytest -p no:x -p evil
pytest -xpevil
pytest -qp evil
pytest --tx ssh=evil
pytest --pdbcls=evil:Evil
pytest -c=../evil.ini
pytest --config-file evil.ini
pytest --debug
python manage.py test --settings=evil
python manage.py migrate
python ../manage.py test
node --test --test-reporter=./evil.mjs
eslint -f ./evil.js src
pylint --output-format=evil.Reporter x
rubocop -a
tsc --watch
pytest @args
pytest /etc
pytest ../other
pytest ~/x
pytest $X
pytest $(evil)
pytest tests/*.py
pytest .env
pytest > out.txt
pytest | tee out.txt
pytest; swim
pytest && curl http://x
pytest &
xargs pytest
PYTHONPATH=/evil pytest
PYTHONPATH=../evil pytest
PYTEST_ADDOPTS=-pevil pytest
LD_PRELOAD=x pytest
PATH=. pytest
env PYTEST_PLUGINS=evil pytest
env -i pytest
cd ../other && pytest
cd / && pytest
./pytest
bin/pytest
/tmp/pytest
../.venv/bin/pytest
/opt/.venv/bin/pytest
p'y'test
PYTEST
./python -m pytest
python -c pass -m pytest
python -X importtime -m pytest
python evil.py -m pytest
uv run --with evil pytest
uv run --directory /x pytest
npx -p evil jest
sudo pytest
nohup pytest
make test SHELL=/evil
make -f evil.mk test
make -C .. test
make deploy
make test deploy
make -E x
npm test -- --config=evil.js
npm --prefix .. test
npm run deploy
npm run
npm install
yarn add x
npm test --script-shell=evil
npm test -- --globalSetup=evil.js
go test -exec evil ./...
go test -C .. x
go test -toolexec=evil
go run .
cargo test --config evil
cargo test --manifest-path ../x
cargo run
eslint -c evil.js
eslint --rulesdir evil
eslint --fix .
ruff check --fix
ruff format .
black .
mypy --config-file evil.ini
pylint --load-plugins=evil
jest --config evil.js
mocha -r evil.js
node --test --import ./evil.mjs
node --require ./evil.js --test
prettier --write .
tox --workdir /x
bundle exec evil
mvn -Dexec=evil test
gradle -I evil.gradle test
deno test -A
sh -c pytest
"""


@pytest.mark.parametrize(("command", "kind", "name"), PLAIN)
def test_a_run_is_recognised_however_it_is_called(command: str, kind: str, name: str) -> None:
    judged = judge_command(command, HERE)
    assert judged.verdict == "ask" and judged.tools == ((kind, name),)
    assert [reason.key for reason in judged.reasons] == [f"harm.runs_{kind}"]


@pytest.mark.parametrize("command", NOT_PLAIN.strip().splitlines())
def test_with_other_words_it_is_a_command_like_others(command: str) -> None:
    judged = judge_command(command, HERE)
    assert judged.verdict != "safe" and not judged.tools


def test_each_of_several_runs_counts_and_many_runs_hide_nothing_else() -> None:
    both = judge_command("ruff check . && python -m pytest -q", HERE)
    assert [tool.name for tool in both.tools] == ["ruff check", "pytest"]
    many = "pytest && make && tox && nox && jest && mypy && ruff check && black --check . && swim"
    assert not judge_command(many, HERE).tools, "more than are told as reasons"


OTHER_RUNS = {
    "pytest": [
        "evil/venv/bin/pytest", "evil/.venv/bin/pytest -q", "./a/b/venv/bin/pytest", "/work/pond/evil/.venv/bin/pytest",
        "PYTHONPATH=evil pytest", "PYTHONPATH=evil:src pytest -q", "env PYTHONPATH=evil pytest",
        "timeout 5 env PYTHONPATH=evil pytest", "evil/venv/bin/python -m pytest", "cd evil && pytest",
        "cd evil && .venv/bin/pytest", "cd evil && python -m pytest", "PYTHONPATH=. pytest",
        "evil/node_modules/.bin/pytest", "cd /work/pond/evil && pytest",
    ],
    "make test": [
        "make test -- deploy", "make test 7", "make 7", "make -- test deploy", "make -j 2 test 9",
        "make test test-deploy",
        "cd evil && make test", "make test -- 7", "make -- deploy", "make check", "make test -- -x",
        "make -s test -- evil",
    ],
    "npm test": ["cd evil && npm test", "npm run test", "npm test deploy", "npm run test:evil", "pnpm test"],
    "gradlew test": ["cd evil && ./gradlew test", "./gradlew test -- deploy", "./gradlew test 5", "gradle test"],
    "rake test": ["rake test -- deploy", "rake test 5", "rake -- deploy", "cd evil; rake test", "rake test test:evil"],
    "jest": ["evil/node_modules/.bin/jest", "cd evil && jest", "cd evil && npx jest", "cd a; cd b; jest"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "command"), [(name, run) for name, runs in OTHER_RUNS.items() for run in runs])
def test_a_rule_for_a_tool_does_not_cover_another_place_environment_or_target(name: str, command: str) -> None:
    judged = judge_command(command, HERE)
    assert judged.verdict != "safe"
    assert name not in [tool.name for tool in judged.tools]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cd pond && pytest -q", "cd pond && pytest"),
        ("cd ./pond/ && cd deep && make test", "cd pond/deep && make test"),
        ("PYTHONPATH=src pytest", "PYTHONPATH=src pytest"),
        ("make -j 4 test", "make test"),
        ("make -sj 4 -- test", "make test"),
        ("npm test -- src/pond.test.js", "npm test"),
        ("backend/.venv/bin/pytest", "backend/.venv/bin/pytest"),
        ("backend/.venv/bin/python -m pytest", "backend/.venv/bin/pytest"),
    ],
)
def test_the_name_of_a_run_says_where_its_code_comes_from(command: str, name: str) -> None:
    assert [tool.name for tool in judge_command(command, HERE).tools] == [name]
