"""The quality page: real figures of the key's tenant as plots, and kind words where none are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Locator, expect

from service.db.engine import owner_transaction
from service.db.registry import create_key, create_tenant
from service.db.stats import mark_size
from tests.api.conftest import DOCUMENTS, app_for
from tests.browser.conftest import OpenPage, Visit
from tests.conftest import NEWEST
from tests.live_database import SMALL_DIM, LiveDatabase, LiveServer
from tests.running_app import run_app

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
TENANTS = ("acme", "globex")


@dataclass(frozen=True)
class Site:
    """The address of the service, and keys: acme has searched, globex has not."""

    url: str
    acme: str
    globex: str
    searcher: str


@pytest.fixture(scope="module")
def site(servers: Callable[[int], LiveServer]) -> Iterator[Site]:
    with servers(NEWEST).open_database(embedding_dim=SMALL_DIM) as database:
        with owner_transaction(database.admin) as connection:
            for tenant in TENANTS:
                create_tenant(connection, tenant)
            acme, globex = (
                create_key(connection, "k", tenant_ids=[t], scopes=["search", "ingest", "admin"])
                for t in TENANTS
            )
            searcher = create_key(connection, "s", tenant_ids=["acme"], scopes=["search"])
        with run_app(app_for(database)) as url:
            use(url, acme.text)
            add_history(database)
            yield Site(f"{url}/", acme.text, globex.text, searcher.text)


def use(url: str, key: str) -> None:
    """Store documents, search them three times, and click the second result once."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
        documents = [{"name": n, "content": text} for n, text in DOCUMENTS.items()]
        assert http.post("/v1/documents", json={"documents": documents}).is_success
        *_, found = [
            http.post("/v1/search", json={"query": f"parcel delivery {number}"}).json()
            for number in range(3)
        ]
        clicked = found["hits"][1]["node"]["node_id"]
        body = {"trace_id": found["trace_id"], "signal": "clicked", "node_id": clicked}
        assert http.post("/v1/feedback", json=body).is_success


def add_history(database: LiveDatabase) -> None:
    """Put down two days of sizes and an audit of acme."""
    with owner_transaction(database.admin) as connection:
        mark_size(connection, "acme")
        connection.exec_driver_sql(
            "insert into size_marks (tenant_id, marked_on, nodes, vectors, segments, postings,"
            " dead_postings, bytes)"
            " select 'acme', current_date - 1, 1, 1, 1, 1, 0, 1000"
        )
        connection.exec_driver_sql(
            "insert into recall_audits (tenant_id, audit_id, path, expected, found)"
            " values ('acme', %s, 'hnsw', 20, 19)",
            (uuid4(),),
        )


@pytest.fixture
def enter(open_page: OpenPage, site: Site) -> Callable[..., Visit]:
    """enter(key, **options): the quality page, with this key given."""

    def open_with(key: str, **options: object) -> Visit:
        visit = open_page(site.url, **options)
        visit.page.get_by_role("button", name="Cancel").click()
        visit.page.get_by_role("link", name="Quality").click()
        visit.page.get_by_label("Key", exact=True).fill(key)
        visit.page.get_by_role("button", name="Use key").click()
        return visit

    return open_with


def tile(visit: Visit, name: str) -> Locator:
    return visit.page.locator(".tiles div", has=visit.page.locator("dt", has_text=name)).locator(
        "dd"
    )


def panel(visit: Visit, name: str) -> Locator:
    return visit.page.get_by_role("region", name=name)


def test_real_figures_appear_as_tiles_and_plots(enter: Callable[..., Visit], site: Site):
    visit = enter(site.acme)
    expect(tile(visit, "Searches")).to_contain_text("3")
    expect(tile(visit, "MRR")).to_contain_text("0.50")
    expect(tile(visit, "Recall")).to_contain_text("0.95")
    expect(tile(visit, "Nodes")).to_contain_text("+3 since")
    for name in ("Searches and errors", "Latency by the hour", "What people think"):
        expect(panel(visit, name).get_by_role("img")).to_be_visible()
    expect(panel(visit, "Nodes by the day").locator("circle")).to_have_count(2)
    expect(panel(visit, "Latency by step")).to_contain_text("total")
    bar = panel(visit, "Searches and errors").locator("rect").bounding_box()
    assert bar is not None
    assert bar["height"] > 40
    picture = panel(visit, "Searches and errors").get_by_role("img")
    expect(picture).to_have_attribute(
        "aria-label", "Searches by the hour: searches 3 at last, errors 0 at last"
    )
    visit.page.get_by_role("button", name="7 days").click()
    expect(visit.page.get_by_role("button", name="7 days")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(tile(visit, "Searches")).to_contain_text("3")


def test_a_tenant_without_searches_is_told_so_and_sees_nothing_of_another(
    enter: Callable[..., Visit], site: Site
):
    visit = enter(site.globex)
    expect(visit.page.get_by_text("Nobody has searched in this time.")).to_be_visible()
    expect(panel(visit, "What people think")).to_contain_text("No feedback yet")
    expect(panel(visit, "Nodes by the day")).to_contain_text("No marks yet")
    assert visit.page.locator(".plot").count() == 0
    shown = visit.page.inner_text("body")
    assert "acme" not in shown
    assert "globex" in shown


def test_a_key_without_the_scope_is_refused_in_words(enter: Callable[..., Visit], site: Site):
    visit = enter(site.searcher)
    dialog = visit.page.get_by_role("dialog", name="API key")
    expect(dialog).to_contain_text("lacks the scope admin")
    assert ["403" in text for text in visit.refused] == [True]


def test_the_page_fits_a_phone_in_the_dark(enter: Callable[..., Visit], site: Site):
    visit = enter(site.acme, viewport={"width": 360, "height": 740}, color_scheme="dark")
    expect(tile(visit, "Searches")).to_contain_text("3")
    wide = visit.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360
    colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(16, 19, 22)"
