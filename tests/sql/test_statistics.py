"""Any sequence of writes by two tenants leaves statistics that equal a recount."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import delete_nodes
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent

NAMES = "abcde"
WORDS = ["red", "apple", "apples", "running", "customerEmail", "the", "x1", "Größe"]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
drafts = st.fixed_dictionaries(
    {
        "content": texts,
        "title": texts,
        "lang": st.sampled_from([None, "en", "de", "xx"]),
        "searchable": st.booleans(),
        "order_index": st.integers(0, 2),
    }
)
upserts = st.dictionaries(st.sampled_from(NAMES), drafts, min_size=1)
deletes = st.lists(st.sampled_from(NAMES), min_size=1)
steps = st.lists(st.tuples(st.sampled_from([0, 1]), upserts | deletes), max_size=8)
numbers = count()


@given(steps=steps, embedded=st.booleans())
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_statistics_equal_a_recount_after_any_writes(
    *,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    make_node: MakeNode,
    upsert: Upsert,
    steps: list[tuple[int, dict[str, dict[str, Any]] | list[str]]],
    embedded: bool,
) -> None:
    # Tenants are new for each example, the database is the same.
    tenants = [make_tenant(f"t{next(numbers)}") for _ in range(2)]
    expected: list[dict[str, object]] = [{}, {}]

    for place, step in steps:
        tenant = tenants[place]
        if isinstance(step, dict):
            nodes = [make_node(name, **fields) for name, fields in step.items()]
            vectors = [np.ones(8, np.float32) if n.searchable and embedded else None for n in nodes]
            made = upsert(tenant, nodes, embeddings=vectors)
            assert {n.external_id for n in made} == step.keys()
            expected[place] |= {name: fields["content"] for name, fields in step.items()}
        else:
            with tenant_transaction(database.engine, [tenant]) as connection:
                gone = delete_nodes(connection, tenant, external_ids=step)
            assert {n.external_id for n in gone} == expected[place].keys() & set(step)
            for name in step:
                expected[place].pop(name, None)

    assert_consistent(database, *tenants)
    with owner_transaction(database.admin) as connection:
        for tenant, nodes_left in zip(tenants, expected, strict=True):
            stored = connection.exec_driver_sql(
                "select external_id, content from knowledge_nodes where tenant_id = %s", (tenant,)
            )
            assert dict(map(tuple, stored)) == nodes_left
