"""Our entry in the registry of editors' agents: its own verifier builds the registry with it and starts the agent."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY = Path(__file__).parents[2] / "docs/acp-registry"
VERIFIER = Path(sys.prefix) / "acp-registry"
UVX = """#!/bin/sh
# The package as uvx would start it, from this clone: `uvx --cache-dir FOLDER PACKAGE ARGS…`
shift 3
exec "{python}" -m duckflow "$@"
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (VERIFIER / "packages").exists(), reason="the verifier is not there; make test-all gets it"),
]


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Makes a registry with its tools and schemas, and our entry as the only one."""
    top = tmp_path / "registry"
    shutil.copytree(VERIFIER / "tree/.github", top / ".github")
    for schema in (VERIFIER / "tree").glob("*.schema.json"):
        shutil.copy(schema, top)
    shutil.copytree(ENTRY, top / "duckflow")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("uv", "uvx"):
        (programs / name).write_text(UVX.format(python=sys.executable))
        (programs / name).chmod(0o755)
    return top


def run(registry: Path, script: str, *words: str) -> str:
    programs = registry.parent / "programs"
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(VERIFIER / "packages"),
        "HOME": str(registry.parent),
        # Nobody has published the package yet.
        "SKIP_URL_VALIDATION": "1",
    }
    command = [sys.executable, str(registry / ".github/workflows" / script), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_entry_and_its_icon_are_built_into_the_registry(registry: Path) -> None:
    told = run(registry, "build_registry.py")
    assert "Added agent: duckflow" in told and "jsonschema" not in told, "the schema was looked at too"
    (agent,) = json.loads((registry / "dist/registry.json").read_text())["agents"]
    assert agent["icon"].endswith("duckflow.svg") and (registry / "dist/duckflow.svg").exists()


def test_a_wrong_entry_would_be_refused(registry: Path) -> None:
    entry = registry / "duckflow/agent.json"
    entry.write_text(entry.read_text().replace('"id": "duckflow"', '"id": "Duckflow!"'))
    with pytest.raises(AssertionError, match="validation failed"):
        run(registry, "build_registry.py")


def test_the_agent_starts_and_says_how_to_log_in(registry: Path) -> None:
    told = run(registry, "verify_agents.py", "-a", "duckflow", "--timeout", "5")
    assert "✓ Success" in told and "Failed:  0" in told and "Skipped: 0" in told, told
    told = run(registry, "verify_agents.py", "-a", "duckflow", "--auth-check")
    assert "✓ Success: Auth OK" in told and "(terminal)" in told, told
