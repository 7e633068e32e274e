"""A browser, and sites for it: the demo, which needs no key, and one that asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

from service.embedding import Embedder, load_embedder
from service.settings import Settings
from tests.browser.site import MODEL_DIM, add_tenant, allow_claude, fill_demo, find_browser, serve
from tests.conftest import NEWEST
from tests.live_database import LiveDatabase, LiveServer
from tests.messages_server import MessagesServer, run_messages_server

PATIENCE = 20_000
PLANETS = {
    "Mercury": "Mercury is the smallest planet and the one closest to the Sun.",
    "Venus": "Venus is the hottest planet: its thick air keeps the warmth of the Sun.",
    "Mars": "Mars is the red planet, because the iron in its soil has rusted.",
}
# What a page of another kind would run or fetch.
HOSTILE = (
    "<img src=/planted.png onerror=\"document.title='taken'\"> "
    "<script>document.title='taken'</script> <b>Saturn</b> has rings of ice."
)


@dataclass
class Visit:
    """A page that is open, what went wrong in it, and what it asked for."""

    page: Page
    site: str
    errors: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """The addresses of other hosts that were asked for."""
        return [each.url for each in self.requests if not each.url.startswith(self.site)]

    def note_request(self, request: Request) -> None:
        """Remember what was asked for."""
        self.requests.append(request)

    def note_error(self, error: Error) -> None:
        """Remember what a script did not catch."""
        self.errors.append(str(error))

    def note_message(self, message: ConsoleMessage) -> None:
        """Remember what the browser complains about; refusals apart, since tests provoke them."""
        if message.type in ("error", "warning"):
            refused = message.text.startswith("Failed to load resource")
            (self.refused if refused else self.errors).append(message.text)

    def ask(self, question: str) -> None:
        """Ask, and wait for results and answer."""
        self.page.get_by_role("searchbox").fill(question)
        self.page.keyboard.press("Enter")
        self.wait()

    def wait(self) -> None:
        """Wait until nothing is under way."""
        page = self.page
        expect(page.locator(".column").first).to_have_attribute("aria-busy", "false")
        expect(page.locator("#context")).to_have_attribute("aria-busy", "false")
        expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")

    def titles(self, side: str = "A") -> list[str]:
        """The titles of the results, best first."""
        return self.page.locator(f".column[data-side={side}] .hit-title").all_inner_texts()


class OpenPage(Protocol):
    def __call__(self, site: str, **options: Any) -> Visit: ...


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The model that is shipped."""
    return load_embedder(Settings().embedding_model)


@pytest.fixture(scope="session")
def knowledge(
    servers: Callable[[int], LiveServer], embedder: Embedder
) -> Iterator[tuple[LiveDatabase, str]]:
    """A database with the demo and a tenant of planets, and the key of the planets."""
    if find_browser() is None:
        pytest.skip("There is no browser here: install chromium (apt-get install chromium).")
    with servers(NEWEST).open_database(embedding_dim=MODEL_DIM) as database:
        fill_demo(database, embedder)
        texts = {**PLANETS, "Saturn": HOSTILE}
        key = add_tenant(database, "planets", texts=texts, embedder=embedder)
        allow_claude(database, "planets")
        yield database, key


@pytest.fixture(scope="session")
def demo_site(knowledge: tuple[LiveDatabase, str], embedder: Embedder) -> Iterator[str]:
    """The address of a service that shows the demo without a key."""
    with serve(knowledge[0], embedder, demo=True) as url:
        yield url


@pytest.fixture(scope="session")
def claude() -> Iterator[MessagesServer]:
    """What writes answers for the planets."""
    with run_messages_server() as server:
        yield server


@pytest.fixture(scope="session")
def locked_site(
    knowledge: tuple[LiveDatabase, str], embedder: Embedder, claude: MessagesServer
) -> Iterator[str]:
    """The address of a service that wants a key, and has one for Claude."""
    with serve(
        knowledge[0],
        embedder,
        demo=False,
        anthropic_api_key="test-key",
        anthropic_base_url=claude.base_url,
    ) as url:
        yield url


@pytest.fixture(scope="session")
def planets_key(knowledge: tuple[LiveDatabase, str]) -> str:
    """A key that opens the planets."""
    return knowledge[1]


# Not for the session: while it is there, nothing else in the process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = find_browser()
    if path is None:
        pytest.skip("There is no browser here: install chromium (apt-get install chromium).")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        sandbox = os.geteuid() != 0  # Chromium refuses to run as root with one
        browser = playwright.chromium.launch(executable_path=path, chromium_sandbox=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """open_page(site, viewport=..., color_scheme=...): a visit; in the end, nothing went wrong."""
    visits: list[Visit] = []
    with ExitStack() as stack:

        def open_site(site: str, **options: Any) -> Visit:
            context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            visit = Visit(page, site)
            visits.append(visit)
            page.on("console", visit.note_message)
            page.on("pageerror", visit.note_error)
            page.on("request", visit.note_request)
            page.goto(site)
            return visit

        yield open_site
        for visit in visits:
            assert visit.errors == []
            assert visit.outside == []
