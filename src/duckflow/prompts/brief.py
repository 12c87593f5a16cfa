"""Operations told in few words: what a small model does not need to know of them is left out."""

from typing import Any

from duckflow.state.operation import Operation


def brief(operation: Operation) -> Operation:
    """Only what must be given. Operations that then take the same share one shape of the schema."""
    required: list[str] = operation.parameters.get("required", [])
    told: dict[str, Any] = operation.parameters.get("properties", {})
    properties = {name: told[name] for name in told if name in required}
    return operation.model_copy(update={"parameters": {**operation.parameters, "properties": properties}})
