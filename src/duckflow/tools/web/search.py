"""Searching the web, where a search engine is set up."""

import asyncio
from typing import Any
from urllib.parse import quote_plus

from pydantic import Field

from duckflow.errors import ToolError
from duckflow.state.data import Phrase, as_table, say, tables
from duckflow.state.question import Preview
from duckflow.tools.settings import SEARCH, SearchEngine, WebSettings
from duckflow.tools.tool import Args, Done
from duckflow.tools.web.address import Network, WebAddress, read_address
from duckflow.tools.web.web_tool import MATERIAL, WebTool
from duckflow.whole_text import parse_json

LONGEST_RESULT = 400


class SearchArgs(Args):
    query: str = Field(min_length=1, max_length=400)


class SearchWeb(WebTool[SearchArgs]):
    """Asks a search engine and lists its results."""

    operation = SEARCH
    subject = ("query",)
    known_as = "WebSearch"
    args = SearchArgs

    def __init__(
        self,
        settings: WebSettings,
        network_allowed: bool,
        engine: SearchEngine | None = None,
        network: Network | None = None,
    ) -> None:
        super().__init__(settings, network_allowed, network)
        self._engine = engine

    def address(self, args: SearchArgs) -> WebAddress:
        engine, count = self._set_up(), self._settings.results
        if engine.kind == "tavily":
            return read_address(engine.url)
        query_start = f"?count={count}&q=" if engine.kind == "brave" else "?format=json&q="
        return read_address(f"{engine.url}{query_start}{quote_plus(args.query)}")

    def preview(self, args: SearchArgs) -> Preview:
        return Preview(diff=f"→ {self.address(args).site}: {args.query}")

    def doing(self, args: SearchArgs) -> Phrase:
        return say("web.searching", query=args.query)

    async def run(self, args: SearchArgs) -> Done:
        from duckflow.http import HttpError

        try:
            async with asyncio.timeout(self._settings.seconds):
                answer = await self._ask(args)
                results = _results(parse_json(answer))[: self._settings.results]
        except (HttpError, TimeoutError, ValueError) as problem:
            why = str(problem)[:200] or type(problem).__name__
            for_model = f"The search could not be made: {why}"
            raise ToolError(for_model, "web.failed", host=self.address(args).site, reason=why) from None
        lines = [f"{number}. {title}\n   {url}\n   {text}" for number, (title, url, text) in enumerate(results, 1)]
        phrase = say("web.searched", count=len(results), query=args.query)
        for_model = "\n".join(lines) or "(nothing was found)"
        return Done(f"{len(results)} results for {args.query!r}. {MATERIAL}\n\n{for_model}", phrase)

    async def _ask(self, args: SearchArgs) -> bytes:
        from duckflow.tools.web.download import asked, read_body

        engine, address = self._set_up(), self.address(args)
        headers, request_body = {"accept": "application/json"}, None
        if engine.kind == "brave":
            headers["x-subscription-token"] = engine.key
        if engine.kind == "tavily":
            headers["authorization"] = f"Bearer {engine.key}"
            request_body = {"query": args.query, "max_results": self._settings.results}
        async with asked(address, self._network, headers, request_body, own=engine.kind == "searxng") as answer:
            if not answer.is_success:
                for_model = f"{address.host} answered with HTTP {answer.status}. Is its key right, and not used up?"
                raise ToolError(for_model, "web.status", host=address.host, status=answer.status)
            return await read_body(answer, self._settings.max_bytes)

    def _set_up(self) -> SearchEngine:
        if self._engine is None:
            raise ToolError("No search engine is set up: web.search cannot be used.", "web.no_search")
        return self._engine


def _results(answer: Any) -> list[tuple[str, str, str]]:
    """Returns title, address and text of each result. The three engines only name these fields differently."""
    answer_table = as_table(answer)
    rows = tables(answer_table.get("results") or as_table(answer_table.get("web")).get("results"))
    return [
        (_line(row.get("title")), _line(row.get("url")), _line(row.get("content") or row.get("description")))
        for row in rows
        if row.get("url")
    ]


def _line(value: Any) -> str:
    import html
    import re

    text = html.unescape(re.sub(r"</?\w+[^>]*>", "", str(value or "")))
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:LONGEST_RESULT]
