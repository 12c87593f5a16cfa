"""What the model is told of a tool."""

from typing import Any

from duckflow.state.noun import Value


class Operation(Value):
    """One operation as offered to the model. `parameters` is the JSON schema of its arguments."""

    name: str
    parameters: dict[str, Any]
    changes: bool = False
    body: str = ""
    """Name of the argument that travels outside the JSON (a file's content, an edit), or nothing."""
