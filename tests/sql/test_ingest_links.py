"""Links between ingested documents and rows: the graph that is made, and what leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.ingestion.convert import NodeGroup, group_document, group_rows, group_schema
from service.ingestion.documents import OutLink
from service.ingestion.fetch import Fetcher
from service.ingestion.gather import gather_groups
from service.ingestion.jsonl import NodeRow
from service.ingestion.read import find_files
from service.ingestion.schema_model import Column, ForeignKey, Schema, Table
from service.types import NodeDraft
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.sql.ingesting import GRAPH, LINKED, Ask, Find, Ingest, Links, make_document, write_files
from tests.sql.recount import assert_consistent, snapshot
from tests.web_server import LOOPBACK, Reply, run_web_server


def test_links_by_path_url_and_title_make_the_drawn_graph(
    tmp_path: Path, ingest: Ingest, links: Links
) -> None:
    write_files(tmp_path, LINKED)

    assert ingest(tmp_path).links == len(GRAPH)
    assert links() == GRAPH
    assert ingest(tmp_path).links == 0
    assert links() == GRAPH


def test_a_dangling_reference_is_linked_when_its_target_arrives(
    tmp_path: Path, ingest: Ingest, links: Links
) -> None:
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    late = write_files(tmp_path / "late", {"missing.md": "# Nobody\n\nHere I am."})

    assert ingest(late).links == 1
    assert links() == GRAPH | {("e.md", "missing.md")}


def test_a_link_that_left_its_document_disappears(
    tmp_path: Path, ingest: Ingest, links: Links
) -> None:
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    write_files(tmp_path, {"a.md": "# First\n\nSee [b](sub/b.md).", "d.md": "# Fourth\n\nAlone."})

    ingest(tmp_path)

    assert links() == GRAPH - {("a.md", "c.html"), ("a.md", "d.md"), ("d.md", "e.md")}


def test_rows_link_by_id_until_they_no_longer_say_so(ingest: Ingest, links: Links) -> None:
    def rows(*first: str) -> list[NodeGroup]:
        drafts = [NodeDraft(name, "fact", content=f"fact {name}") for name in "abc"]
        given = [NodeRow(1, drafts[0], links=first), NodeRow(2, drafts[1]), NodeRow(3, drafts[2])]
        return list(group_rows("rows", given))

    ingest(rows("b", "c"))
    assert links() == {("a", "b"), ("a", "c")}
    ingest(rows("c"))
    assert links() == {("a", "c")}
    ingest(rows())
    assert links() == set()


def test_two_tenants_with_the_same_files_never_mix(
    tmp_path: Path,
    ingest: Ingest,
    make_tenant: MakeTenant,
    ask: Ask,
    find: Find,
    database: LiveDatabase,
) -> None:
    other = make_tenant("globex")
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    before = snapshot(database, "acme")

    assert ingest(tmp_path, tenant=other).links == len(GRAPH)
    write_files(tmp_path, {"a.md": "# First\n\nThe walrus is alone."})
    for name in ("sub/b.md", "c.html"):
        (tmp_path / name).unlink()
    ingest(tmp_path, tenant=other, prune=True)

    assert snapshot(database, "acme") == before
    assert find("walrus", other)[0] == "a.md#first.1"
    assert bool(ask("select from node_links where tenant_id = %s", other))
    assert_consistent(database, "acme", other)


def test_only_links_that_are_new_are_counted_when_another_one_left(
    tmp_path: Path, ingest: Ingest, links: Links
) -> None:
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    write_files(
        tmp_path, {"a.md": "# First\n\nSee [b](sub/b.md) and [[cat page]]; new: [e](e.md)."}
    )

    assert ingest(tmp_path).links == 1
    assert links() == (GRAPH - {("a.md", "d.md")}) | {("a.md", "e.md")}


@pytest.mark.parametrize(
    ("title", "reference"),
    [
        ("İstanbul", "İSTANBUL"),
        ("İstanbul", "İstanbul"),
        ("Straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("Éclair", "e\u0301clair"),
        ("ﬁnal report", "Final Report"),
    ],
)
def test_a_title_is_found_in_upper_and_lower_case_of_every_script(
    title: str, reference: str, ingest: Ingest, links: Links
) -> None:
    target = make_document("target", "Text.", title=title)
    source = make_document("source", "Text.", links=(OutLink("title", reference),))

    ingest(map(group_document, (source, target)))
    assert links() == {("source", "target")}

    alone = make_document("source", "Text.", links=(OutLink("path", "nowhere"),))
    ingest([group_document(alone)])
    assert links() == set()


def test_a_short_html_page_keeps_its_links(tmp_path: Path, ingest: Ingest, links: Links) -> None:
    page = '<html><body><h1>Page</h1><p>Go to <a href="b.md">the other</a>.</p></body></html>'
    write_files(tmp_path, {"a.html": page, "b.md": "# Other\n\nHere."})

    ingest(tmp_path)

    assert links() == {("a.html", "b.md")}


def make_schema(*, has_key: bool) -> Schema:
    """Two tables, the second of which may refer to the first."""
    key = (ForeignKey(("customer",), "customers", ("id",)),) if has_key else ()
    columns = (Column("customer", "integer"), Column("parent", "integer"), Column("id", "integer"))
    own = ForeignKey(("parent",), "orders", ("id",))
    return Schema(
        (
            Table("customers", (Column("id", "integer"),)),
            Table("orders", columns, foreign_keys=(own, *key)),
        )
    )


def test_the_link_of_a_dropped_foreign_key_disappears(
    ingest: Ingest, ask: Ask, make_tenant: MakeTenant
) -> None:
    def count(tenant: str) -> int:
        statement = "select count(*) from node_links where tenant_id = %s"
        ((found,),) = ask(statement, tenant)
        return int(found)

    other = make_tenant("globex")
    for tenant in ("acme", other):
        assert ingest(group_schema(make_schema(has_key=True)), tenant=tenant).links == 3
    ingest(group_schema(make_schema(has_key=False)), dry_run=True)
    assert (count("acme"), count(other)) == (3, 3)

    report = ingest(group_schema(make_schema(has_key=False)))

    assert (report.links, report.changed) == (0, 1)
    assert (count("acme"), count(other)) == (1, 3)


def test_fetched_pages_and_files_are_linked_by_their_urls(
    tmp_path: Path, ingest: Ingest, ask: Ask, links: Links
) -> None:
    page = "<html><body><h1>{title}</h1><p>Go to <a href='{href}'>the other</a>.</p></body></html>"
    pages = {"/a/": page.format(title="A", href="../b"), "/b": page.format(title="B", href="/a/")}
    replies = {path: Reply(body.encode()) for path, body in pages.items()}
    replies["/old"] = Reply(status=301, headers={"Location": "/b"})
    with run_web_server(replies) as server:
        here = f"http://docs.test:{server.port}"
        fetcher = Fetcher(
            ports={server.port}, trusted={LOOPBACK}, resolve=lambda host, port: [LOOPBACK]
        )
        write_files(tmp_path, {"c.md": f"# C\n\nSee [a]({here}/a/) and [b]({here}/b#part)."})
        sources = find_files([f"{here}/a/", f"{here}/old", str(tmp_path)])
        ingest(gather_groups(sources, size=400, overlap=0.1, fetcher=fetcher))

    assert links() == {
        (f"{here}/a/", f"{here}/old"),
        (f"{here}/old", f"{here}/a/"),
        ("c.md", f"{here}/a/"),
        ("c.md", f"{here}/old"),
    }
    assert ask("select distinct url from knowledge_nodes where title = 'B'") == [(f"{here}/b",)]
