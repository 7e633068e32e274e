"""Join completion: which tables come along, and that it is the same every time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.retrieval.joins import MOST_JOINS, JoinGraph
from service.specs import JoinSpec


def join(source: str, target: str, column: str = "") -> JoinSpec:
    return JoinSpec(source, (column or f"{target}_id",), target, ("id",))


def make_graph(*pairs: str) -> JoinGraph:
    """Tables named by one letter; "bx" is a foreign key from b to x."""
    joins = [join(pair[0], pair[1]) for pair in pairs]
    return JoinGraph(sorted({table for pair in pairs for table in pair}), joins)


def test_the_junction_table_between_two_tables_comes_along():
    graph = JoinGraph(
        ["orders", "products", "order_items"],
        [join("order_items", "orders"), join("order_items", "products")],
    )
    assert graph.complete(["orders", "products"]) == ("orders", "products", "order_items")


def test_tables_that_join_directly_need_no_other():
    assert make_graph("ab", "bc", "ac").complete(["a", "c"]) == ("a", "c")


def test_a_key_is_walked_against_its_direction_too():
    assert make_graph("ba", "bc").complete(["a", "c"]) == ("a", "c", "b")


def test_a_third_table_is_joined_to_the_nearest_of_those_before_it():
    graph = make_graph("ab", "bc", "cd", "de")
    assert graph.complete(["a", "c", "e"]) == ("a", "c", "b", "e", "d")


def test_tables_without_a_path_stay_as_they_are():
    assert make_graph("ab", "cd").complete(["a", "d"]) == ("a", "d")


def test_a_path_longer_than_the_limit_is_not_walked():
    letters = "abcdefgh"
    graph = make_graph(*(letters[place : place + 2] for place in range(len(letters) - 1)))
    near, far = letters[MOST_JOINS], letters[MOST_JOINS + 1]
    assert len(graph.complete(["a", near])) == MOST_JOINS + 1
    assert graph.complete(["a", far]) == ("a", far)


def test_a_table_nobody_knows_and_a_key_that_leaves_the_schema_do_no_harm():
    graph = JoinGraph(["a", "b"], [join("a", "gone"), join("a", "b"), join("a", "a")])
    assert graph.complete(["elsewhere", "a", "b"]) == ("elsewhere", "a", "b")


def test_every_key_between_two_tables_is_listed_and_none_beyond_them():
    both = [join("orders", "addresses", "ship_to"), join("orders", "addresses", "bill_to")]
    graph = JoinGraph(["orders", "addresses", "x"], [*both, join("x", "orders")])
    assert graph.joins_within(["addresses", "orders"]) == tuple(both)


@given(
    pairs=st.lists(st.text("abcdefgh", min_size=2, max_size=2), min_size=1, max_size=14),
    chosen=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True),
)
def test_what_is_chosen_stays_once_and_completing_again_adds_nothing(
    pairs: list[str], chosen: list[str]
):
    graph = make_graph(*pairs)
    completed = graph.complete(chosen)
    assert completed[0] == chosen[0]
    assert set(chosen) <= set(completed)
    assert len(set(completed)) == len(completed)
    assert set(graph.complete(completed)) == set(completed)
