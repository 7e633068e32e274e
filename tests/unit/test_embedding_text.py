"""What is embedded for a node."""

import pytest

from service.embedding import split_identifiers, text_to_embed


def test_the_text_is_title_summary_and_content_without_empty_parts():
    assert text_to_embed("Refunds", "How to", "Write to us.") == "Refunds How to Write to us."
    assert text_to_embed("Refunds", " ", "Write to us.") == "Refunds Write to us."
    assert text_to_embed("Refunds", None, "") == "Refunds"
    assert text_to_embed(None, None, None) == ""


def test_a_header_stands_before_the_content():
    assert text_to_embed("Guide", "", "Call.", header="Contact") == "Guide Contact Call."


def test_the_words_of_identifiers_follow_the_whole_text():
    embedded = text_to_embed("customerEmail", "", "Joined to cust_id.")
    assert embedded == "customerEmail Joined to cust_id. customer Email cust id"


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("customerEmail", "customer Email"),
        ("CustomerEmail", "Customer Email"),
        ("HTTPServer", "HTTP Server"),
        ("parseHTTPResponse", "parse HTTP Response"),
        ("customerID", "customer ID"),
        ("sha256Hash", "sha256 Hash"),
        ("cust_email_addr", "cust email addr"),
        ("_private_name", "private name"),
        ("MAX_RETRY_COUNT", "MAX RETRY COUNT"),
        ("order_lineItem", "order line Item"),
        ("line_2", "line 2"),
    ],
)
def test_an_identifier_is_split_into_its_words(identifier, words):
    assert split_identifiers(identifier) == f"{identifier} {words}"


@pytest.mark.parametrize(
    "word",
    [
        "customer",
        "Customer",
        "SQL",
        "iPhone",
        "mRNA",
        "pH",
        "H2O",
        "E1234",
        "URLs",
        "__init__",
        "_",
    ],
)
def test_an_ordinary_word_is_left_alone(word):
    assert split_identifiers(word) == word


def test_each_word_is_appended_once_in_order_whatever_its_case():
    text = "orderTotal, order_date and orderTotal"
    assert split_identifiers(text) == f"{text} order Total date"


def test_text_without_identifiers_is_unchanged():
    text = "Größe, naïveté: 3.5 %  and   spaces\n"
    assert split_identifiers(text) == text
