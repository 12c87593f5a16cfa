"""Instances in SWE-bench's form from repositories of others: commits that mended something, and the commit before."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import act, decide, respond

CLONES = os.environ.get("DUCKFLOW_CLONES", "")
"""A folder with clones, named `owner__name`: one instance is taken from each."""


def git(clone: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout


def last_mend(clone: Path) -> tuple[str, str]:
    """Returns the newest commit that fixes something and changes one Python file only, and its patch."""
    pick = ("log", "--no-merges", "-i", "--grep=^fix", "--format=%H", "-n", "200", "--", "*.py")
    for commit in git(clone, *pick).split():
        changed = git(clone, "diff", "--name-status", f"{commit}~1", commit).splitlines()
        patch = git(clone, "diff", f"{commit}~1", commit)
        if len(changed) == 1 and changed[0].startswith("M\t") and changed[0].endswith(".py") and "EOF" not in patch:
            return commit, patch
    raise AssertionError(f"{clone}: no commit that mends one file")


@pytest.mark.slow
@pytest.mark.skipif(not CLONES, reason="DUCKFLOW_CLONES names no folder with clones")
def test_predictions_are_the_patches_that_the_model_made(tmp_path: Path) -> None:
    shell, rows, replies = Shell(tmp_path, 900), list[dict[str, str]](), list[dict[str, Any]]()
    mends: dict[str, tuple[Path, str]] = {}
    for clone in sorted(Path(CLONES).iterdir()):
        commit, patch = last_mend(clone)
        name, told = f"{clone.name}-{commit[:8]}", f"{clone.name}: {git(clone, 'log', '-1', '--format=%B', commit)}"
        base = git(clone, "rev-parse", f"{commit}~1").strip()
        repo = clone.name.replace("__", "/")
        rows.append({"instance_id": name, "repo": repo, "base_commit": base, "problem_statement": told})
        command = f"git apply - <<'EOF'\n{patch}EOF\n"
        mend = decide(act("shell.run", command=command), next_step="continue")
        replies.append({"text": json.dumps(mend), "when": f"{clone.name}: "})
        mends[name] = clone, commit
    replies += [{"text": json.dumps(decide(respond("Done.")))}] * 40
    model = shell.script(*replies)
    (shell.work / "swe.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = ("fleet", "run", "--from", "swe.jsonl", "--repository", CLONES, "-m", model, "--at-once", "2")
    done = shell.run(*run, GIT_CONFIG_GLOBAL=os.devnull)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    predictions = [json.loads(row) for row in shell.run("fleet", "export", "--format", "swebench").stdout.splitlines()]
    assert [row["instance_id"] for row in predictions] == [row["instance_id"] for row in rows]
    for row in predictions:
        clone, commit = mends[row["instance_id"]]
        index = {**os.environ, "GIT_INDEX_FILE": str(tmp_path / "index")}
        subprocess.run(["git", "-C", clone, "read-tree", f"{commit}~1"], env=index, check=True)
        apply = ["git", "-C", clone, "apply", "--cached", "-"]
        subprocess.run(apply, env=index, input=row["model_patch"], text=True, check=True)
        write = subprocess.run(
            ["git", "-C", clone, "write-tree"], env=index, capture_output=True, text=True, check=True
        )
        assert write.stdout.strip() == git(clone, "rev-parse", f"{commit}^{{tree}}").strip(), row["instance_id"]
