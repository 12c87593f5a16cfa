"""Talking: what is said to the user, a call for help, the end of the session."""

from pydantic import AliasChoices, Field

from duckflow.state.one_question import ends_asking
from duckflow.state.phrase import say
from duckflow.tools.tool import Args, Done, Tool


class ResponseArgs(Args):
    text: str = Field(min_length=1)


class Response(Tool[ResponseArgs]):
    """Says something to the user."""

    operation = "response"
    args = ResponseArgs

    async def run(self, args: ResponseArgs) -> Done:
        return Done(for_model="shown to the user", for_user=say("talk.said", text=args.text))


class DuckCallArgs(Args):
    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "question"))
    choices: list[str] = Field(default_factory=list[str], max_length=4)


class DuckCallTool(Tool[DuckCallArgs]):
    """Stops and asks for help."""

    operation = "duck_call"
    untold = frozenset({"choices"})
    args = DuckCallArgs

    async def run(self, args: DuckCallArgs) -> Done:
        numbered = "".join(f"\n{number}. {choice}" for number, choice in enumerate(args.choices, 1))
        return Done(for_model="shown to the user", for_user=say("talk.said", text=args.text + numbered))


class ExitArgs(Args):
    text: str


class Exit(Tool[ExitArgs]):
    """Ends the session, with a last word."""

    operation = "exit"
    args = ExitArgs

    async def run(self, args: ExitArgs) -> Done:
        return Done(for_model="the session ends", for_user=say("talk.said", text=args.text))


PROPOSES = "plan_tool.propose"
ENDS_TURN = frozenset({"response", "duck_call", "exit"})
BARRIERS = ENDS_TURN | {PROPOSES}


def is_question(operation: str, text: str) -> bool:
    """Whether what is said asks the user something: then nothing may run after it. A proposed plan asks for a yes."""
    return operation in ("duck_call", "exit", PROPOSES) or ends_asking(text)
