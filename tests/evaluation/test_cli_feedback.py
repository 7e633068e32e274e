"""contextforge tune --from-feedback from end to end, on simulated callers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.db.engine import tenant_transaction
from service.db.feedback_signals import GivenSignal, read_signals
from service.db.nodes import upsert_nodes
from service.db.search import vector_search_nodes
from service.db.tenant_settings import read_tenant_settings
from service.embedding import load_embedder
from service.settings import Settings
from service.types import NodeDraft, Signal
from tests.command_line import Command
from tests.evaluation.beir_folder import write_folder
from tests.evaluation.conftest import MODEL_DIM
from tests.live_database import LiveDatabase

MONTH = timedelta(days=30)
QUESTIONS = 50
CALLERS = 12
NAMES = [f"d{number:02}" for number in range(QUESTIONS)]
TUNE = ("tune", "--from-feedback", "--tenant", "acme", "--json")


@dataclass(frozen=True)
class Village:
    """Questions with the one node that answers each; vectors lead elsewhere."""

    questions: tuple[str, ...]
    node_ids: tuple[int, ...]


def found_village(live: LiveDatabase, tenant: str = "acme") -> Village:
    """Nodes of which the words are right and the vectors are not."""
    generator = np.random.default_rng(4)
    words = ["wort" + "".join(generator.choice([*"abcdefgh"], 9)) for _ in range(QUESTIONS)]
    drafts = [
        NodeDraft(name, node_type="fact", content=f"The {word} of a village harbour.")
        for name, word in zip(NAMES, words, strict=True)
    ]
    vectors = generator.normal(size=(QUESTIONS, MODEL_DIM)).astype(np.float32)
    with tenant_transaction(live.engine, [tenant]) as connection:
        stored = upsert_nodes(connection, tenant, nodes=drafts, embeddings=list(vectors))
    return Village(
        tuple(f"which village harbour has a {word}" for word in words),
        tuple(each.node_id for each in stored),
    )


def show(
    connection: Connection,
    question: str,
    *,
    node_ids: Sequence[int],
    tenant: str = "acme",
    keep: bool = True,
) -> UUID:
    """Put on record that nodes were shown for a question, and its words."""
    digest, trace_id = sha256(question.encode()).digest(), uuid4()
    connection.exec_driver_sql(
        "insert into traces (tenant_id, trace_id, kind, key_id, query_sha256, settings, node_ids,"
        " scores, steps, milliseconds) values (%s, %s, 'search', 'k', %s, %s, %s, %s, '{}', '{}')",
        (tenant, trace_id, digest, Jsonb({}), list(node_ids), [0.5] * len(node_ids)),
    )
    if keep:
        connection.exec_driver_sql(
            "insert into asked_questions (tenant_id, query_sha256, question) values (%s, %s, %s)"
            " on conflict do nothing",
            (tenant, digest, question),
        )
    return trace_id


def give(
    connection: Connection,
    trace_id: UUID,
    *,
    caller: str,
    node_id: int | None,
    position: int | None = None,
    signal: Signal = "clicked",
    tenant: str = "acme",
    age: timedelta = timedelta(),
) -> None:
    connection.exec_driver_sql(
        "insert into feedback (tenant_id, feedback_id, trace_id, key_id, caller, signal, node_id,"
        " position, created_at) values (%s, %s, %s, 'k', %s, %s, %s, %s, clock_timestamp() - %s)",
        (tenant, uuid4(), trace_id, caller, signal, node_id, position, age),
    )


def click_honestly(live: LiveDatabase, village: Village) -> None:
    """Callers who look at a place with 1/log2(1 + place) and click the answer if they see it."""
    generator = np.random.default_rng(9)
    with tenant_transaction(live.engine, ["acme"]) as connection:
        for number, question in enumerate(village.questions):
            right = village.node_ids[number]
            for shift in range(4):
                shown = [int(each) for each in generator.permutation(village.node_ids)[:10]]
                place = int(generator.integers(10))
                shown[place] = right
                trace_id = show(connection, question, node_ids=shown)
                if generator.random() < 1 / math.log2(2 + place):
                    caller = f"caller{(4 * number + shift) % CALLERS}"
                    give(connection, trace_id, caller=caller, node_id=right, position=place + 1)


def flood(live: LiveDatabase, village: Village) -> None:
    """One caller who clicks a wrong node of every question, again and again."""
    with tenant_transaction(live.engine, ["acme"]) as connection:
        for number, question in enumerate(village.questions * 3):
            wrong = village.node_ids[(number + 7) % QUESTIONS]
            trace_id = show(connection, question, node_ids=[*village.node_ids[:30], wrong])
            for signal in ("clicked", "helpful", "answer_accepted"):
                give(
                    connection,
                    trace_id,
                    caller="flood",
                    node_id=wrong,
                    position=31,
                    signal=signal,
                )


def test_what_honest_callers_click_is_learnt_applied_used_and_undone(
    command: Command, live: LiveDatabase
):
    village = found_village(live)
    click_honestly(live, village)
    asked = ("search", village.questions[0], "--tenant", "acme", "--json")
    assert command(*asked).json["nodes"][0]["node_id"] != village.node_ids[0]

    found = command(*TUNE)
    assert found.code == 0, found.err
    whole = found.json["proposals"][0]
    assert (whole["group"], whole["improves"], whole["callers"]) == ("tenant", True, CALLERS)
    assert whole["held_out"]["low"] > 0.1
    assert found.json["settings"]["hybrid_keyword_weight"] > 0.5
    assert found.json["applied"] == {}
    assert command(*asked).json["nodes"][0]["node_id"] != village.node_ids[0]

    flood(live, village)
    assert command(*TUNE).json["settings"] == found.json["settings"]

    applied = command(*TUNE, "--apply").json["applied"]
    assert applied == found.json["settings"]
    assert command(*asked).json["nodes"][0]["node_id"] == village.node_ids[0]
    assert command("tune", "--undo", "--tenant", "acme", "--json").json["settings"] == {}
    assert command(*asked).json["nodes"][0]["node_id"] != village.node_ids[0]


def write_check(folder: Path, village: Village, *, right: Sequence[str]) -> str:
    """A set that says which document answers each question."""
    written = write_folder(
        folder,
        documents=dict.fromkeys(NAMES, ("", "A village.")),
        questions={f"q{n}": text for n, text in enumerate(village.questions)},
        judgements={f"q{n}": {name: 1} for n, name in enumerate(right)},
    )
    return str(written)


def find_by_vector(live: LiveDatabase, village: Village) -> list[str]:
    """The documents whose vectors are nearest to each question."""
    embedder = load_embedder(Settings().embedding_model)
    names = dict(zip(village.node_ids, NAMES, strict=True))
    with tenant_transaction(live.engine, ["acme"]) as connection:
        return [
            names[
                vector_search_nodes(
                    connection, ["acme"], query_embedding=embedder.embed_query(text), top_k=1
                )[0].node_id
            ]
            for text in village.questions
        ]


def test_a_proposal_that_fails_its_check_is_not_stored(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    village = found_village(live)
    click_honestly(live, village)

    agreed = command(*TUNE, "--check", write_check(tmp_path / "agreed", village, right=NAMES))
    assert agreed.code == 0, agreed.err
    assert agreed.json["check"]["proposed"] > agreed.json["check"]["current"] + 0.1

    other = write_check(tmp_path / "other", village, right=find_by_vector(live, village))
    refused = command(*TUNE, "--check", other, "--apply")
    assert refused.code == 1
    assert "ndcg@10 falls" in refused.err
    with tenant_transaction(live.engine, ["acme"]) as connection:
        assert read_tenant_settings(connection, "acme") == {}


def test_too_little_feedback_is_refused_and_other_tenants_do_not_count(
    command: Command, live: LiveDatabase
):
    village = found_village(live)
    click_honestly(live, village)
    found_village(live, "globex")
    refused = command("tune", "--from-feedback", "--tenant", "globex", "--apply")
    assert refused.code == 1
    assert "There is feedback on 0 questions of 0 callers" in refused.err
    assert "40 questions of 10 different callers" in refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from-feedback",),
        ("--from-feedback", "--tenant", "acme", "a-set"),
        ("--from-feedback", "--tenant", "acme", "--dataset", "docs"),
        ("a-set", "--check", "another"),
        ("--from-feedback", "--tenant", "acme", "--days", "0"),
    ],
)
def test_tune_says_what_does_not_go_together(command: Command, arguments: tuple[str, ...]):
    assert command("tune", *arguments).code == 2


# --- what is read -----------------------------------------------------------------------------


def read(live: LiveDatabase, tenant: str = "acme", *, most: int = 100) -> list[GivenSignal]:
    with tenant_transaction(live.engine, [tenant]) as connection:
        return read_signals(connection, tenant, within=MONTH, most=most)


def test_a_signal_is_read_with_its_words_document_and_place_and_only_by_its_tenant(
    live: LiveDatabase,
):
    village, other = found_village(live), found_village(live, "globex")
    with tenant_transaction(live.engine, ["acme"]) as connection:
        trace_id = show(connection, "where is it", node_ids=village.node_ids[:3])
        give(connection, trace_id, caller="ann", node_id=village.node_ids[2])
    with tenant_transaction(live.engine, ["globex"]) as connection:
        trace_id = show(connection, "where is it", node_ids=other.node_ids[:3], tenant="globex")
        give(connection, trace_id, caller="bob", node_id=other.node_ids[0], tenant="globex")
    digest = sha256(b"where is it").hexdigest()
    assert read(live) == [GivenSignal(digest, "where is it", None, "ann", "d02", "clicked", 3)]
    assert [each.caller for each in read(live, "globex")] == ["bob"]


def test_what_is_old_whose_words_are_not_kept_or_that_was_not_shown_is_not_read(
    live: LiveDatabase,
):
    village = found_village(live)
    with tenant_transaction(live.engine, ["acme"]) as connection:
        trace_id = show(connection, "old", node_ids=village.node_ids[:3])
        give(
            connection,
            trace_id,
            caller="ann",
            node_id=village.node_ids[0],
            age=timedelta(days=31),
        )
        give(connection, trace_id, caller="bob", node_id=village.node_ids[5])
        trace_id = show(connection, "forgotten", node_ids=village.node_ids[:3], keep=False)
        give(connection, trace_id, caller="ann", node_id=village.node_ids[0])
    assert read(live) == []


def test_an_accepted_answer_counts_for_what_its_caller_saw_cited_and_a_flood_is_cut(
    live: LiveDatabase,
):
    village = found_village(live)
    with tenant_transaction(live.engine, ["acme"]) as connection:
        trace_id = show(connection, "answered", node_ids=village.node_ids[:5])
        cited, position = village.node_ids[1], 2
        give(connection, trace_id, caller="ann", node_id=cited, position=position, signal="cited")
        for caller in ("ann", "bob"):
            give(connection, trace_id, caller=caller, node_id=None, signal="answer_accepted")
        for node_id in village.node_ids[:5]:
            give(connection, trace_id, caller="bot", node_id=node_id)
    found = read(live, most=2)
    assert {
        (each.signal, each.document, each.position) for each in found if each.caller == "ann"
    } == {
        ("cited", "d01", 2),
        ("answer_accepted", "d01", 2),
    }
    assert [each.caller for each in found].count("bot") == 2
    assert "bob" not in {each.caller for each in found}
