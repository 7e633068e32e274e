"""What upsert_nodes refuses: each a typed error that names the item, and nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from service.db.engine import tenant_transaction
from service.db.nodes import upsert_nodes
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError
from service.types import Vector
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import snapshot

GOOD = np.ones(8, np.float32)
UNIQUE_WORDS = " ".join(f"w{n:x}" for n in range(140_000))


def vector(*values: float) -> Vector:
    return np.array(values, np.float32)


@dataclass(frozen=True, slots=True)
class Bad:
    """A node that cannot be stored, and what is said about it."""

    message: str
    fields: dict[str, Any] = field(default_factory=dict)
    embedding: NDArray[np.floating] | None = None
    error: type[ServiceError] = InvalidInput
    name: str = "bad"


CASES = {
    "too few dimensions": Bad("5 dimensions where the tenant has 8", embedding=GOOD[:5]),
    "too many dimensions": Bad(
        "9 dimensions where the tenant has 8", embedding=np.ones(9, np.float32)
    ),
    "no dimensions": Bad("NaN, infinite or no values", embedding=vector()),
    "a matrix": Bad("NaN, infinite or no values", embedding=np.ones((2, 4), np.float32)),
    "nan": Bad("NaN", embedding=vector(1, 2, 3, float("nan"), 5, 6, 7, 8)),
    "infinity": Bad("infinite", embedding=vector(1, 2, 3, float("-inf"), 5, 6, 7, 8)),
    "beyond float32": Bad("infinite", embedding=np.full(8, 1e300)),
    "zeros": Bad("all-zero embedding", embedding=vector(*[0.0] * 8)),
    "embedding of the unsearchable": Bad("takes no embedding", {"searchable": False}, GOOD),
    "nul in content": Bad("NUL byte in its content", {"content": "a\x00b"}),
    "nul in title": Bad("NUL byte in its title", {"title": "\x00"}),
    "nul in metadata": Bad("NUL byte in its metadata", {"metadata": {"a": [{"b": "\x00"}]}}),
    "nul in a metadata key": Bad("NUL byte in its metadata", {"metadata": {"\x00": 1}}),
    "nul in acl": Bad("NUL byte in its acl", {"acl": ("staff", "\x00")}),
    "nul in external_id": Bad("NUL byte in its external_id", name="bad\x00"),
    "surrogate": Bad("surrogate pair in its content", {"content": "a\ud800b"}),
    "nan in metadata": Bad("number nan in its metadata", {"metadata": {"a": float("nan")}}),
    "two megabytes": Bad("more than 1,000,000 bytes", {"content": "word " * 420_000}),
    "two megabytes of title": Bad("more than 1,000,000 bytes", {"title": "word " * 420_000}),
    "too many lexemes": Bad("too long for tsvector", {"content": UNIQUE_WORDS}),
    "unknown parent": Bad('names parent "nobody"', {"parent": "nobody"}),
    "unknown parent id": Bad('names parent "99999"', {"parent_id": 99999}),
    "empty node_type": Bad("non-empty external_id and node_type", {"node_type": ""}),
    "empty external_id": Bad("non-empty external_id and node_type", name=""),
    "duplicate": Bad("appears more than once in this batch", error=Conflict, name="good"),
    "negative token_count": Bad("token_count", {"token_count": -1}),
    "huge order_index": Bad("out of range", {"order_index": 2**40}),
}
# These are found by PostgreSQL itself, which does not know which node of the batch it is at.
UNNAMED = {"too many lexemes", "negative token_count", "huge order_index"}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_node_is_named_and_nothing_of_its_batch_is_stored(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase, case: str
) -> None:
    tenant, bad = make_tenant(), CASES[case]
    before = snapshot(database, tenant)
    nodes = [make_node("good", "apples"), make_node(bad.name, **bad.fields)]

    with pytest.raises(bad.error, match=bad.message) as refusal:
        upsert(tenant, nodes, embeddings=[GOOD, bad.embedding], embedder_version="e1")

    assert snapshot(database, tenant) == before
    if case not in UNNAMED:
        place = 1 if bad.name == "good" else 2
        assert refusal.value.message.startswith(f'node {place} ("{bad.name}')
    good = nodes[:1]
    assert upsert(tenant, good, embeddings=[GOOD], embedder_version="e1")[0].action == "added"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (None, "must be a json array"),
        ({"external_id": "a"}, "must be a json array"),
        ([1], 'node 1 \\(""\\) is not a json object'),
        ([{"external_id": "a"}], 'node 1 \\("a"\\) needs a non-empty'),
        ([{"external_id": None, "node_type": "x"}], "node 1 .* needs a non-empty"),
        ([{"external_id": "a", "node_type": "x", "titel": 1}], '"a"\\) has an unknown key "titel"'),
        (
            [{"external_id": "a", "node_type": "x", "metadata": [1]}],
            "metadata that is no json object",
        ),
        ([{"external_id": "a", "node_type": "x", "searchable": "maybe"}], "boolean"),
    ],
)
def test_raw_json_of_the_wrong_shape_is_refused(
    make_tenant: MakeTenant, database: LiveDatabase, nodes: object, message: str
) -> None:
    tenant = make_tenant()
    before = snapshot(database, tenant)

    with (
        pytest.raises(InvalidInput, match=message),
        tenant_transaction(database.engine, [tenant]) as connection,
    ):
        connection.exec_driver_sql("select upsert_nodes(%s, %s)", (tenant, Jsonb(nodes)))
    assert snapshot(database, tenant) == before


def test_text_that_only_looks_like_a_nul_byte_is_stored(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
) -> None:
    node = make_node("a", r"\x00 and \u0000", metadata={r"\x00": r"\u0000", "emoji": "🙂"})

    assert upsert(make_tenant(), [node])[0].action == "added"


def test_as_many_embeddings_as_nodes_are_wanted(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
) -> None:
    tenant = make_tenant()
    with pytest.raises(InvalidInput, match="2 nodes came with 1 embeddings"):
        upsert(tenant, [make_node("a"), make_node("b")], embeddings=[GOOD])


def test_a_tenant_one_may_not_see_is_forbidden_and_one_that_is_not_there_not_found(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex")
    before = snapshot(database, globex)

    for context, tenant in (([acme], globex), ([acme], "nobody"), ([], globex)):
        with (
            pytest.raises(Forbidden, match=f'may not see tenant "{tenant}"') as denial,
            tenant_transaction(database.engine, context) as connection,
        ):
            upsert_nodes(connection, tenant, nodes=[make_node("a")])
        assert getattr(denial.value.__cause__, "orig").sqlstate == "42501"  # noqa: B009
    with pytest.raises(NotFound, match='"nobody" does not exist'):
        upsert("nobody", [make_node("a")])
    with pytest.raises(InvalidInput, match="cannot be a tenant id"):
        upsert("no'body", [make_node("a")])
    assert snapshot(database, globex) == before


def test_a_nul_byte_in_the_dataset_name_is_invalid_input(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        upsert(make_tenant(), [make_node("a")], dataset_name="a\x00")
