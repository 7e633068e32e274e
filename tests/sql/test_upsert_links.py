"""upsert_links: links between nodes of one tenant, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from psycopg.types.json import Jsonb

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import upsert_links
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError
from service.types import LinkDraft, UpsertedLink
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase

Link = Callable[..., list[UpsertedLink]]


@pytest.fixture
def link(database: LiveDatabase) -> Link:
    """link(tenant, links): upsert_links by the service in a transaction of its own."""

    def run(tenant: str, links: Sequence[LinkDraft]) -> list[UpsertedLink]:
        with tenant_transaction(database.engine, [tenant]) as connection:
            return upsert_links(connection, tenant, links=links)

    return run


@pytest.fixture
def tenant(make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode) -> str:
    """A tenant with the nodes a, b and c."""
    name = make_tenant()
    upsert(name, [make_node(node) for node in "abc"])
    return name


def count_links(database: LiveDatabase, tenant: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(
            connection.exec_driver_sql(
                "select count(*) from node_links where tenant_id = %s", (tenant,)
            ).scalar_one()
        )


def test_a_link_is_added_then_unchanged_then_changed(tenant: str, link: Link) -> None:
    for weight, action in ((1.0, "added"), (1.0, "unchanged"), (2.5, "changed")):
        (made,) = link(tenant, [LinkDraft("a", "b", weight=weight)])
        assert (made.link_type, made.action) == ("link", action)


def test_direction_and_type_make_different_links(
    tenant: str, link: Link, database: LiveDatabase
) -> None:
    drafts = [LinkDraft("a", "b"), LinkDraft("b", "a"), LinkDraft("a", "b", "foreign_key")]

    assert [made.action for made in link(tenant, drafts)] == ["added"] * 3
    assert count_links(database, tenant) == 3


def test_a_link_may_cross_datasets(
    tenant: str, link: Link, upsert: Upsert, make_node: MakeNode
) -> None:
    (far,) = upsert(tenant, [make_node("far")], dataset_name="elsewhere")

    (made,) = link(tenant, [LinkDraft("a", "far", target_dataset="elsewhere")])

    assert made.target_id == far.node_id


def test_an_empty_batch_is_no_error(tenant: str, link: Link) -> None:
    assert link(tenant, []) == []


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (LinkDraft("a", "nobody"), InvalidInput, 'link 2 names target "nobody"'),
        (LinkDraft("nobody", "a"), InvalidInput, 'link 2 names source "nobody"'),
        (LinkDraft("a", "theirs"), InvalidInput, 'link 2 names target "theirs"'),
        (LinkDraft("theirs", "a"), InvalidInput, 'link 2 names source "theirs"'),
        (LinkDraft("a", "b"), Conflict, "link 1 appears more than once"),
        (LinkDraft("b", "c", link_type=""), InvalidInput, "link 2 has an empty link_type"),
        (LinkDraft("b", "c", weight=0), InvalidInput, "link 2 has weight 0"),
        (LinkDraft("b", "c", weight=-1), InvalidInput, "link 2 has weight -1"),
        (
            LinkDraft("b", "c", weight=float("nan")),
            InvalidInput,
            "link 2 has the number nan in its weight",
        ),
        (
            LinkDraft("b", "c", weight=float("inf")),
            InvalidInput,
            "link 2 has the number inf in its weight",
        ),
        (LinkDraft("b\x00", "c"), InvalidInput, "link 2 .* NUL"),
    ],
)
def test_a_bad_link_is_named_and_nothing_of_the_batch_is_stored(
    *,
    tenant: str,
    link: Link,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
    bad: LinkDraft,
    error: type[ServiceError],
    message: str,
) -> None:
    upsert(make_tenant("globex"), [make_node("theirs")])

    with pytest.raises(error, match=message):
        link(tenant, [LinkDraft("a", "b"), bad])
    assert count_links(database, tenant) == 0


@pytest.mark.parametrize(
    "links",
    [{"source": "a"}, None, [{"source": "a"}], ["a"], [{"source": "a", "target": "b", "x": 1}]],
)
def test_what_is_no_list_of_links_is_refused(
    tenant: str, database: LiveDatabase, links: object
) -> None:
    with (
        pytest.raises(InvalidInput),
        tenant_transaction(database.engine, [tenant]) as connection,
    ):
        connection.exec_driver_sql("select upsert_links(%s, %s)", (tenant, Jsonb(links)))


def test_links_of_a_tenant_one_may_not_see_are_forbidden(
    tenant: str, make_tenant: MakeTenant, link: Link, database: LiveDatabase
) -> None:
    make_tenant("globex")
    with (
        pytest.raises(Forbidden, match='may not see tenant "acme"'),
        tenant_transaction(database.engine, ["globex"]) as connection,
    ):
        upsert_links(connection, tenant, links=[LinkDraft("a", "b")])
    with pytest.raises(NotFound):
        link("nobody", [])
