"""What is done with a message before any model sees it: its material is brought, and a plan's yes or no is heard."""

from duckflow.agent.approval import Approval
from duckflow.agent.duck_answer import Ending
from duckflow.agent.material import Material
from duckflow.state.plan import Plan


class Reception:
    """Opens a turn."""

    def __init__(self, approval: Approval, material: Material) -> None:
        self._approval = approval
        self._material = material

    async def hear(self, text: str, piped: str) -> tuple[str, Ending | None]:
        """What the model is told of it, or how the turn ends at once."""
        await self._material.bring(text, piped)
        return await self._approval.hear(text)

    async def approve(self, plan: Plan) -> tuple[str, Ending | None]:
        return await self._approval.approve(plan)

    def drop(self, plan: Plan) -> None:
        self._approval.drop(plan)
