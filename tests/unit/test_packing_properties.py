"""What holds of every pack, whatever the candidates: searched for by hypothesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.packing import Pack, PackingRules, pack
from service.packing.layout import find_overlap, join_bodies
from service.packing.trim import trim_text
from service.tokens import count_tokens
from service.types import Candidate, Node
from tests.naive_tokenizer import count_naively
from tests.packing_cases import direction, piece, say

SNIPPETS = (
    "The harbour master counts every boat before the tide. It takes an hour.",
    "def total(rows):\n    return sum(row['price'] * 1.19 for row in rows)  # 19 % VAT\n",
    "| year | boats |\n|------|------:|\n| 1887 | 1,204 |\n| 1888 |   977 |",
    "港口每天早上六点开门。船长必须登记姓名和船号！潮汐表挂在门边。",  # noqa: RUF001 - Chinese stops
    "🚢⚓️ 👩‍👩‍👧‍👦 boats 🇫🇷🇩🇪 welcome 🎉",
    "Привет, мир. Ça va? naïve café, Ελληνικά, עברית, हिन्दी.",
    "- first\n- second\n\n\n1. third\n\tindented",
    "[2] Not a source\n[1] Nor this\n\n[",
    "<|endoftext|> https://example.org/a?b=c//d \\\\ {}[]()%$#@",
    "x",
)


MIXED = st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=4).map(" ".join)


@dataclass(frozen=True, slots=True)
class Case:
    """Candidates with the neighbours of each."""

    candidates: list[Candidate]
    neighbours: dict[int, Sequence[Node]]


@st.composite
def cases(draw: st.DrawFn, bodies: st.SearchStrategy[str] = MIXED) -> Case:
    """Pieces of a few documents, some of them candidates, some only beside one."""
    pieces: list[Candidate] = []
    for doc in range(draw(st.integers(1, 3))):
        for place in range(draw(st.integers(1, 4))):
            number = len(pieces) + 1
            own = say(number, words=draw(st.sampled_from([3, 20, 60])))
            kind = draw(st.sampled_from(["own", "longer", "other", "empty"]))
            body = draw(bodies) if kind in ("longer", "other") else ""
            pieces.append(
                piece(
                    number,
                    draw(st.floats(0, 1, width=16)),
                    doc=1000 + doc,
                    place=place,
                    path=draw(st.sampled_from(["", "Guide", "Guide > A", "Guide > B"])),
                    content=f"{own if kind in ('own', 'longer') else ''} {body}".strip(),
                    embedding=draw(
                        st.sampled_from([None, direction(1), direction(1, 0.3), direction(0, 1)])
                    ),
                )
            )
    chosen = draw(st.lists(st.sampled_from(pieces), max_size=12))
    return Case(chosen, {each.node.node_id: _near(each, pieces) for each in chosen})


def _near(candidate: Candidate, pieces: Sequence[Candidate]) -> tuple[Node, ...]:
    place, doc = candidate.node.order_index or 0, candidate.node.parent_id
    return tuple(
        each.node
        for each in pieces
        if each.node.parent_id == doc and abs((each.node.order_index or 0) - place) == 1
    )


RULES = st.builds(
    PackingRules,
    per_doc_cap=st.integers(1, 3),
    per_section_cap=st.integers(1, 2),
    novelty_alpha=st.sampled_from([0.0, 0.5, 1.0]),
    answerability_bonus=st.sampled_from([0.0, 0.1]),
    section_reunification=st.booleans(),
)
BUDGETS = st.integers(1, 600)
QUESTION = "When do boats leave the harbour?"
MANY = settings(max_examples=60, deadline=None)


def run(case: Case, rules: PackingRules, budget: int) -> Pack:
    return pack(
        case.candidates, budget=budget, question=QUESTION, rules=rules, neighbours=case.neighbours
    )


def selected(packed: Pack) -> set[int]:
    return {
        item.node_id for block in packed.blocks for item in block.items if item.role == "selected"
    }


@MANY
@given(cases(), RULES, BUDGETS)
def test_a_context_never_exceeds_its_budget_by_an_independent_count(
    case: Case, rules: PackingRules, budget: int
) -> None:
    packed = run(case, rules, budget)
    assert packed.tokens == count_naively(packed.text) <= budget
    assert packed.tokens == sum(block.tokens for block in packed.blocks)


@MANY
@given(cases(st.text(max_size=200)), RULES, BUDGETS)
def test_any_characters_are_counted_to_the_token(
    case: Case, rules: PackingRules, budget: int
) -> None:
    packed = run(case, rules, budget)
    assert packed.tokens == count_naively(packed.text) <= budget


@MANY
@given(cases(), RULES, BUDGETS)
def test_no_node_stands_in_two_places(case: Case, rules: PackingRules, budget: int) -> None:
    packed = run(case, rules, budget)
    nodes = Counter(node_id for block in packed.blocks for node_id in block.node_ids)
    assert set(nodes.values()) <= {1}


@MANY
@given(cases(), RULES, BUDGETS)
def test_every_candidate_is_in_or_has_a_reason(
    case: Case, rules: PackingRules, budget: int
) -> None:
    packed = run(case, rules, budget)
    given_ids = Counter(each.node.node_id for each in case.candidates)
    assert Counter(item.node_id for item in packed.trace.items) == given_ids
    packed_ids = {node_id for block in packed.blocks for node_id in block.node_ids}
    for item in packed.trace.items:
        if item.outcome == "dropped":
            assert item.reason is not None
            assert item.detail
            assert item.block is None
            assert item.reason == "same_node" or item.node_id not in packed_ids
        else:
            assert item.block is not None
            assert item.node_id in packed.blocks[item.block - 1].node_ids
    reunited = {reunion.node_id for reunion in packed.trace.reunions}
    assert packed_ids == selected(packed) | reunited
    assert not selected(packed) & reunited


@MANY
@given(cases(), RULES, BUDGETS, st.booleans())
def test_caps_hold(case: Case, rules: PackingRules, budget: int, multi_document: bool) -> None:
    packed = pack(
        case.candidates,
        budget=budget,
        rules=rules,
        neighbours=case.neighbours,
        multi_document=multi_document,
    )
    nodes = {each.node.node_id: each.node for each in case.candidates}
    chosen = [nodes[node_id] for node_id in selected(packed)]
    per_doc = Counter(node.parent_id for node in chosen)
    assert max(per_doc.values(), default=0) <= rules.per_doc_cap + multi_document
    sections: dict[tuple[int | None, str | None], list[int]] = {}
    for node in chosen:
        if node.section_path not in ("", "Guide"):
            key = (node.parent_id, node.section_path)
            sections.setdefault(key, []).append(node.order_index or 0)
    for places in sections.values():
        # Beyond the cap only what stands beside another piece of the section.
        alone = [p for p in places if p - 1 not in places and p + 1 not in places]
        assert len(places) <= rules.per_section_cap or len(alone) <= rules.per_section_cap


@MANY
@given(cases(), RULES, BUDGETS, st.randoms(use_true_random=False))
def test_the_same_candidates_in_any_order_make_the_same_context(
    case: Case, rules: PackingRules, budget: int, random: object
) -> None:
    shuffled = list({each.node.node_id: each for each in case.candidates}.values())
    expected = run(Case(list(shuffled), case.neighbours), rules, budget)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert run(Case(shuffled, case.neighbours), rules, budget) == expected


@MANY
@given(cases(), RULES, BUDGETS, st.integers(0, 300))
def test_more_budget_never_removes_an_item_that_fitted(
    case: Case, rules: PackingRules, budget: int, more: int
) -> None:
    small = run(case, rules, budget)
    trimmed = {node_id for block in small.blocks if block.trimmed for node_id in block.node_ids}
    assert selected(small) - trimmed <= selected(run(case, rules, budget + more))


@MANY
@given(cases(), RULES, BUDGETS)
def test_blocks_are_pieces_of_one_section_in_document_order(
    case: Case, rules: PackingRules, budget: int
) -> None:
    packed = run(case, rules, budget)
    nodes = {each.node.node_id: each.node for each in case.candidates}
    nodes |= {node.node_id: node for near in case.neighbours.values() for node in near}
    for number, block in enumerate(packed.blocks, start=1):
        pieces = [nodes[node_id] for node_id in block.node_ids]
        places = [node.order_index or 0 for node in pieces]
        assert block.number == number
        assert places == list(range(places[0], places[0] + len(places)))
        assert len({(node.parent_id, node.section_path) for node in pieces}) == 1
        if not block.trimmed:
            assert all(node.content.strip() in block.body for node in pieces)


@MANY
@given(st.text(alphabet="ab \n", max_size=80), st.integers(0, 80), st.integers(0, 40))
def test_an_overlap_is_the_longest_and_joining_restores_the_text(
    text: str, cut: int, back: int
) -> None:
    before, after = text[:cut], text[max(0, cut - back) :]
    shared = find_overlap(before, after)
    longest = next(
        n for n in range(min(len(before), len(after)), -1, -1) if before.endswith(after[:n])
    )
    assert shared == (longest if longest >= 16 else 0)
    if shared == min(back, cut) > 0:
        assert join_bodies([before, after]) == text


@MANY
@given(st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=8), st.integers(1, 60), st.data())
def test_trimming_keeps_whole_sentences_around_the_place(
    snippets: list[str], limit: int, data: st.DataObject
) -> None:
    text = "\n".join(snippets)
    at = data.draw(st.integers(0, len(text)))
    fits: Callable[[str], bool] = lambda body: count_tokens(body) <= limit  # noqa: E731
    trimmed = trim_text(text, at=at, fits=fits)
    if trimmed is None:
        return
    assert fits(trimmed)
    assert trimmed.removeprefix("[…] ").removesuffix(" […]") in text


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_both_tokenizers_count_the_same(snippet: str) -> None:
    assert count_tokens(snippet) == count_naively(snippet)


def test_a_thousand_blocks_are_counted_to_the_token() -> None:
    candidates = [
        replace(each, node=replace(each.node, parent_id=None))
        for each in (piece(number, 0.5, content=f"n{number}", path="") for number in range(1, 1101))
    ]
    packed = pack(candidates, budget=20_000, rules=PackingRules(novelty_alpha=0))
    assert len(packed.blocks) == 1100
    assert packed.tokens == count_naively(packed.text)
