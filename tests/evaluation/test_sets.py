"""Reading sets: BEIR folders in their layouts, text-to-SQL folders, vectors, question files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service.errors import InvalidInput, NotFound
from service.evaluation.beir import has_split, read_set
from service.evaluation.gold_sql import find_needed, find_tables
from service.evaluation.question_files import read_questions
from service.evaluation.scratch import name_scratch, read_source
from service.evaluation.text_to_sql import (
    judge_tables,
    make_completer,
    pool_databases,
    read_schema_set,
)
from service.evaluation.vectors import read_vectors
from tests.evaluation.beir_folder import (
    DOCUMENTS,
    JUDGEMENTS,
    QUESTIONS,
    write_folder,
    write_judgements,
    write_lines,
)
from tests.tiny_embedder import TinyEmbedder

Matrix = NDArray[Any]
SHOP = {
    "db_id": "shop",
    "table_names_original": ["customers", "orders"],
    "column_names_original": [[-1, "*"], [0, "id"], [0, "City"], [1, "customer_id"], [1, "paid"]],
    "column_types": ["text", "number", "text", "number", "boolean"],
    "primary_keys": [1],
    "foreign_keys": [[3, 1]],
}
ASKED = [
    {"db_id": "shop", "question": "Who is from Oslo?", "query": "SELECT id FROM customers AS c "
     "WHERE c.city = 'Oslo'"},
    {"db_id": "shop", "question": "Which cities paid?", "query": "SELECT T1.city FROM customers "
     "AS T1 JOIN orders AS T2 ON T1.id = T2.customer_id WHERE T2.paid = 1"},
    {"db_id": "shop", "question": "How many orders?", "query": "SELECT count(*) FROM orders"},
]  # fmt: skip


@pytest.mark.parametrize("place", ["qrels.tsv", "qrels/test.tsv", "qrels_test.tsv"])
def test_judgements_are_found_where_sets_keep_them(tmp_path: Path, place: str):
    judged = read_set(write_folder(tmp_path / "set", judged_in=place))
    assert judged.judgements == JUDGEMENTS
    assert [question.query_id for question in judged.questions] == list(QUESTIONS)


def test_a_split_has_its_own_judgements_and_may_have_its_own_questions(tmp_path: Path):
    folder = write_folder(tmp_path / "set")
    write_judgements(folder / "qrels" / "dev.tsv", {"q1": {"mill": 1}})
    write_judgements(folder / "qrels_train.tsv", {"t1": {"mill": 1}})
    write_lines(folder / "queries_train.jsonl", [{"_id": "t1", "text": "what grinds wheat"}])
    assert read_set(folder, split="dev").judgements == {"q1": {"mill": 1}}
    assert [each.text for each in read_set(folder, split="train").questions] == [
        "what grinds wheat"
    ]
    assert has_split(folder, "train")
    assert not has_split(folder, "valid")
    with pytest.raises(NotFound, match=r"no judgements of the split valid.*qrels/dev.tsv"):
        read_set(folder, split="valid")


def test_questions_without_a_relevant_document_are_left_out(tmp_path: Path):
    judged = read_set(
        write_folder(tmp_path / "set", judgements={"q3": {"tower": 1, "mill": 0}, "q4": {"x": 0}})
    )
    assert [(each.query_id, each.row) for each in judged.questions] == [("q3", 2)]
    assert judged.judgements == {"q3": {"tower": 1}}
    assert judged.rows == len(QUESTIONS)


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("queries.jsonl", "{", "queries.jsonl, line 1: not JSON"),
        ("queries.jsonl", "[]", "line 1: not a JSON object"),
        ("queries.jsonl", '{"_id": "q1"}', "line 1: a question needs _id and text"),
        (
            "queries.jsonl",
            '{"_id": 1, "text": "a"}\n{"_id": 1, "text": "b"}',
            "line 2: a second question 1",
        ),
        ("queries.jsonl", '{"_id": "z", "text": "a"}', "none of the 1 questions of test is judged"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1 harbour 1\n", "qrels.tsv, line 2"),
        ("qrels.tsv", "q1\tharbour\t1\nq1\tmill\tmuch\n", "qrels.tsv, line 2"),
    ],
)
def test_what_is_wrong_with_a_set_is_named_with_its_line(
    tmp_path: Path, file: str, content: str, complaint: str
):
    folder = write_folder(tmp_path / "set")
    (folder / file).write_text(content)
    with pytest.raises(InvalidInput, match=complaint):
        read_set(folder)


def test_a_folder_without_a_corpus_is_no_set(tmp_path: Path):
    with pytest.raises(NotFound, match=r"corpus.jsonl is missing"):
        read_set(tmp_path)


def test_a_scratch_tenant_is_named_by_corpus_and_embedder(tmp_path: Path):
    folder = write_folder(tmp_path / "My set")
    first = name_scratch(read_source(folder), TinyEmbedder(), lang="en").tenant_id
    assert first.startswith("eval-my-set-")
    assert name_scratch(read_source(folder), TinyEmbedder(), lang="en").tenant_id == first
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "another question"}\n')
    assert name_scratch(read_source(folder), TinyEmbedder(), lang="en").tenant_id == first
    others = {
        name_scratch(read_source(folder), TinyEmbedder(model="other"), lang="en").tenant_id,
        name_scratch(read_source(folder), TinyEmbedder(), lang="de").tenant_id,
    }
    write_folder(tmp_path / "My set", documents={**DOCUMENTS, "new": ("New", "A new one.")})
    others.add(name_scratch(read_source(folder), TinyEmbedder(), lang="en").tenant_id)
    assert len(others - {first}) == 3


# --- vectors ----------------------------------------------------------------------------------


def save(path: Path, matrix: Matrix) -> Path:
    np.save(path, matrix)
    return path


def test_given_vectors_are_read_in_half_precision_too(tmp_path: Path):
    documents = save(tmp_path / "c.npy", np.ones((3, 4), dtype=np.float16))
    questions = save(tmp_path / "q.npy", np.ones((2, 4), dtype=np.float32))
    read = read_vectors(documents, questions, document_rows=3, question_rows=2, most=8)
    assert (read.dimension, len(read.questions)) == (4, 2)
    assert read.documents.dtype == np.float32
    assert read.version.startswith("given@")
    with pytest.raises(InvalidInput, match="no vector for 'a text'"):
        read.embed_query("a text")


@pytest.mark.parametrize(
    ("documents", "questions", "complaint"),
    [
        (np.ones((2, 4)), np.ones((2, 4)), r"c.npy: 2 vectors for 3 texts"),
        (np.ones((3, 4)), np.ones((3, 4)), r"q.npy: 3 vectors for 2 texts"),
        (np.ones((3, 4)), np.ones((2, 5)), "vectors of 4 dimensions, .* of 5"),
        (np.ones((3, 9)), np.ones((2, 9)), "9 dimensions; the database holds at most 8"),
        (np.ones(3), np.ones((2, 4)), "not a matrix"),
        (np.ones((3, 4), dtype=int), np.ones((2, 4)), "not a matrix"),
        (np.full((3, 4), np.nan), np.ones((2, 4)), "zero or not finite"),
        (np.zeros((3, 4)), np.ones((2, 4)), "zero or not finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(
    tmp_path: Path,
    documents: Matrix,
    questions: Matrix,
    complaint: str,
):
    with pytest.raises(InvalidInput, match=complaint):
        read_vectors(
            save(tmp_path / "c.npy", documents),
            save(tmp_path / "q.npy", questions),
            document_rows=3,
            question_rows=2,
            most=8,
        )


def test_a_file_that_is_no_matrix_is_refused(tmp_path: Path):
    (tmp_path / "c.npy").write_text("no numbers")
    with pytest.raises(InvalidInput, match=r"not a \.npy file"):
        read_vectors(
            tmp_path / "c.npy", tmp_path / "c.npy", document_rows=1, question_rows=1, most=8
        )


# --- questions alone --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '[{"question": "a?", "query": "select 1"}, "b?"]',
        '{"examples": [{"question": "a?"}, {"query": "b?"}]}',
        '{"question": "a?"}\n\n{"text": "b?"}\n',
    ],
)
def test_questions_are_read_from_each_format(tmp_path: Path, text: str):
    (tmp_path / "examples").write_text(text)
    assert read_questions(tmp_path / "examples") == ["a?", "b?"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [('{"question": "a?"}\n{', "line 2: not JSON"), ('[{"sql": "x"}]', "row 1: has no question")],
)
def test_a_file_without_questions_is_refused(tmp_path: Path, text: str, complaint: str):
    (tmp_path / "examples").write_text(text)
    with pytest.raises(InvalidInput, match=complaint):
        read_questions(tmp_path / "examples")


# --- text-to-SQL ------------------------------------------------------------------------------


def test_the_fields_of_a_query_are_those_it_reads():
    columns = {"customers": ["id", "city"], "orders": ["customer_id", "paid"]}
    needed = find_needed(ASKED[1]["query"], columns)
    assert needed is not None
    assert needed.tables == {"customers", "orders"}
    assert needed.columns == {
        ("customers", "city"),
        ("customers", "id"),
        ("orders", "customer_id"),
        ("orders", "paid"),
    }
    assert find_needed("SELECT FROM WHERE (", columns) is None


def test_a_name_that_a_query_gives_itself_is_no_table():
    sql = "WITH recent AS (SELECT * FROM orders) SELECT * FROM recent"
    assert find_tables(sql) == {"orders"}
    assert find_tables("((") == set()


def test_a_folder_of_schemas_is_judged_by_the_fields_of_its_sql(tmp_path: Path):
    (tmp_path / "tables.json").write_text(json.dumps([SHOP]))
    (tmp_path / "dev.json").write_text(json.dumps(ASKED))
    source = read_source(tmp_path)
    assert source.sql_set is not None
    assert [question.query_id for question in source.judged.questions] == ["0", "1"]
    assert source.judged.judgements["0"] == {"field:customers.id": 1, "field:customers.City": 1}
    assert source.sql_set.needed["1"] == {"shop.customers", "shop.orders"}
    assert source.documents == 2 + 4


def test_a_beir_folder_of_fields_is_judged_by_tables_too(tmp_path: Path):
    folder = write_folder(
        tmp_path / "set", questions={"1": "x"}, judgements={"1": {"shop.customers.city": 1}}
    )
    write_lines(
        folder / "corpus.jsonl",
        [
            {"_id": "shop.customers.city", "text": "city", "table": "customers", "column": "city"},
            {"_id": "shop.orders.paid", "text": "paid", "table": "orders", "column": "paid"},
        ],
    )
    write_lines(folder / "queries.jsonl", [{"_id": "1", "text": "?", "sql": ASKED[1]["query"]}])
    sql_set = read_source(folder).sql_set
    assert sql_set is not None
    one = judge_tables(sql_set, {"1": ["shop.customers.city"]})
    both = judge_tables(sql_set, {"1": ["shop.customers.city", "shop.orders.paid"]})
    assert (one["full_tables@10"]["1"], both["full_tables@10"]["1"]) == (0.0, 1.0)
    assert set(one) == {
        "full_tables@5",
        "full_tables@10",
        "full_tables@20",
    }  # the corpus has no keys
    joined = judge_tables(
        sql_set,
        {"1": ["shop.customers.city"]},
        complete_joins=lambda tables: [*tables, "orders"],
    )
    assert (joined["full_tables@20"]["1"], joined["join_complete@20"]["1"]) == (0.0, 1.0)


def test_questions_of_each_database_can_be_asked_of_all_in_one_dataset(tmp_path: Path):
    (tmp_path / "tables.json").write_text(json.dumps([SHOP]))
    (tmp_path / "dev.json").write_text(json.dumps(ASKED))
    read = read_schema_set(tmp_path)
    pooled = pool_databases(read.sql_set, read.schemas)
    assert [question.dataset for question in pooled.judged.questions] == [None, None]
    assert set(pooled.judged.judgements["0"]) == {
        "field:shop.customers.id",
        "field:shop.customers.City",
    }
    found = {"0": ["field:shop.customers.id"], "1": ["field:shop.customers.id"]}
    judged = judge_tables(pooled, found, complete_joins=make_completer(read.schemas))
    assert judged["full_tables@10"] == {"0": 1.0, "1": 0.0}


def test_a_set_of_documents_is_not_about_fields(tmp_path: Path):
    assert read_source(write_folder(tmp_path / "set")).sql_set is None
