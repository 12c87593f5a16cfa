"""Lets the benchmark runner Harbor use Duckflow: `harbor run --agent-import-path duckflow.bench.harbor:Duckflow` (extra
`bench`, Python 3.12)."""

import asyncio
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar, override

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    AgentAuthenticationError,
    AgentSafetyRefusalError,
    ApiConnectionClosedError,
    ApiInternalServerError,
    ApiRateLimitError,
    ApiUsageLimitError,
    BaseInstalledAgent,
    ContextWindowExceededError,
    ErrorPattern,
    ModelNotFoundError,
    NetworkConnectionError,
    with_prompt_template,
)
from harbor.agents.model_connection import ModelConnectionSpec
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import Trajectory

from duckflow.installation import NAME, this_installation

HOME = "/installed-agent/duckflow"
KEYS = "/installed-agent/duckflow.env"
TRAJECTORY = "trajectory.json"
ENDINGS = "3|4|6|7|8"
"""Exit codes of runs that ended by themselves, but not with success. Their results can be verified nevertheless."""
INSTALL = """
set -e
if ! command -v uv > /dev/null && python3 -c 'import venv, ensurepip, tomllib' 2> /dev/null; then
  python3 -m venv {home} && {home}/bin/pip install --quiet --disable-pip-version-check {package}
else
  command -v uv > /dev/null || curl -LsSf https://astral.sh/uv/install.sh | env UV_INSTALL_DIR=/usr/local/bin sh
  uv venv --quiet --python '>=3.11' {home} && uv pip install --quiet --python {home}/bin/python {package}
fi
{home}/bin/duckflow --version
"""
RUN = """
set -a; . {keys}; rm -f {keys}; set +a
{home}/bin/duckflow {flags} < /dev/null
code=$?
case $code in {endings}) exit 0;; *) exit $code;; esac
"""


class HarborAgent(BaseInstalledAgent):
    """Installs Duckflow in the task's environment and lets it solve the task there, in the mode `contained`."""

    capabilities = AgentCapabilities(atif=True, resume=True)
    MODEL_CONNECTION = ModelConnectionSpec(passthrough=True)
    ERROR_PATTERNS: ClassVar[list[ErrorPattern]] = [
        *BaseInstalledAgent.ERROR_PATTERNS,
        ErrorPattern(r"is still busy: |is busy and asks to wait", ApiRateLimitError),
        ErrorPattern(r"credit is used up", ApiUsageLimitError),
        ErrorPattern(r"needs a key|refused the key", AgentAuthenticationError),
        ErrorPattern(r"has no model |There is no endpoint called|Which provider serves ", ModelNotFoundError),
        ErrorPattern(r"Cannot connect|secure connection|No server answers|sent nothing for \d", NetworkConnectionError),
        ErrorPattern(r"The request does not fit|too long for the model", ContextWindowExceededError),
        ErrorPattern(r"failed \(status 5\d\d\)", ApiInternalServerError),
        ErrorPattern(r"was cut off several times", ApiConnectionClosedError),
        ErrorPattern(r"refused the content|refused to answer", AgentSafetyRefusalError),
    ]

    def __init__(
        self,
        logs_dir: Path,
        *args: Any,
        max_budget_usd: float | None = None,
        max_loops: int | None = None,
        yes_really: bool = False,
        **kwargs: Any,
    ) -> None:
        """`yes_really` permits the mode `contained` even where the environment does not look like a container, or where
        Duckflow could use keys and logins."""
        super().__init__(logs_dir, *args, **kwargs)
        self._limits = {"--max-budget-usd": max_budget_usd, "--max-loops": max_loops}
        self._yes_really = bool(yes_really)

    @staticmethod
    @override
    def name() -> str:
        return "duckflow"

    @override
    def get_version_command(self) -> str | None:
        return f"{HOME}/bin/duckflow --version"

    @override
    def parse_version(self, stdout: str) -> str:
        return stdout.strip().rpartition(" ")[2]

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        """Installs the clone that this copy came from, or the published package if the user names a version. Without a
        version no package is fetched by its name, because nothing is published under it yet."""
        version = self.version()
        package = f"{NAME}=={version}" if version else await self._upload_clone(environment)
        command = INSTALL.format(home=HOME, package=shlex.quote(package))
        await self.exec_as_root(environment, command=command)

    async def _upload_clone(self, environment: BaseEnvironment) -> str:
        clone = Path(this_installation().folder or ".")
        if not (clone / "pyproject.toml").is_file():
            raise FileNotFoundError(f"no clone of Duckflow at {clone}: install '.[bench]' in one, or name a version")
        with tempfile.TemporaryDirectory() as folder:
            build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, str(clone)]
            await asyncio.to_thread(subprocess.run, build, check=True)
            [wheel] = Path(folder).glob("*.whl")
            target = f"/installed-agent/{wheel.name}"
            await environment.upload_file(wheel, target)
        return target

    @override
    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        env = {"DUCKFLOW_HOME": str(self.environment_logs_dir / "duckflow")}
        # Every command can read a shell's own variables, but not Duckflow's, so the keys come in a file.
        keys = "".join(f"{name}={shlex.quote(value)}\n" for name, value in self.model_connection.env.items())
        await self._upload_config_text(environment, content=keys, remote_path=KEYS, filename="duckflow.env")
        command = RUN.format(keys=KEYS, home=HOME, endings=ENDINGS, flags=shlex.join(self._flags(instruction)))
        result = await self.exec_as_agent(environment, command=command, env=env)
        (self.logs_dir / "duckflow.txt").write_text(f"{result.stdout or ''}{result.stderr or ''}", encoding="utf-8")

    def _flags(self, instruction: str) -> list[str]:
        flags = ["--contained", "--lang", "en", "--trajectory", str(self.environment_logs_dir / TRAJECTORY)]
        flags += ["-m", self.model_name] if self.model_name else []
        flags += [word for flag, value in self._limits.items() if value for word in (flag, str(value))]
        flags += ["--yes-really"] if self._yes_really else []
        return [*flags, *(["-c"] if self._resume else []), "-p", instruction]

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        """Fills in the usage from the trajectory, which includes the usage of all agents and jobs."""
        try:
            trajectory = Trajectory.model_validate(json.loads((self.logs_dir / TRAJECTORY).read_text(encoding="utf-8")))
        except (OSError, ValueError) as problem:
            self.logger.debug(f"no trajectory of Duckflow: {problem}")
            return
        if final_metrics := trajectory.final_metrics:
            context.n_input_tokens = final_metrics.total_prompt_tokens
            context.n_cache_tokens = final_metrics.total_cached_tokens
            context.n_output_tokens = final_metrics.total_completion_tokens
            context.cost_usd = final_metrics.total_cost_usd
        turns = (trajectory.extra or {}).get("turns", [])
        context.metadata = {"outcome": turns[-1]["outcome"] if turns else "", "session": trajectory.session_id}


Duckflow = HarborAgent
"""The name under which Harbor imports the agent."""
