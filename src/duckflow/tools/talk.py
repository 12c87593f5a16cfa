"""Talking: what is said to the user, a call for help, the end of the session."""

from pydantic import AliasChoices, Field

from duckflow.state.asking import ends_asking
from duckflow.state.phrase import SAID, Texts, say
from duckflow.tools.tool import Args, Done, Tool


class ResponseArgs(Args):
    text: str = Field(min_length=1)


class Response(Tool[ResponseArgs]):
    """Says something to the user."""

    operation = "response"
    effect = "talk"
    told = Texts("say something to the user", "ユーザーに話す")
    says = "text"
    led = True
    args = ResponseArgs

    async def run(self, args: ResponseArgs) -> Done:
        return Done(for_model="shown to the user", for_user=say(SAID, text=args.text))

    def asks(self, args: ResponseArgs) -> bool:
        return ends_asking(args.text)


class DuckCallArgs(Args):
    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "question"))
    choices: list[str] = Field(default_factory=list[str], max_length=4)


class DuckCallTool(Tool[DuckCallArgs]):
    """Stops and asks for help."""

    operation = "duck_call"
    effect = "talk"
    told = Texts("stop and ask the user for help", "手を止めてユーザーに助けを求める")
    counts_as = "ask"
    says = "question"
    untold = frozenset({"choices"})
    args = DuckCallArgs

    async def run(self, args: DuckCallArgs) -> Done:
        numbered = "".join(f"\n{number}. {choice}" for number, choice in enumerate(args.choices, 1))
        return Done(for_model="shown to the user", for_user=say(SAID, text=args.text + numbered))

    def asks(self, args: DuckCallArgs) -> bool:
        return True


class ExitArgs(Args):
    text: str


class Exit(Tool[ExitArgs]):
    """Ends the session, with a last word."""

    operation = "exit"
    effect = "talk"
    told = Texts("end the session", "セッションを終える")
    counts_as = "submit"
    says = "text"
    args = ExitArgs

    async def run(self, args: ExitArgs) -> Done:
        return Done(for_model="the session ends", for_user=say(SAID, text=args.text))

    def asks(self, args: ExitArgs) -> bool:
        return True
