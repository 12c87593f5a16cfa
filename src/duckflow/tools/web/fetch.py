"""Fetching a page from the web as text."""

import asyncio
import json
from collections import OrderedDict

from pydantic import Field

from duckflow.errors import ToolError
from duckflow.safety.risk import Deed
from duckflow.state.data import Phrase, say
from duckflow.state.question import Preview
from duckflow.tools.settings import FETCH, WebSettings
from duckflow.tools.tool import Args, Done
from duckflow.tools.web.address import Network, WebAddress, read_address
from duckflow.tools.web.web_tool import MATERIAL, WebTool, cut_pages, read_text

KEPT = 8
HTML = ("text/html", "application/xhtml+xml")


class FetchArgs(Args):
    url: str = Field(min_length=1)
    page: int = Field(default=1, ge=1)


class FetchPage(WebTool[FetchArgs]):
    """Fetches a page as Markdown, in pieces where it is long. A fetched page is kept for the next piece."""

    operation = FETCH
    known_as = "WebFetch"
    args = FetchArgs

    def __init__(self, settings: WebSettings, network_allowed: bool, network: Network | None = None) -> None:
        super().__init__(settings, network_allowed, network)
        self._kept: OrderedDict[str, tuple[str, list[str]]] = OrderedDict()

    def address(self, args: FetchArgs) -> WebAddress:
        return read_address(args.url)

    def deed(self, args: FetchArgs, preview: Preview) -> Deed:
        """Returns the effects of the call. The next piece of a stored page is only read, without network."""
        return Deed("read") if self._is_kept(args) else super().deed(args, preview)

    def doing(self, args: FetchArgs) -> Phrase:
        return say("web.fetching", url=args.url[:200])

    async def run(self, args: FetchArgs) -> Done:
        address = self.address(args)
        if not self._is_kept(args):
            self._kept[address.url] = await self._fetch(address)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        page_heading, pages = self._kept[address.url]
        if args.page > len(pages):
            for_model = f"{address.url} has {len(pages)} pages; there is no page {args.page}."
            raise ToolError(for_model, "web.no_such_page", pages=len(pages), page=args.page)
        text = pages[args.page - 1]
        more_note = (
            f"\n[page {args.page} of {len(pages)}; go on with page={args.page + 1}]" if args.page < len(pages) else ""
        )
        page_numbers = {"page": args.page, "pages": len(pages)}
        phrase = say("web.fetched", site=address.site, characters=len(text), **page_numbers)
        return Done(f"{page_heading}\n{MATERIAL}\n\n{text}{more_note}", phrase)

    def _is_kept(self, args: FetchArgs) -> bool:
        """Says whether the wanted piece is stored. The first piece is always fetched anew, because the page may have
        changed."""
        return args.page > 1 and self.address(args).url in self._kept

    async def _fetch(self, address: WebAddress) -> tuple[str, list[str]]:
        from duckflow.tools.web.download import PDF, download

        page = await download(address, self._settings, self._network)
        if page.kind == PDF:
            from duckflow.tools.web.pdf import read_pdf

            title, _, text = (await read_pdf(page.body, self._settings.seconds)).partition("\n")
            return self._told(page.address, title, text)
        is_html = page.kind in HTML or (not page.kind and page.body[:512].lstrip()[:1] == b"<")
        text = read_text(page.body, page.charset, is_html)
        if text is None:
            raise ToolError(f"{address.url} is no text: not shown.", "web.not_text", host=address.host, kind=page.kind)
        title = ""
        if is_html:
            from duckflow.tools.web.markdown import to_markdown

            title, text = await asyncio.to_thread(to_markdown, text, page.address.url)
        return self._told(page.address, title, text)

    def _told(self, address: WebAddress, title: str, text: str) -> tuple[str, list[str]]:
        text = "".join(char for char in text if char.isprintable() or char in "\n\t")
        page_heading = address.url + (f" {json.dumps(title[:200], ensure_ascii=False)}" if title else "")
        return page_heading, cut_pages(text.strip() or "(no text)", self._settings.page_characters)
