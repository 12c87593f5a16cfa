"""The tool by which a review agent reports a finding."""

from collections.abc import Awaitable, Callable

from pydantic import Field, model_validator

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.path_names import shown
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import FINDING, FindingSeverity, ReviewFinding, Witness
from duckflow.state.data import say
from duckflow.tools.tool import Args, Done, Tool

LARGEST = 4 * 1024 * 1024
TOLD = {
    "fails": "The witness fails on the change (exit code {code}) and not before it: it shows the finding.",
    "fails_new": "The witness fails on the change (exit code {code}); the code before it has not what it tries.",
    "fails_before_too": "The witness fails (exit code {code}), but it fails on the code before the change as well "
    "(exit code {before}), so it shows nothing of this change. The finding is kept without one. Report it again with a "
    "witness that passes on the code before, or withdraw it.",
    "passes": "The witness passes, so it shows nothing. The finding is kept without one. Report it again with a better "
    "witness, or withdraw it.",
    "broken": "The witness did not work (exit code {code}), so it shows nothing. Report the finding again with one "
    "that runs.",
    "not_run": "No witness can be run here; the finding is kept without one.",
}


class FindingArgs(Args):
    path: str = Field(min_length=1)
    line: int = Field(ge=1)
    severity: FindingSeverity = "medium"
    text: str = Field(min_length=1)
    command: str = ""
    test_path: str = ""
    test: str = ""
    withdrawn: bool = False

    @model_validator(mode="after")
    def _whole(self) -> "FindingArgs":
        if bool(self.test_path) != bool(self.test):
            raise ValueError("test_path and test belong together")
        if self.test and not self.command:
            raise ValueError("a test needs the command that runs it")
        return self


class ReportFinding(Tool[FindingArgs]):
    """Keeps a finding of a review. It replaces an earlier finding at the same place."""

    operation = FINDING
    effect = "read"
    counts_as = "run"
    subject = ("path",)
    asked_for = frozenset({"severity"})
    args = FindingArgs

    def __init__(
        self,
        workspace: Workspace,
        show: Callable[[Witness], Awaitable[Witness]],
        keep: Callable[[ReviewFinding], None],
        withdraw: Callable[[str], bool],
    ) -> None:
        """`show` runs a witness, a command that shows the finding. `keep` adds a finding to the list. `withdraw` takes
        the finding at a place off the list, and says whether there was one."""
        self._workspace = workspace
        self._show = show
        self._keep = keep
        self._withdraw = withdraw

    async def run(self, args: FindingArgs) -> Done:
        path = self._checked(args)
        finding = ReviewFinding(path=path, line=args.line, severity=args.severity, text=args.text.strip())
        if args.withdrawn:
            was_withdrawn = self._withdraw(finding.place)
            return Done(
                "withdrawn" if was_withdrawn else "nothing was reported there",
                say("review.withdrawn", place=finding.place),
            )
        for_model = "Kept, without a witness."
        if args.command:
            witness = await self._show(Witness(command=args.command, path=args.test_path, text=args.test))
            finding = finding.model_copy(update={"witness": witness})
            for_model = TOLD[witness.status].format(code=witness.code, before=witness.before_code)
            for_model = f"{for_model}\n{witness.output}" if witness.output else for_model
        self._keep(finding)
        return Done(for_model, say("review.found", place=finding.place, text=finding.text))

    def _checked(self, args: FindingArgs) -> str:
        """Returns the path of the finding. Raises a ToolError if its line does not exist or its test is not a file of
        the folder."""
        name = shown(args.path)
        try:
            path = self._workspace.relative(args.path).removeprefix("./")
            lines = self._workspace.read_bytes(path, LARGEST).count(b"\n") + 1
            if args.test_path:
                self._workspace.relative(args.test_path)
        except (OSError, PathRefused) as problem:
            raise ToolError(
                f"{name} cannot be read here. Name a changed file by its path.", "file.missing", path=name
            ) from problem
        if args.line > lines:
            raise ToolError(f"{name} has only {lines} lines.", "review.no_line", place=f"{name}:{args.line}")
        return path
