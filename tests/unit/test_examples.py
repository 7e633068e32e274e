"""Examples from JSON, JSON Lines and CSV, and the nodes they become."""

from __future__ import annotations

import json

import pytest

from service.errors import InvalidInput
from service.ingestion.examples import (
    BadRow,
    Example,
    ExampleFormat,
    example_nodes,
    normalise_question,
    read_examples,
)

ONE = {
    "question": "How many?",
    "sql": "select count(*) from t",
    "explanation": "Counts.",
    "verified": True,
    "tables": ["t"],
}
EXPECTED = Example("How many?", "select count(*) from t", "Counts.", verified=True, tables=("t",))


@pytest.mark.parametrize(
    ("format_", "data"),
    [
        ("json", json.dumps([ONE])),
        ("json", json.dumps({"examples": [ONE]})),
        ("jsonl", json.dumps(ONE) + "\n\n"),
        ("jsonl", json.dumps(ONE) + "\r\n"),
        (
            "csv",
            "question,sql,explanation,verified,tables\r\n"
            "How many?,select count(*) from t,Counts.,yes,t\r\n",
        ),
        (
            "csv",
            "Question;SQL;Explanation;Verified;Tables\n"
            'How many?;"select count(*) from t";Counts.;1;t\n',
        ),
    ],
)
def test_every_format_gives_the_same_example(format_: ExampleFormat, data: str):
    assert read_examples(data.encode(), format=format_) == [EXPECTED]
    assert read_examples(b"\xef\xbb\xbf" + data.encode(), format=format_) == [EXPECTED]


@pytest.mark.parametrize(
    "row",
    [
        {"query": "How many?", "query_sql": "select 1", "description": "One."},
        {"question": "How many?", "query": "select 1", "description": "One."},
        {"question": "How many?", "query": "select 1", "sql": {"parsed": 1}, "explanation": "One."},
    ],
)
def test_other_names_of_the_keys_are_known(row: dict[str, object]):
    read = read_examples(json.dumps([row]).encode(), format="json")
    assert read == [Example("How many?", "select 1", "One.")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (7, "is not an object."),
        ({"sql": "select 1"}, "has no question."),
        ({"question": "  ", "sql": "select 1"}, "has no question."),
        ({"question": "a"}, "has no sql."),
        ({"question": "a", "sql": 3}, "has a sql that is no text."),
        ({"question": "a", "sql": "b", "explanation": []}, "has a explanation that is no text."),
        ({"question": "a\x00", "sql": "b"}, "has a NUL byte in its question."),
        (
            {"question": "a", "sql": "b", "verified": "maybe"},
            'has verified "maybe", which is neither true nor false.',
        ),
        ({"question": "a", "sql": "b", "tables": [1]}, "has tables that are no list of names."),
    ],
)
def test_a_bad_row_is_reported_and_the_rest_goes_on(row: object, reason: str):
    read = read_examples(json.dumps([row, ONE]).encode(), format="json")
    assert read == [BadRow(1, reason), EXPECTED]


def test_a_line_that_is_no_json_is_named_by_its_number():
    data = json.dumps(ONE) + '\n\n{"question": \n' + json.dumps({**ONE, "question": "Why?"})
    bad, last = read_examples(data.encode(), format="jsonl")[1:]
    assert bad == BadRow(3, "is not JSON: EOF while parsing a value at column 13.")
    assert isinstance(last, Example)


def test_a_csv_row_is_named_by_the_line_it_starts_on():
    data = 'question,sql\na,"select\n1"\nb\nc,"x"y\nd,select 4\n'
    first, second, third, last = read_examples(data.encode(), format="csv")
    assert first == Example("a", "select\n1")
    assert second == BadRow(4, "has 1 cells where the header has 2.")
    assert isinstance(third, BadRow)
    assert third.row == 5
    assert last == Example("d", "select 4")


def test_the_same_question_twice_is_a_bad_row():
    again = {**ONE, "question": "how  MANY"}
    read = read_examples(json.dumps([ONE, again]).encode(), format="json")
    assert read == [EXPECTED, BadRow(2, "asks the question of row 1 again.")]


@pytest.mark.parametrize(
    ("format_", "data", "words"),
    [
        ("json", b'[\n{"a"]', "not JSON: .* at line 2 column 5"),
        ("json", b'"text"', "not a list"),
        ("csv", b"", "no header"),
        ("csv", b"a,b\n1,2\n", "no header"),
        ("csv", b"question,sql\n\xff,b\n", "not UTF-8 on line 2"),
    ],
)
def test_a_file_that_cannot_be_read_at_all_is_refused(
    format_: ExampleFormat, data: bytes, words: str
):
    with pytest.raises(InvalidInput, match=words):
        read_examples(data, format=format_)


def test_an_empty_list_is_no_error():
    assert read_examples(b"[]", format="json") == []
    assert read_examples(b"", format="jsonl") == []


def test_an_example_becomes_a_node():
    (node,) = example_nodes([EXPECTED])
    assert node.node_type == "qa_example"
    assert (node.title, node.summary, node.content) == (
        EXPECTED.question,
        EXPECTED.explanation,
        EXPECTED.sql,
    )
    assert node.metadata == ONE


def test_the_identity_is_the_question_whatever_its_spelling():
    spelt = ["How many?", " how   many", "HOW MANY ?!", "How many\u2003?"]
    nodes = example_nodes([Example(question, "select 1") for question in spelt])
    assert {normalise_question(question) for question in spelt} == {"how many"}
    assert len({node.external_id for node in nodes}) == 1
    (other,) = example_nodes([Example("How few?", "select 1")])
    assert other.external_id != nodes[0].external_id
    assert "tables" not in other.metadata
