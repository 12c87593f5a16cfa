"""Settings of the web tools."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from pydantic import Field

from duckflow.state.noun import Section

MB = 1024 * 1024
FETCH, SEARCH = "web.fetch", "web.search"
KEYS = {"brave": ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"), "tavily": ("TAVILY_API_KEY",)}
BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"


class SearchEngine(NamedTuple):
    """Who is asked. The address of a SearXNG is the user's own word, so it may be on their own machine."""

    kind: Literal["brave", "tavily", "searxng"]
    url: str
    key: str = ""


class WebSettings(Section):
    """What may be fetched, and by whom the web is searched. A project's file cannot set this."""

    fetch: bool = True
    """Whether the model is offered to fetch pages at all; each host is asked for."""
    seconds: float = Field(default=30.0, gt=0)
    """For all of a page, redirects included."""
    max_bytes: int = Field(default=5 * MB, gt=0)
    """Unpacked. What is larger is not fetched."""
    proxy_looks_up: bool = False
    """A proxy of the environment is told names, not the numbers they were found to have here: for networks in which
    nobody else knows names. Then it is the proxy that keeps private places private."""
    page_characters: int = Field(default=20_000, ge=1000)
    """So much of a text is shown at once; the rest is kept for the next call."""
    search: Literal["auto", "brave", "tavily", "searxng", "off"] = "auto"
    """`auto`: the first that is set up, a SearXNG of one's own before a key in the environment."""
    searxng_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    results: int = Field(default=8, ge=1, le=20)

    def engine(self, environ: Mapping[str, str]) -> SearchEngine | None:
        """The search engine that is set up, or none."""
        if self.searxng_url and self.search in ("auto", "searxng"):
            return SearchEngine("searxng", self.searxng_url.rstrip("/") + "/search")
        for kind, url in (("brave", BRAVE), ("tavily", TAVILY)):
            key = next((environ[name].strip() for name in KEYS[kind] if environ.get(name, "").strip()), "")
            if key and self.search in ("auto", kind):
                return SearchEngine(cast('Literal["brave", "tavily"]', kind), url, key)
        return None

    def not_offered(self, environ: Mapping[str, str]) -> frozenset[str]:
        """The operations that cannot be used here: nobody is told of them."""
        switched_off = () if self.fetch else (FETCH,)
        return frozenset(switched_off if self.engine(environ) else (*switched_off, SEARCH))
