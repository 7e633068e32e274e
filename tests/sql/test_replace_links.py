"""replace_links: the links of some nodes in place of those they had, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from service.db.engine import tenant_transaction
from service.db.ingestion import replace_links
from service.db.nodes import upsert_links
from service.errors import Forbidden, InvalidInput, NotFound
from service.types import LinkDraft
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.ingesting import Ask

Replace = Callable[..., list[str]]
PAIRS = """
    select s.external_id, t.external_id, l.link_type
    from node_links as l
    join knowledge_nodes as s on s.tenant_id = l.tenant_id and s.node_id = l.source_id
    join knowledge_nodes as t on t.tenant_id = l.tenant_id and t.node_id = l.target_id
    where l.tenant_id = %s
    order by 1, 2, 3
"""


@pytest.fixture
def tenants(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> tuple[str, str]:
    """Two tenants with the nodes a, b and c, and the same links."""
    names = make_tenant("acme"), make_tenant("globex")
    drafts = [
        LinkDraft("a", "b", "key"),
        LinkDraft("a", "c", "key"),
        LinkDraft("a", "b", "other"),
        LinkDraft("b", "c", "key"),
    ]
    for name in names:
        upsert(name, [make_node(node) for node in "abc"])
        with tenant_transaction(database.engine, [name]) as connection:
            upsert_links(connection, name, links=drafts)
    return names


@pytest.fixture
def replace(database: LiveDatabase) -> Replace:
    """replace(tenant, sources, links): replace the keys of these sources; what became of each."""

    def run(tenant: str, sources: Sequence[str], links: Sequence[LinkDraft]) -> list[str]:
        with tenant_transaction(database.engine, [tenant]) as connection:
            made = replace_links(
                connection, tenant, sources=sources, links=links, replaced_type="key"
            )
            return sorted(link.action for link in made)

    return run


def test_links_of_that_type_and_source_that_are_not_named_again_are_dropped(
    tenants: tuple[str, str], replace: Replace, ask: Ask
) -> None:
    acme, globex = tenants
    untouched = ask(PAIRS, globex)

    links = [LinkDraft("a", "c", "key"), LinkDraft("a", "a", "key")]
    assert replace(acme, ["a"], links) == ["added", "unchanged"]

    assert ask(PAIRS, acme) == [
        ("a", "a", "key"),
        ("a", "b", "other"),
        ("a", "c", "key"),
        ("b", "c", "key"),
    ]
    assert ask(PAIRS, globex) == untouched


def test_a_node_that_names_no_links_has_none_left(
    tenants: tuple[str, str], replace: Replace, ask: Ask
) -> None:
    assert replace(tenants[0], ["a", "b", "nobody"], []) == []
    assert ask(PAIRS, tenants[0]) == [("a", "b", "other")]


def test_a_bad_link_drops_nothing(tenants: tuple[str, str], replace: Replace, ask: Ask) -> None:
    before = ask(PAIRS, tenants[0])
    with pytest.raises(InvalidInput, match='names target "nobody"'):
        replace(tenants[0], ["a"], [LinkDraft("a", "nobody", "key")])
    assert ask(PAIRS, tenants[0]) == before


def test_links_of_a_tenant_one_may_not_see_are_not_replaced(
    tenants: tuple[str, str], replace: Replace, database: LiveDatabase
) -> None:
    with (
        pytest.raises(Forbidden, match='may not see tenant "acme"'),
        tenant_transaction(database.engine, ["globex"]) as connection,
    ):
        replace_links(connection, "acme", sources=["a"], links=[], replaced_type="key")
    with pytest.raises(NotFound):
        replace("nobody", ["a"], [])
