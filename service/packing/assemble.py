"""The order of packing, on one screen (pure)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.errors import InvalidInput
from service.packing.account import describe_blocks, explain
from service.packing.answerability import Answerability, measure_answerability, read_question
from service.packing.fill import fill_budget, reunite
from service.packing.item import Item
from service.packing.render import make_body, make_heading, render_context
from service.packing.rules import PackingRules
from service.packing.select import Refusal, select_items
from service.packing.types import Pack
from service.tokens import OWN_VOCABULARY, CountTokens, load_counter
from service.types import Candidate, Node

DEFAULT_BUDGET = 8000


def pack(
    candidates: Sequence[Candidate],
    *,
    budget: int = DEFAULT_BUDGET,
    question: str = "",
    rules: PackingRules | None = None,
    multi_document: bool = False,
    neighbours: Mapping[int, Sequence[Node]] | None = None,
) -> Pack:
    """Return a context of at most `budget` tokens, and why each candidate is in or out of it.

    neighbours: for a candidate's node, what stands beside it (service.db.context.list_neighbours).
    multi_document: whether several documents were asked for on purpose; each may have one more.
    """
    if budget < 1:
        raise InvalidInput(f"a budget of {budget} tokens holds nothing.", hint="Use 1 or more.")
    rules = rules or PackingRules()
    if multi_document:
        rules = replace(rules, per_doc_cap=rules.per_doc_cap + 1)
    count = load_counter(rules.vocabulary)
    items, unfit = _examine(candidates, question, rules=rules, count=count)
    choices, refusals = select_items(items, rules)
    joining = rules.section_reunification
    filled = fill_budget(choices, budget=budget, joining=joining, count=count)
    kept, late = choices[: filled.kept], choices[filled.kept :]
    drafts, added = filled.drafts, dict[int, int]()
    if joining and neighbours:
        drafts, added = reunite(
            drafts,
            kept,
            neighbours=neighbours,
            relevance={item.node_id: item.relevance for item in items},
            budget=budget,
            count=count,
        )
    text = render_context([draft.render() for draft in drafts])
    tokens = count(text)
    trace = explain(
        drafts,
        budget=budget,
        tokens=tokens,
        rules=rules,
        kept=kept,
        late=late,
        refusals=[*unfit, *refusals],
        added=added,
        wanted=filled.wanted,
    )
    return Pack(text, tokens, budget, describe_blocks(drafts, kept), trace)


def _examine(
    candidates: Sequence[Candidate], question: str, *, rules: PackingRules, count: CountTokens
) -> tuple[list[Item], list[Refusal]]:
    """Make items of the candidates, best first; refuse those that are empty or there already."""
    ordered = sorted(candidates, key=_rank)
    bodies = [make_body(candidate.node) for candidate in ordered]
    headings = [make_heading(candidate.node) for candidate in ordered]
    answers = measure_answerability(read_question(question), bodies, headings=headings)
    items: dict[int, Item] = {}
    refusals: list[Refusal] = []
    for candidate, body, answer in zip(ordered, bodies, answers, strict=True):
        item = _make_item(candidate, body, answer=answer, rules=rules, count=count)
        if not body:
            refusals.append(Refusal(item, "empty", "it has no text"))
        elif item.node_id in items:
            detail = "it came twice; the better one counts"
            refusals.append(Refusal(item, "same_node", detail, item.node_id, novelty=0.0))
        else:
            items[item.node_id] = item
    # Best first: where two are worth the same, the first of them is taken.
    return sorted(items.values(), key=lambda item: -item.relevance), refusals


def _rank(candidate: Candidate) -> tuple[float, str, int]:
    node = candidate.node
    if not math.isfinite(candidate.score):
        raise InvalidInput(f"node {node.node_id} came with the score {candidate.score}.")
    return (-candidate.score, node.tenant_id, node.node_id)


def _make_item(
    candidate: Candidate,
    body: str,
    *,
    answer: Answerability,
    rules: PackingRules,
    count: CountTokens,
) -> Item:
    node = candidate.node
    known = rules.vocabulary == OWN_VOCABULARY and body == node.content and node.token_count
    return Item(
        candidate=candidate,
        body=body,
        tokens=known or count(body),
        answer=answer,
        bonus=rules.answerability_bonus * answer.strength,
    )
