"""Packing: what goes in, in which order, joined how, and what is said of the rest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from service.errors import InvalidInput, SettingsError
from service.packing import ItemTrace, Pack, PackingRules, make_rules, pack
from service.settings import Settings
from service.tokens import count_tokens
from tests.candidates import make_candidate
from tests.packing_cases import axis, beside, direction, piece, say

PLAIN = PackingRules(answerability_bonus=0)


def ids(packed: Pack) -> list[tuple[int, ...]]:
    return [block.node_ids for block in packed.blocks]


def traced(packed: Pack) -> dict[int, ItemTrace]:
    return {item.node_id: item for item in packed.trace.items}


def test_the_best_comes_first_under_a_numbered_heading() -> None:
    low = piece(1, 0.4, doc=10, path="Guide > Repair", content="Turn the key twice.")
    high = piece(2, 0.9, doc=20, content="Open the lid.", url="https://example.org/guide")
    packed = pack([low, high], rules=PLAIN)
    assert packed.text == (
        "[1] Guide > Setup\nOpen the lid.\n\n[2] Guide > Repair\nTurn the key twice.\n\n"
    )
    assert packed.tokens == count_tokens(packed.text) == sum(b.tokens for b in packed.blocks)
    first = packed.blocks[0]
    assert (first.marker, first.title, first.header) == ("[1]", "Guide", "Setup")
    assert (first.url, first.body, first.score) == (
        "https://example.org/guide",
        "Open the lid.",
        0.9,
    )
    assert packed.find(2) is packed.blocks[1]
    assert packed.find(3) is None


def test_nothing_to_pack_is_an_empty_context() -> None:
    packed = pack([])
    assert (packed.text, packed.tokens, packed.blocks, packed.trace.items) == ("", 0, (), ())


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_that_holds_nothing_is_refused(budget: int) -> None:
    with pytest.raises(InvalidInput, match="holds nothing"):
        pack([], budget=budget)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_cannot_be_compared_is_refused(score: float) -> None:
    with pytest.raises(InvalidInput, match="node 7"):
        pack([piece(7, score)])


def test_over_budget_the_item_of_least_value_leaves_first_and_whole() -> None:
    candidates = [piece(i, 0.9 - i / 100, doc=i * 10) for i in range(1, 6)]
    everything = pack(candidates, rules=PLAIN)
    assert len(everything.blocks) == 5
    packed = pack(candidates, budget=everything.tokens - 1, rules=PLAIN)
    assert ids(packed) == [(1,), (2,), (3,), (4,)]
    dropped = traced(packed)[5]
    assert (dropped.outcome, dropped.reason, dropped.detail) == (
        "dropped",
        "budget",
        "1 tokens too many",
    )


def test_of_two_as_relevant_the_shorter_is_worth_more_but_not_a_stub_more_than_a_text() -> None:
    long = piece(1, 0.5, doc=10, content=say(1, words=900))
    short = piece(2, 0.5, doc=20, content=say(2, words=130))
    stub = piece(3, 0.49, doc=30, content="See elsewhere.")
    packed = pack([long, short, stub], rules=PLAIN)
    assert ids(packed) == [(2,), (3,), (1,)]
    values = {node_id: item.value for node_id, item in traced(packed).items()}
    assert values[2] == pytest.approx(0.5)
    assert values[3] == pytest.approx(0.49)  # shortness earns nothing below 200 tokens


def test_a_document_gets_no_more_than_its_cap_and_one_more_across_documents() -> None:
    candidates = [piece(i, 0.9 - i / 100, place=i * 3, path=f"Guide > {i}") for i in range(1, 6)]
    packed = pack(candidates, rules=PLAIN)
    assert ids(packed) == [(1,), (2,)]
    assert {traced(packed)[i].reason for i in (3, 4, 5)} == {"per_doc_cap"}
    across = pack(candidates, rules=PLAIN, multi_document=True)
    assert (len(across.blocks), across.trace.per_doc_cap) == (3, 3)
    assert len(pack(candidates, rules=replace(PLAIN, per_doc_cap=4)).blocks) == 4


def test_columns_of_one_table_are_not_pieces_of_one_document() -> None:
    fields = [
        make_candidate(
            i,
            0.9 - i / 100,
            node_type="field",
            parent_id=1,
            order_index=i,
            content=f"column {i} {say(i, words=8)}",
        )
        for i in range(2, 8)
    ]
    assert len(pack(fields, rules=PLAIN).blocks) == 6


def test_a_section_gets_one_piece_unless_the_answer_spans_its_neighbour() -> None:
    first, far = piece(1, 0.9, place=0), piece(2, 0.85, place=5)
    packed = pack([first, far], rules=PLAIN)
    assert ids(packed) == [(1,)]
    assert (traced(packed)[2].reason, traced(packed)[2].other) == ("per_section_cap", 1)
    beside_it, weak = piece(3, 0.85, place=1), piece(4, 0.3, place=1)
    assert ids(pack([first, beside_it], rules=PLAIN)) == [(1, 3)]
    assert traced(pack([first, weak], rules=PLAIN))[4].reason == "per_section_cap"


def test_a_document_without_headings_inside_has_no_sections_to_cap() -> None:
    candidates = [piece(i, 0.9 - i / 100, place=i * 5, path="Guide") for i in range(1, 4)]
    assert ids(pack(candidates, rules=PLAIN)) == [(1,), (2,)]


def test_near_duplicates_become_one_and_the_first_stored_stays() -> None:
    text = say(1, words=80)
    copy = piece(9, 0.9, doc=90, content=f"{text} Copied.", embedding=direction(1, 0.1))
    original = piece(1, 0.88, doc=10, content=text, embedding=direction(1))
    packed = pack([copy, original], rules=PLAIN)
    assert ids(packed) == [(1,)]
    dropped = traced(packed)[9]
    assert (dropped.reason, dropped.other, dropped.novelty) == ("near_duplicate", 1, 0.0)


def test_a_far_better_copy_is_not_given_up_for_the_original() -> None:
    text = say(1, words=80)
    copy = piece(9, 0.9, doc=90, content=f"{text} Copied.", embedding=direction(1, 0.1))
    original = piece(1, 0.5, doc=10, content=text, embedding=direction(1))
    assert ids(pack([copy, original], rules=PLAIN)) == [(9,)]


def test_a_copy_stands_in_where_a_cap_keeps_the_original_out() -> None:
    text = say(3, words=80)
    candidates = [
        piece(1, 0.9, place=1, path="Guide > A", embedding=axis(1)),
        piece(2, 0.9, place=5, path="Guide > B", embedding=axis(2)),
        piece(3, 0.8, place=9, path="Guide > C", content=text, embedding=axis(3)),
        piece(9, 0.8, doc=90, content=f"{text} Copied.", embedding=axis(3)),
    ]
    packed = pack(candidates, rules=PLAIN)
    assert ids(packed) == [(1,), (2,), (9,)]
    assert traced(packed)[3].reason == "per_doc_cap"


def test_a_copy_whose_vector_is_far_is_known_by_a_sentence() -> None:
    text = say(1, words=24)
    candidates = [
        piece(1, 0.9, doc=10, content=text, embedding=axis(1)),
        piece(2, 0.8, doc=20, content=f"{text} Mirrored.", embedding=axis(2)),
    ]
    assert ids(pack(candidates, rules=PLAIN)) == [(1,)]


def test_a_text_that_says_more_than_its_excerpt_is_no_copy_but_the_excerpt_is() -> None:
    text = say(1, words=24)
    whole = f"{say(3)} {text} {say(4)}"
    for score, kept in ((0.5, [(1,), (2,)]), (0.99, [(2,)])):
        excerpt = piece(1, 0.9, doc=10, content=text, embedding=axis(1))
        full = piece(2, score, doc=20, content=whole, embedding=axis(2))
        assert ids(pack([excerpt, full], rules=PLAIN)) == kept


def test_texts_that_only_sound_alike_are_both_kept() -> None:
    candidates = [
        piece(i, 0.9, doc=i * 10, content=say(i, words=80), embedding=direction(1, i / 100))
        for i in (1, 2)
    ]
    assert len(pack(candidates, rules=PLAIN).blocks) == 2


@pytest.mark.parametrize("others_have_vectors", [True, False])
def test_copies_are_found_by_their_words_where_vectors_are_missing(
    others_have_vectors: bool,
) -> None:
    text = say(1, words=80)
    vector = direction(1) if others_have_vectors else None
    candidates = [
        piece(1, 0.9, doc=10, content=text, embedding=vector),
        piece(2, 0.8, doc=20, content=f"{text} Copied."),
        piece(3, 0.7, doc=30, content=say(3, words=80), embedding=vector),
    ]
    packed = pack(candidates, rules=PLAIN)
    assert ids(packed) == [(1,), (3,)]


def test_vectors_of_two_models_are_never_compared() -> None:
    candidates = [
        piece(1, 0.9, doc=10, embedding=direction(1, dim=8)),
        piece(2, 0.8, doc=20, embedding=direction(1, dim=16)),
    ]
    assert [item.novelty for item in pack(candidates, rules=PLAIN).trace.items] == [1.0, 1.0]


def test_what_repeats_a_chosen_item_goes_behind_what_does_not() -> None:
    candidates = [
        piece(1, 0.9, doc=10, embedding=direction(1)),
        piece(2, 0.8, doc=20, embedding=direction(0.98, 0.199)),
        piece(3, 0.6, doc=30, embedding=axis(5)),
    ]
    assert ids(pack(candidates, rules=PLAIN)) == [(1,), (3,), (2,)]
    by_score = pack(candidates, rules=replace(PLAIN, novelty_alpha=0))
    assert ids(by_score) == [(1,), (2,), (3,)]
    repeated = traced(pack(candidates, rules=PLAIN))[2]
    assert repeated.novelty == pytest.approx(0.1, abs=0.01)  # (0.98 - 0.8) / 0.2 is repeated


def test_neighbours_are_joined_in_document_order_without_repeating_their_overlap() -> None:
    whole = say(1, words=120)
    cut, back = 300, 60
    before = piece(2, place=1, content=whole[:cut])
    after = piece(1, 0.9, place=2, content=whole[cut - back :])
    packed = pack([after], rules=PLAIN, neighbours=beside(after, before))
    assert ids(packed) == [(2, 1)]
    assert packed.blocks[0].body == whole
    assert [item.role for item in packed.blocks[0].items] == ["reunited", "selected"]
    [reunion] = packed.trace.reunions
    assert (reunion.node_id, reunion.block, reunion.was_candidate) == (2, 1, False)
    alone = pack([after], rules=PLAIN)
    assert packed.tokens - alone.tokens == reunion.tokens


def test_a_neighbour_that_closes_a_gap_makes_two_blocks_one() -> None:
    left, right = piece(1, 0.9, place=0), piece(3, 0.88, place=2, path="Guide > Setup")
    rules = replace(PLAIN, per_section_cap=2)
    other = piece(9, 0.5, doc=90)
    middle = piece(2, place=1)
    packed = pack([left, right, other], rules=rules, neighbours=beside(left, middle))
    assert ids(packed) == [(1, 2, 3), (9,)]
    assert [block.number for block in packed.blocks] == [1, 2]
    assert packed.tokens == count_tokens(packed.text) == sum(b.tokens for b in packed.blocks)


def test_reunification_takes_only_what_the_budget_leaves() -> None:
    chosen, near = piece(1, 0.9, place=0), piece(2, place=1)
    full = pack([chosen], rules=PLAIN, neighbours=beside(chosen, near))
    tight = pack([chosen], rules=PLAIN, neighbours=beside(chosen, near), budget=full.tokens - 1)
    assert (ids(full), ids(tight)) == ([(1, 2)], [(1,)])


def test_reunification_can_be_switched_off() -> None:
    left, right = piece(1, 0.9, place=0), piece(2, 0.88, place=1)
    rules = replace(PLAIN, section_reunification=False)
    packed = pack([left, right], rules=rules, neighbours=beside(left, piece(3, place=2)))
    assert ids(packed) == [(1,), (2,)]


def test_a_neighbour_of_another_section_or_that_says_nothing_new_stays_out() -> None:
    chosen, other = piece(1, 0.9, place=1), piece(5, 0.8, doc=50)
    strange = piece(2, place=2, path="Guide > Repair")
    copy = piece(3, place=0, content=other.node.content)
    packed = pack([chosen, other], rules=PLAIN, neighbours=beside(chosen, strange, copy))
    assert ids(packed) == [(1,), (5,)]


def test_a_candidate_a_cap_kept_out_can_still_come_with_its_neighbour() -> None:
    chosen, weak = piece(1, 0.9, place=0), piece(2, 0.3, place=1)
    packed = pack([chosen, weak], rules=PLAIN, neighbours=beside(chosen, weak))
    assert ids(packed) == [(1, 2)]
    item = traced(packed)[2]
    assert (item.outcome, item.block, item.reason) == ("reunited", 1, "per_section_cap")
    assert packed.trace.reunions[0].was_candidate


def test_an_item_larger_than_the_budget_is_trimmed_at_sentences_and_marked() -> None:
    sentences = [f"Sentence {i} tells of {say(i, words=8)}" for i in range(40)]
    sentences[20] = "The lighthouse keeper was paid in salted herring."
    large = piece(1, 0.9, content=" ".join(sentences))
    packed = pack([large], budget=120, question="How was the lighthouse keeper paid?")
    [block] = packed.blocks
    assert block.trimmed
    assert packed.tokens == count_tokens(packed.text) <= 120
    assert "salted herring." in block.body
    assert block.body.startswith("[…] Sentence 17")
    assert block.body.endswith(" […]")
    assert traced(packed)[1].trimmed
    assert " ".join(sentences).find(block.body.removeprefix("[…] ").removesuffix(" […]")) > 0


def test_trimming_leaves_a_closing_quote_with_its_sentence() -> None:
    text = f'"Row on," said he. "Row faster." {say(1, words=200)}'
    packed = pack([piece(1, content=text)], budget=25, rules=PLAIN)
    assert packed.blocks[0].body == '"Row on," said he. "Row faster." […]'


def test_an_item_of_which_not_one_sentence_fits_is_left_out() -> None:
    packed = pack([piece(1, content=" ".join(["endless"] * 500))], budget=50, rules=PLAIN)
    assert (packed.text, packed.blocks) == ("", ())
    assert traced(packed)[1].reason == "budget"


def test_the_same_node_twice_counts_once_and_a_node_without_text_not_at_all() -> None:
    packed = pack([piece(1, 0.5), piece(1, 0.9), piece(2, 0.8, doc=20, content=" \n")], rules=PLAIN)
    assert ids(packed) == [(1,)]
    assert packed.blocks[0].score == 0.9
    assert sorted(str(item.reason) for item in packed.trace.items) == ["None", "empty", "same_node"]


def test_a_summary_is_packed_in_front_of_the_content() -> None:
    packed = pack([make_candidate(1, summary="In short.", content="At length.")], rules=PLAIN)
    assert packed.text == "[1] Title 1\nIn short.\nAt length.\n\n"


def test_a_heading_stays_on_one_line_and_is_not_endless() -> None:
    packed = pack([make_candidate(1, title="Two\nlines " + "x" * 500, content="Text.")])
    heading, body, *_ = packed.text.split("\n")
    assert heading.startswith("[1] Two lines xxx")
    assert len(heading) < 220
    assert body == "Text."


def test_the_trace_is_json_and_tells_every_part_of_a_score() -> None:
    near = piece(2, 0.8, doc=20, content="The tower was built in 1887 by the harbour guild.")
    packed = pack([piece(1, 0.9), near], question="When was the tower built?")
    told = json.loads(json.dumps(packed.trace.to_json()))
    assert (told["budget"], told["tokens"], told["vocabulary"]) == (
        8000,
        packed.tokens,
        "o200k_base",
    )
    item = next(each for each in told["items"] if each["node_id"] == 2)
    assert item["form"] == "date"
    assert item["agreement"] == pytest.approx(1)
    assert item["bonus"] == pytest.approx(0.09)  # the heading has none of the words
    assert item["value"] == pytest.approx(0.89)


def test_the_rules_are_those_of_the_settings() -> None:
    settings = Settings(
        packing_per_doc_cap=4,
        packing_per_section_cap=3,
        packing_novelty_alpha=0.2,
        packing_answerability_bonus=0.05,
        section_reunification=False,
        tokenizer_model="gpt-4",
    )
    assert make_rules(settings) == PackingRules(4, 3, 0.2, 0.05, False, "cl100k_base")
    assert make_rules(Settings()) == PackingRules()


def test_a_model_whose_tokens_cannot_be_counted_is_refused() -> None:
    with pytest.raises(SettingsError, match="TOKENIZER_MODEL 'llama-9'"):
        make_rules(Settings(tokenizer_model="llama-9"))
