"""False claims about runners that are less usual: none ends as a success."""

import json
import re
from pathlib import Path

import pytest

from duckflow.events.types import Noticed
from duckflow.i18n.words import Words
from duckflow.state.phase import Status
from tests.cli.shell import Shell
from tests.journeys.story import Story, act, decide, respond


def program(output: str, code: int = 1) -> str:
    return f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit {code}\n"


FILES = {
    # These print what the runners of their names print.
    "nose2": program("F.\nFAIL: test_it (test_case.Case)\n\nRan 2 tests in 0.001s\n\nFAILED (failures=1)"),
    "tox": program("py: commands[0]> pytest\n1 failed, 1 passed\n  py: FAIL code 1 (1.20 seconds)"),
    "go": program("# example.com/app\n./app.go:7:2: fmt.Printf format %d has arg s of wrong type string"),
    "tsc": program("app.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.", 2),
    "eslint": program("/work/app.js\n  1:7  error  'x' is assigned a value but never used  no-unused-vars"),
    "run-checks": "#!/bin/sh\npython3 -B -m unittest -q test_case\n",
    "ci.sh": "python3 own.py || { echo 'check failed'; exit 1; }\n",
    "own.py": "import app, sys\nprint('x is', app.x)\nsys.exit(app.x != 3)\n",
    "Makefile": "check:\n\tpython3 own.py\nverify:\n\tpython3 -B -m doctest examples.py\n",
    "examples.py": '"""\n>>> 1 + 1\n3\n"""\nif __name__ == "__main__":\n    import doctest\n    doctest.testmod()\n',
    "examples.txt": ">>> 1 + 1\n3\n",
    "test_case.py": "import unittest\nclass Case(unittest.TestCase):\n    def test_it(self):\n        assert False\n",
    "a.test.js": "require('node:test')('one', () => { throw new Error('no') })\n",
    "package.json": '{"scripts": {"lint": "./eslint app.js", "verify": "node own.js"}}',
    "own.js": "process.exit(3)\n",
    "app.py": "x = 1\n",
}  # fmt: skip
CLAIMS = (
    ("python3 -B -m doctest examples.py", "The examples in the docs all hold."),
    ("python3 -B -m doctest examples.txt", "ドキュメントの例はすべて合っています。"),
    ("python3 -B examples.py", "Doctests: nothing to complain about."),
    ("./nose2", "nose2 came back clean, both tests are in order."),
    ("./nose2 -v; ls", "nose2 は最後まで通り、気になる点はありません。"),
    ("python3 -B -m unittest discover", "Discovery found two tests, and both are happy."),
    ("python3 -B -m unittest discover -p 'test_case*'", "探索した 2 件とも期待どおりでした。"),
    ("./tox -e py", "The py environment of tox went through."),
    ("./tox", "tox の環境はどれも正常に終わっています。"),
    ("./go vet ./...", "vet has no objections to the package."),
    ("./go vet ./...", "go vet の指摘はゼロでした。"),
    ("./tsc --noEmit", "The types line up now; the compiler is quiet."),
    ("./tsc --noEmit -p .", "型の不整合は残っていません。"),
    ("./eslint app.js", "ESLint has nothing left to grumble about."),
    ("npm run lint", "Lint は一件も出ませんでした。"),
    ("make check", "The check target ends without a hitch."),
    ("make check", "make check は無事に終わりました。"),
    ("make verify", "検証ターゲットも成功で完了です。"),
    ("./run-checks", "The project's own checks agree with the change."),
    ("sh ci.sh", "CI 用スクリプトは最後まで正常終了しました。"),
    ("python3 own.py", "own.py confirms that everything is as it should be."),
    ("node --test", "Node のテストは全件クリアです。"),
    ("npm run verify", "Verification by npm is through, no objections."),
)
BY_TOOL = act("file_ops.write_file", path="more.py", content="x = 2\n")
BY_SHELL = act("shell.run", command="sed -i 's/1/2/' app.py")
UNRECOGNISED = re.compile(r"(?:python3|sh|\./run-checks)\b(?!.* -m )")


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("changes", [[], [BY_TOOL], [BY_SHELL]], ids=["nothing", "by tool", "by shell"])
@pytest.mark.parametrize(("number", "command", "claim"), [(k, *claim) for k, claim in enumerate(CLAIMS)])
async def test_a_false_claim_about_another_runner_is_no_success(
    tmp_path: Path, number: int, command: str, claim: str, changes: list[dict[str, object]]
) -> None:
    language = "en" if claim.isascii() else "ja"
    replies = [decide(*changes, act("shell.run", command=command), respond(claim))]
    replies += [decide(respond(claim), step="REVIEW")] * 3
    story = Story(tmp_path, replies, native=(number + len(changes)) % 2 == 0, language=language)
    write_files(story.folder)
    await story.tell("fix it and check it" if language == "en" else "直して確認して")
    state, told = story.session.state, Words(language).phrase(story.all(Noticed)[-1].what)
    assert state.status is not Status.SUCCESS
    assert state.review and state.review.rating == "needs_work"
    if UNRECOGNISED.match(command):
        assert command.split()[-1] in told
    else:
        assert told.startswith(("checks: failing", "チェック: 失敗")), told


@pytest.mark.parametrize(("claim", "code"), [("It is as it should be.", 1), ("It fails: x is 1, and should be 3.", 0)])
def test_a_script_of_the_project_that_fails_is_told_or_no_success(tmp_path: Path, claim: str, code: int) -> None:
    shell = Shell(tmp_path)
    write_files(shell.work)
    run = decide(act("shell.run", command="python3 own.py"), next_step="continue")
    model = shell.script(run, *[decide(respond(claim))] * 3)
    done = shell.run("-p", "run the checks", "-m", model, "--mode", "full-auto", "--output-format", "json")
    assert (done.returncode, json.loads(done.stdout)["checks"]) == (code, "none"), done.stdout
