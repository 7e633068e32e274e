"""JSON Lines in a real database: rows as they are, bad ones named, vanished ones removed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from service.ingestion.convert import NodeGroup, group_document, group_examples, group_rows
from service.ingestion.examples import Example
from service.ingestion.ingest import Rejection
from service.ingestion.jsonl import NodeRow
from service.types import NodeDraft, Vector
from tests.live_database import SMALL_DIM, LiveDatabase
from tests.sql.ingesting import Ask, Ingest, make_document, write_files
from tests.sql.recount import assert_consistent
from tests.tiny_embedder import TinyEmbedder


def test_rows_with_and_without_vectors_all_have_one(ingest: Ingest, ask: Ask) -> None:
    embedder = TinyEmbedder()
    rows = [
        NodeRow(1, NodeDraft("given", "fact", content="one"), embedder.embed_query("one")),
        NodeRow(2, NodeDraft("open", "fact", content="two")),
    ]

    report = ingest(group_rows("rows", rows), embedder=embedder)

    assert (report.embedded, embedder.texts) == (1, ["two"])
    assert ask("select count(*) from knowledge_nodes where embedding is null") == [(0,)]


def test_json_lines_of_a_file_are_stored_as_they_are(
    tmp_path: Path, ingest: Ingest, ask: Ask
) -> None:
    row = {
        "external_id": "x",
        "node_type": "fact",
        "title": "T",
        "summary": "S",
        "content": "C",
        "metadata": {"k": [1, None]},
        "lang": "en",
        "acl": ["staff"],
        "url": "https://example.com/x",
        "order_index": 3,
        "token_count": 9,
    }
    write_files(tmp_path, {"rows.jsonl": json.dumps(row)})

    ingest(tmp_path)

    columns = ", ".join(row)
    assert ask(f"select {columns} from knowledge_nodes") == [tuple(row.values())]


def make_rows(*drafts: NodeDraft, **embeddings: Vector) -> list[NodeGroup]:
    """Rows as one group, on the lines 1, 2, 3...; embeddings by external id."""
    rows = [
        NodeRow(line, draft, embeddings.get(draft.external_id))
        for line, draft in enumerate(drafts, start=1)
    ]
    return list(group_rows("rows.jsonl", rows))


def list_ids(ask: Ask) -> list[str]:
    return [name for (name,) in ask("select external_id from knowledge_nodes order by 1")]


def test_a_bad_row_is_named_by_its_line_and_the_others_of_its_group_are_stored(
    ingest: Ingest, ask: Ask, database: LiveDatabase
) -> None:
    drafts = [NodeDraft(f"r{place:03}", "fact", content=f"fact {place}") for place in range(500)]
    drafts[123] = NodeDraft("r123", "fact", content="word " * 200_001)
    odd = np.ones(SMALL_DIM + 1, dtype=np.float32)

    report = ingest(make_rows(*drafts, r321=odd))

    reasons = {rejection.source: rejection.reason for rejection in report.rejected}
    assert list(reasons) == ["rows.jsonl, line 124", "rows.jsonl, line 322"]
    assert "1,000,000 bytes" in reasons["rows.jsonl, line 124"]
    assert "9 dimensions" in reasons["rows.jsonl, line 322"]
    assert "Nothing of this batch" not in str(reasons)
    assert (report.added, report.nodes) == (498, 498)
    assert set(list_ids(ask)) == {draft.external_id for draft in drafts} - {"r123", "r321"}
    assert ask("select count(*) from knowledge_nodes where embedding is null") == [(0,)]
    assert_consistent(database, "acme")


def test_rows_below_a_bad_row_are_named_too_and_good_families_stay_whole(
    ingest: Ingest, ask: Ask
) -> None:
    rows = make_rows(
        NodeDraft("leaf", "fact", content="leaf", parent="branch"),
        NodeDraft("branch", "fact", content="branch", parent="tree"),
        NodeDraft("lost", "fact", content="lost", parent="bad"),
        NodeDraft("tree", "fact", content="tree"),
        NodeDraft("bad", "fact", content="word " * 200_001),
    )

    report = ingest(rows)

    assert {rejection.source for rejection in report.rejected} == {
        *("rows.jsonl, line 3", "rows.jsonl, line 5")
    }
    assert list_ids(ask) == ["branch", "leaf", "tree"]


def test_rows_in_a_circle_are_named_and_the_others_are_stored(ingest: Ingest, ask: Ask) -> None:
    report = ingest(
        make_rows(
            NodeDraft("egg", "fact", content="egg", parent="hen"),
            NodeDraft("hen", "fact", content="hen", parent="egg"),
            NodeDraft("fox", "fact", content="fox"),
        )
    )

    assert len(report.rejected) == 2
    assert list_ids(ask) == ["fox"]


def test_a_row_that_repeats_an_id_is_named_and_the_first_one_stays(
    ingest: Ingest, ask: Ask
) -> None:
    first = make_rows(
        NodeDraft("a", "fact", content="one"),
        NodeDraft("a", "fact", content="two"),
        NodeDraft("b", "fact", content="three"),
    )

    report = ingest([*first, *make_rows(NodeDraft("b", "fact", content="four"))])

    assert [rejection.source for rejection in report.rejected] == [
        *("rows.jsonl, line 2", "rows.jsonl, line 1")
    ]
    assert ask("select content from knowledge_nodes order by 1") == [("one",), ("three",)]


def test_one_bad_example_leaves_the_others_of_its_file_alone(ingest: Ingest, ask: Ask) -> None:
    examples = [Example(f"Question {place}?", "select 1") for place in range(8)]
    examples[4] = Example("Question 4?", "select 1 -- " + "word " * 200_001)

    report = ingest(group_examples("shop.csv", examples))

    assert [rejection.source for rejection in report.rejected] == ["shop.csv, example 5"]
    assert report.added == 7
    assert ask("select count(*) from knowledge_nodes") == [(7,)]


def test_prune_removes_vanished_rows_that_stood_below_others(
    ingest: Ingest, ask: Ask, database: LiveDatabase
) -> None:
    other = [NodeDraft("child", "fact", content="another dataset's")]
    ingest(make_rows(*other), dataset="other")
    top = NodeDraft("top", "fact", content="top")
    kept = NodeDraft("kept", "note", content="kept", parent="top")
    gone = NodeDraft("gone", "note", content="gone", parent="top")
    below = NodeDraft("below", "note", content="below", parent="gone")
    ingest(make_rows(top, kept, gone, below))

    assert ingest(make_rows(top, kept)).removed == 0
    report = ingest(make_rows(top, kept), prune=True)

    assert report.removed == 1
    assert list_ids(ask) == ["child", "kept", "top"]
    assert_consistent(database, "acme")


def test_prune_of_rows_spares_the_sections_of_documents_and_of_rejected_ones(
    ingest: Ingest, ask: Ask
) -> None:
    note = NodeDraft("note", "section", content="a row below a document", parent="memo")
    memo, letter = (group_document(make_document(name, "One.")) for name in ("memo", "letter"))
    ingest([memo, letter, *make_rows(NodeDraft("top", "section", content="top"))])
    before = list_ids(ask)

    rejected = Rejection("letter", "cannot be read")
    report = ingest([memo, rejected, *make_rows(note)], prune=True)

    assert report.removed == 1
    assert list_ids(ask) == sorted({*before, "note"} - {"top"})
