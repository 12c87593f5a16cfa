"""Settings of the web tools, and their names: every start reads them, so nothing of a connection is loaded here."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from pydantic import Field

from duckflow.state.data import Section

MB = 1024 * 1024
FETCH, SEARCH = "web.fetch", "web.search"
KEYS = {"brave": ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"), "tavily": ("TAVILY_API_KEY",)}
BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"


class SearchEngine(NamedTuple):
    """The search engine that is asked. The user gives the address of a SearXNG, so it may be on their own machine."""

    kind: Literal["brave", "tavily", "searxng"]
    url: str
    key: str = ""


class WebSettings(Section):
    """Settings of the web tools. A project's file cannot set them."""

    fetch: bool = True
    """The model is offered to fetch pages at all; each host still needs a yes."""
    seconds: float = Field(default=30.0, gt=0)
    """Seconds for a whole page, redirects included."""
    max_bytes: int = Field(default=5 * MB, gt=0)
    """Largest size of a page, unpacked. Larger ones are not fetched."""
    proxy_looks_up: bool = False
    """A proxy of the environment gets names, not the IP addresses that were looked up here: for networks in which only
    the proxy can look names up. Then the proxy must keep private addresses private."""
    page_characters: int = Field(default=20_000, ge=1000)
    """Characters of a text that are shown at once; the rest is kept for the next call."""
    search: Literal["auto", "brave", "tavily", "searxng", "off"] = "auto"
    """The search engine. `auto` takes the first that is set up, the user's own SearXNG before a key in the
    environment."""
    searxng_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    results: int = Field(default=8, ge=1, le=20)

    def engine(self, environ: Mapping[str, str]) -> SearchEngine | None:
        """Returns the search engine that is set up, or None."""
        if self.searxng_url and self.search in ("auto", "searxng"):
            return SearchEngine("searxng", self.searxng_url.rstrip("/") + "/search")
        for kind, url in (("brave", BRAVE), ("tavily", TAVILY)):
            key = next((environ[name].strip() for name in KEYS[kind] if environ.get(name, "").strip()), "")
            if key and self.search in ("auto", kind):
                return SearchEngine(cast('Literal["brave", "tavily"]', kind), url, key)
        return None

    def not_offered(self, environ: Mapping[str, str]) -> frozenset[str]:
        """Returns the operations that cannot be used here; the model is not told of them."""
        switched_off = () if self.fetch else (FETCH,)
        return frozenset(switched_off if self.engine(environ) else (*switched_off, SEARCH))
