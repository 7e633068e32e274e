"""Two tenants: neither finds, counts, nor moves the scores of the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from sqlalchemy import Connection

from service.db.engine import plain_transaction, tenant_transaction
from service.db.maintenance import merge_segments, refresh_ann
from service.db.nodes import delete_nodes
from service.db.search import (
    bm25_search_nodes,
    explain_hybrid_search,
    hybrid_search_nodes,
    similar_nodes,
    vector_search_nodes,
)
from service.errors import Forbidden, InvalidInput, NotFound
from tests.conftest import MakeLogin, MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import (
    TEXTS,
    engine_of,
    logged_in,
    random_vectors,
    searching,
    vector,
)

Search = Callable[[Connection, Sequence[str]], object]
EAST = vector(1)
QUESTION = "Where does the boat wait for the tide?"


def reads_of(node_id: int) -> Mapping[str, Search]:
    """Every function that reads, ready to be asked of some tenants."""
    return {
        "hybrid": lambda c, t: hybrid_search_nodes(c, t, query_text=QUESTION, query_embedding=EAST),
        "convex": lambda c, t: hybrid_search_nodes(
            c, t, query_text=QUESTION, query_embedding=EAST, fusion="convex"
        ),
        "bm25": lambda c, t: bm25_search_nodes(c, t, query_text=QUESTION),
        "vector": lambda c, t: vector_search_nodes(c, t, query_embedding=EAST),
        "similar": lambda c, t: similar_nodes(c, t, node_id=node_id),
        "explain": lambda c, t: explain_hybrid_search(
            c, t, query_text=QUESTION, query_embedding=EAST
        ),
    }


WRITES: Mapping[str, Search] = {
    "merge": lambda c, t: merge_segments(c, t[0], everything=True),
    "refresh": lambda c, t: refresh_ann(c, t[0]),
}


@pytest.fixture
def first_nodes(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> dict[str, int]:
    """acme and globex with 20 and 30 nodes; the id of the first node of each."""
    made: dict[str, int] = {}
    for tenant, texts in (("acme", TEXTS[:20]), ("globex", TEXTS[20:50])):
        make_tenant(tenant)
        nodes = upsert(
            tenant,
            [make_node(f"n{i}", text, title=text[:12]) for i, text in enumerate(texts)],
            embeddings=list(random_vectors(len(texts), seed=len(texts))),
            embedder_version="toy@1",
        )
        made[tenant] = nodes[0].node_id
    return made


def test_a_key_for_one_tenant_is_refused_the_other_by_every_function(
    database: LiveDatabase, first_nodes: dict[str, int]
) -> None:
    functions = {**reads_of(first_nodes["globex"]), **WRITES}
    for call in functions.values():
        for tenants in (["globex"], ["globex", "acme"], ["nowhere"]):
            with pytest.raises(Forbidden), searching(database, "acme") as connection:
                call(connection, tenants)
        with pytest.raises(Forbidden), plain_transaction(database.engine) as connection:
            call(connection, ["acme"])


def test_a_tenant_of_the_key_that_does_not_exist_is_not_found(
    database: LiveDatabase, first_nodes: dict[str, int]
) -> None:
    for call in (*reads_of(1).values(), *WRITES.values()):
        with pytest.raises(NotFound), searching(database, "nowhere") as connection:
            call(connection, ["nowhere"])


def test_an_analyst_reads_what_was_granted_and_writes_nothing(
    database: LiveDatabase, first_nodes: dict[str, int], make_login: MakeLogin
) -> None:
    one = make_login("one", granted=["acme"])
    reads = reads_of(first_nodes["acme"])
    with searching(database, "acme") as connection:
        expected = {name: call(connection, ["acme"]) for name, call in reads.items()}

    with logged_in(database, one) as connection:
        # Anyone can set the variable; it counts for the service alone.
        connection.exec_driver_sql("set local app.tenant_ids = 'globex'")
        assert {name: call(connection, ["acme"]) for name, call in reads.items()} == expected

    with engine_of(database, one) as engine:
        for call in reads_of(first_nodes["globex"]).values():
            for tenants in (["globex"], ["acme", "globex"], ["nowhere"]):
                with pytest.raises(Forbidden), tenant_transaction(engine, tenants) as connection:
                    call(connection, tenants)
        for call in WRITES.values():
            with pytest.raises(Forbidden), plain_transaction(engine) as connection:
                call(connection, ["acme"])


def test_an_analyst_with_two_grants_searches_both_together(
    database: LiveDatabase, first_nodes: dict[str, int], make_login: MakeLogin
) -> None:
    both = make_login("both", granted=["acme", "globex"])
    tenants = ["acme", "globex"]
    reads = reads_of(first_nodes["acme"])
    with searching(database, *tenants) as connection:
        expected = {name: call(connection, tenants) for name, call in reads.items()}

    with logged_in(database, both) as connection:
        assert {name: call(connection, tenants) for name, call in reads.items()} == expected
        found = vector_search_nodes(connection, tenants, query_embedding=EAST, top_k=50)
        owners = connection.exec_driver_sql(
            "select count(distinct tenant_id) from knowledge_nodes where node_id = any(%s)",
            ([node.node_id for node in found],),
        ).scalar_one()
    assert len(found) == 50
    assert owners == 2


def test_a_node_of_another_tenant_is_like_one_that_does_not_exist(
    database: LiveDatabase, first_nodes: dict[str, int]
) -> None:
    messages = []
    for node_id in (first_nodes["globex"], 2_000_000_000):
        with pytest.raises(NotFound) as raised, searching(database, "acme") as connection:
            similar_nodes(connection, ["acme"], node_id=node_id)
        messages.append(str(raised.value).replace(str(node_id), "N"))
    assert messages[0] == messages[1]
    # Seeing both is not enough: the call names the tenants.
    with pytest.raises(NotFound), searching(database, "acme", "globex") as connection:
        similar_nodes(connection, ["acme"], node_id=first_nodes["globex"])


def test_explain_counts_only_the_rows_of_the_tenants_asked_for(
    database: LiveDatabase, first_nodes: dict[str, int]
) -> None:
    def count_rows(tenants: Sequence[str], **options: str) -> int | None:
        with searching(database, "acme", "globex") as connection:
            return explain_hybrid_search(
                connection,
                tenants,
                query_embedding=EAST,
                **options,  # type: ignore[arg-type]
            ).vector_rows

    assert count_rows(["acme"]) == 20
    assert count_rows(["globex"]) == 30
    assert count_rows(["acme", "globex"]) == 50
    assert count_rows(["globex"], dataset_name="nowhere") == 0


def test_nothing_another_tenant_does_moves_a_score(
    database: LiveDatabase, first_nodes: dict[str, int], make_node: MakeNode, upsert: Upsert
) -> None:
    reads = reads_of(first_nodes["acme"])

    def ask() -> dict[str, object]:
        with searching(database, "acme") as connection:
            return {name: call(connection, ["acme"]) for name, call in reads.items()}

    before = ask()
    # Of one embedder as acme's, with the words of the question, as near as can be.
    nodes = [make_node(f"new{i}", QUESTION * (1 + i % 3)) for i in range(200)]
    upsert("globex", nodes, embeddings=[EAST] * 200, embedder_version="toy@1")
    assert ask() == before
    upsert("globex", [make_node(f"n{i}", "boat boat tide") for i in range(30)])
    assert ask() == before
    with searching(database, "globex") as connection:
        delete_nodes(connection, "globex", external_ids=[f"new{i}" for i in range(0, 200, 2)])
    assert ask() == before
    with searching(database, "globex") as connection:
        assert merge_segments(connection, "globex", everything=True) > 1
    assert ask() == before


def test_a_language_of_another_tenant_adds_no_words_to_a_query(
    database: LiveDatabase, first_nodes: dict[str, int], make_node: MakeNode, upsert: Upsert
) -> None:
    upsert("acme", [make_node("plain", "Gärten")])
    upsert("globex", [make_node("german", "Gärten", lang="de")])

    with searching(database, "acme", "globex") as connection:
        own = bm25_search_nodes(connection, ["acme"], query_text="Garten")
        theirs = bm25_search_nodes(connection, ["globex"], query_text="Garten")
    assert own == []
    assert len(theirs) == 1


def test_tenants_of_different_dimensions_cannot_be_searched_by_one_vector(
    database: LiveDatabase,
    first_nodes: dict[str, int],
    make_tenant: MakeTenant,
    make_node: MakeNode,
    upsert: Upsert,
) -> None:
    make_tenant("small")
    upsert(
        "small", [make_node("a", "boat")], embeddings=[vector(1, dim=3)], embedder_version="three@1"
    )

    with (
        pytest.raises(InvalidInput, match='8 dimensions where tenant "small" has 3'),
        searching(database, "acme", "small") as connection,
    ):
        vector_search_nodes(connection, ["acme", "small"], query_embedding=EAST)
    with searching(database, "acme", "small") as connection:
        assert bm25_search_nodes(connection, ["acme", "small"], query_text="boat")
